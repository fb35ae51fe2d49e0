from __future__ import annotations

import pytest

from zenlake.node.entities import ANY
from zenlake.node.programs.matching import MatchingChanged
from zenlake.node.sessions.events import (
    LinkFinished,
    NodesDiscovered,
    SessionClosed,
    SessionOpened,
)
from zenlake.testing.network import Host, Network


def kinds(host: Host) -> list[type]:
    return [type(event) for event in host.events]


def test_a_session_that_opens_and_closes_is_an_event_on_both_sides() -> None:
    network = Network()
    one = network.node("one", connect=["two"])
    two = network.node("two")
    network.settle()
    assert kinds(one) == kinds(two) == [SessionOpened]
    opened = one.events[0]
    assert isinstance(opened, SessionOpened)
    assert opened.neighbour is one.node.by_zid[two.node.zid]
    network.leave(two)
    network.run(0.1)
    assert kinds(one)[1:] == [SessionClosed, LinkFinished]
    closed = one.events[1]
    assert isinstance(closed, SessionClosed)
    assert closed.neighbour is opened.neighbour
    assert closed.error is not None


def test_events_are_given_once() -> None:
    network = Network()
    one = network.node("one", connect=["two"])
    network.node("two")
    network.settle()
    assert one.node.events() == []
    one.node.close(network.now)
    assert [type(event) for event in one.node.events()] == [SessionClosed, LinkFinished]
    assert one.node.events() == []


def test_a_link_without_a_session_is_finished_and_nothing_else_happened() -> None:
    network = Network()
    one = network.node("one")
    network.stranger(one)
    network.run(60.0)  # it says nothing, and is not waited for that long
    assert kinds(one) == [LinkFinished]


@pytest.mark.parametrize("listened", [True, False])
def test_a_matching_status_is_an_event_each_time_it_changes(listened: bool) -> None:
    network = Network()
    one = network.node("one", connect=["two"])
    two = network.node("two")
    network.settle()
    publisher = one.node.local.publisher("k/a", 5, True, 0, b"", ANY)
    if listened:
        first, second = two.subscribe("k/*"), two.subscribe("k/**")
        network.settle()
        for recorder in (first, second):
            assert recorder.subscriber is not None
            two.node.local.unsubscribe(recorder.subscriber)
        network.settle()
    changes = [event for event in one.events if isinstance(event, MatchingChanged)]
    assert [(event.entity, event.matching) for event in changes] == [
        (publisher, True),
        (publisher, False),
    ] * listened


def test_nodes_that_a_neighbour_tells_of_are_an_event() -> None:
    network = Network()
    hub = network.node("hub")
    one = network.node("one", connect=["hub"])
    two = network.node("two", connect=["hub"])
    network.settle()
    told = [event for event in one.events if isinstance(event, NodesDiscovered)]
    assert {node.zid for event in told for node in event.nodes} >= {two.node.zid}
    assert all(event.neighbour.face is not None for event in told)
    assert hub.sessions == {"one", "two"}
