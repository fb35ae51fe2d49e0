"""Several links of one session, with real nodes, each for priorities of its own."""

from __future__ import annotations

import pytest

from tests.interop.peer import Peer, Plain
from tests.ports import free_port

pytestmark = pytest.mark.interop

TWO: Plain = {"transport__unicast__max_links": 2, "transport__shared_memory__enabled": False}


@pytest.mark.parametrize("ours_connects", [True, False], ids=["ours connects", "theirs connects"])
def test_two_links_carry_one_session(ours: Peer, theirs: Peer, ours_connects: bool) -> None:
    connecting, listening = (ours, theirs) if ours_connects else (theirs, ours)
    places = [
        f"tcp/127.0.0.1:{free_port()}?prio=1-3;rel=1",
        f"tcp/127.0.0.1:{free_port()}?prio=4-7;rel=1",
    ]
    listening.open("peer", listen__endpoints=places, **TWO)
    # Two endpoints lead to one node: it would wait for the session with another.
    connecting.open("peer", connect__endpoints=places, scouting__delay=200, **TWO)
    for node, other in ((ours, theirs), (theirs, ours)):
        node.until_links(2)
        assert node.neighbours() == [other.zid()]
    for speaker, listener in ((ours, theirs), (theirs, ours)):
        listener.subscribe("s", "links/**")
        speaker.publisher("urgent", "links/urgent", priority="REAL_TIME")
        speaker.publisher("idle", "links/idle", priority="BACKGROUND")
        speaker.until("urgent")
        speaker.publish_many("urgent", 500)
        speaker.publish_many("idle", 500)
        heard: dict[str, list[str]] = {"links/urgent": [], "links/idle": []}
        for sample in listener.take("s", 1000):
            heard[sample["key"]].append(sample["payload"])
        numbers = [str(number) for number in range(500)]
        assert heard == {"links/urgent": numbers, "links/idle": numbers}
        listener.undeclare("s")
    ours.queryable("q", "links/q", [{"payload": "yes"}])
    theirs.querier("k", "links/q")
    theirs.until("k")
    assert [one["payload"] for one in theirs.ask("k")] == ["yes"]
