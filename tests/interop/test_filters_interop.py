"""Filters of subscribers, beside nodes that know nothing of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.interop.conftest import Together
from tests.interop.peer import Peer
from tests.interop.processes import connect, listen
from tests.waiting import until
from zenlake.journal.options import Options
from zenlake.journal.recorder import Recorder

pytestmark = pytest.mark.interop


def published(speaker: Peer, key: str) -> None:
    speaker.publisher("p", key)
    speaker.until("p")
    for n in (5, 90, 7, 80, 1):
        speaker.publish("p", f'{{"battery": {n}}}')


def payloads(listener: Peer, name: str, count: int) -> list[str]:
    return [sample["payload"] for sample in listener.take(name, count)]


def said(*numbers: int) -> list[str]:
    return [f'{{"battery": {n}}}' for n in numbers]


def test_a_filter_works_whoever_the_neighbour_is(together: Together) -> None:
    """Their peer, their router, and one between: they pass over what they do not know."""
    ours, theirs, key = together.ours, together.theirs, together.key
    ours.subscribe("low", f"{key}/**?_filter=battery<20")
    published(theirs, f"{key}/a")
    assert payloads(ours, "low", 3) == said(5, 7, 1)
    # Subscribers that come and go change what is declared, under ids that they know or do not.
    ours.subscribe("high", f"{key}/**?_filter=battery>=85")
    ours.subscribe("all", f"{key}/**")
    theirs.publisher("q", f"{key}/q")
    theirs.until("q")
    theirs.publish("q", said(90)[0])
    assert payloads(ours, "all", 1) == said(90)
    assert payloads(ours, "high", 1) == said(90)
    ours.undeclare("all")
    theirs.publish("q", said(30)[0])
    theirs.publish("q", said(3)[0])
    assert payloads(ours, "low", 1) == said(3)
    ours.undeclare("high")
    ours.undeclare("low")
    theirs.until("q", False)


def test_our_router_asks_for_ours_and_sends_theirs_everything(
    ours: Peer, theirs: Peer, tmp_path: Path
) -> None:
    place = listen(ours, "router")
    connect(theirs, place, "client")
    subscriber = Peer("zenlake")
    recorder = None
    try:
        connect(subscriber, place, "client")
        subscriber.subscribe("low", "robot/**?_filter=battery<20")
        # The router knows of it before there are others whom samples could go to.
        ours.publisher("probe", "robot/a")
        ours.until("probe")
        # It records too, which is another fast lane.
        recorder = Recorder(ours.session, Options(("robot/**",), str(tmp_path / "journal")))
        theirs.subscribe("all", "robot/**")
        published(theirs, "robot/a")
        assert payloads(subscriber, "low", 3) == said(5, 7, 1)
        assert payloads(theirs, "all", 5) == said(5, 90, 7, 80, 1)
        (queue,) = [s.sink for s in subscriber.session.runtime.node.local.subscribers.values()]
        assert queue.held_back == 0
        assert ours.session.runtime.node.filters.held_back == 2
        until(lambda: sum(recorder.watermark().offsets) == 5)
    finally:
        if recorder is not None:
            recorder.close()
        subscriber.close()
