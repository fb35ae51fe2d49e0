"""Two nodes with several links between them: each carries its lanes, and stands in for others."""

from __future__ import annotations

import pytest

from zenlake.testing.network import Host, Network

URGENT, IDLE = 1, 7


def joined(network: Network, connect: tuple[str, ...]) -> tuple[Host, Host]:
    far = network.node("far", max_links=2)
    near = network.node("near", connect=connect, max_links=2)
    network.settle()
    return near, far


def carried(host: Host) -> list[int]:
    """How many messages went over each link."""
    [first] = host.node.by_zid.values()
    found = []
    for link in first.links:
        assert link.unicast is not None
        found.append(link.unicast.outbox.messages_sent)
    return found


def test_each_link_carries_what_it_is_for() -> None:
    network = Network()
    near, far = joined(network, ("far?prio=0-3", "far?prio=4-7"))
    assert len(network.between(near, far)) == 2
    heard = {near: far.subscribe("a/**"), far: near.subscribe("a/**")}
    network.settle()
    for speaker, recorder in heard.items():
        before = carried(speaker)
        for number in range(5):
            speaker.put("a/urgent", bytes((number,)), qos=URGENT, destination=1)
        for number in range(3):
            speaker.put("a/idle", bytes((number,)), qos=IDLE, destination=1)
        network.settle()
        after = carried(speaker)
        assert sorted(new - old for new, old in zip(after, before, strict=True)) == [3, 5]
        assert len(recorder.values()) == 8


def test_when_a_link_dies_the_other_carries_all() -> None:
    network = Network()
    near, far = joined(network, ("far?prio=0-3", "far?prio=4-7"))
    recorder = far.subscribe("a/**")
    network.settle()
    near.put("a/1", b"1", qos=URGENT)
    near.put("a/7", b"7", qos=IDLE)
    network.settle()
    dead = network.between(near, far)[0]
    for end in dead.ends:
        network.lose(end)
    near.put("a/1", b"2", qos=URGENT)
    near.put("a/7", b"8", qos=IDLE)
    network.run(0.005)
    assert near.sessions == {"far"}
    assert sorted(recorder.values()) == [
        ("a/1", b"1"),
        ("a/1", b"2"),
        ("a/7", b"7"),
        ("a/7", b"8"),
    ]
    # The endpoint is tried again, and its link takes its place.
    network.settle()
    assert len(network.between(near, far)) == 2
    near.put("a/1", b"3", qos=URGENT)
    network.settle()
    assert ("a/1", b"3") in recorder.values()


def test_questions_are_answered_over_several_links() -> None:
    network = Network()
    near, far = joined(network, ("far?prio=0-3", "far?prio=4-7"))
    far.queryable("q", b"yes")
    network.settle()
    answers = near.get("q")
    network.settle()
    assert answers.values() == [("q", b"yes")]
    assert answers.finals == 1


def test_the_session_ends_with_its_last_link() -> None:
    network = Network()
    near, far = joined(network, ("far", "far"))
    recorder = near.subscribe("a/**")
    network.settle()
    assert far.node.matches("a/b")
    network.leave(near)
    network.settle()
    assert far.sessions == set()
    assert not far.node.matches("a/b")
    assert recorder.values() == []


@pytest.mark.parametrize("allowed", [1, 2])
def test_there_are_no_more_links_than_allowed(allowed: int) -> None:
    network = Network()
    far = network.node("far", max_links=allowed)
    near = network.node("near", connect=("far", "far", "far"), max_links=3)
    network.settle()
    assert len(network.between(near, far)) == allowed
    assert near.sessions == {"far"}


def test_another_node_with_the_same_id_does_not_join_the_session() -> None:
    network = Network()
    far = network.node("far", max_links=2)
    near = network.node("near", connect=("far",), max_links=2, zid=b"\x09" * 8)
    network.settle()
    network.node("thief", connect=("far",), max_links=2, zid=b"\x09" * 8)
    network.settle()
    assert len(network.between(near, far)) == 1
    assert len(far.node.by_zid[b"\x09" * 8].links) == 1
