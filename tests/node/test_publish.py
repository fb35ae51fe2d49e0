"""Publishing: to oneself, to others, to both; and knowing whether anybody listens."""

from __future__ import annotations

import pytest

from zenlake.node.entities import ANY, REMOTE, SESSION_LOCAL, Publication
from zenlake.testing.network import Host, Network, Statuses
from zenlake.wire import Del, Push, Put


@pytest.fixture
def pair() -> tuple[Network, Host, Host]:
    network = Network()
    one = network.node("one")
    two = network.node("two", connect=["one"])
    network.settle()
    return network, one, two


def test_ones_own_subscribers_hear_at_once(pair: tuple[Network, Host, Host]) -> None:
    _, one, _ = pair
    samples = one.subscribe("k/**")
    one.put("k/a", b"1")
    assert samples.values() == [("k/a", b"1")]


@pytest.mark.parametrize(
    ("destination", "near", "far"),
    [(ANY, 1, 1), (SESSION_LOCAL, 1, 0), (REMOTE, 0, 1)],
)
def test_a_destination_chooses_who_hears(
    pair: tuple[Network, Host, Host], destination: int, near: int, far: int
) -> None:
    network, one, two = pair
    here, there = one.subscribe("k"), two.subscribe("k")
    network.settle()
    one.put("k", b"1", destination=destination)
    network.settle()
    assert (len(here.samples), len(there.samples)) == (near, far)


@pytest.mark.parametrize(
    ("origin", "near", "far"), [(ANY, 1, 1), (SESSION_LOCAL, 1, 0), (REMOTE, 0, 1)]
)
def test_an_origin_chooses_what_is_heard(
    pair: tuple[Network, Host, Host], origin: int, near: int, far: int
) -> None:
    network, one, two = pair
    samples = one.subscribe("k", origin)
    network.settle()
    one.put("k", b"near")
    two.put("k", b"far")
    network.settle()
    values = [value for _, value in samples.values()]
    assert (values.count(b"near"), values.count(b"far")) == (near, far)


def test_overlapping_subscribers_of_a_neighbour_cost_one_copy(
    pair: tuple[Network, Host, Host],
) -> None:
    network, one, two = pair
    all_of_it, part = two.subscribe("k/**"), two.subscribe("k/*")
    network.settle()
    said: list[bytes] = []
    network.tap = lambda near, far, batch: said.append(batch)
    one.put("k/a", b"1")
    network.run(0.1)
    assert len(said) == 1
    assert all_of_it.values() == part.values() == [("k/a", b"1")]


def test_a_key_expression_may_be_published_on(pair: tuple[Network, Host, Host]) -> None:
    network, one, two = pair
    samples, other = two.subscribe("k/a"), two.subscribe("p/a")
    network.settle()
    one.put("k/*", b"1")
    network.settle()
    assert samples.values() == [("k/*", b"1")]
    assert other.values() == []


def test_anything_may_be_published(pair: tuple[Network, Host, Host]) -> None:
    network, one, two = pair
    samples = two.subscribe("k")
    network.settle()
    publication = Publication(one.node, one.node.routes, 0, "k", 0x11, False, 0, b"", ANY)
    publication.publish(
        Push(scope=0, qos=0x11, body=Put(payload=b"x", encoding=4, attachment=b"note"))
    )
    publication.publish(Push(scope=0, qos=0x11, body=Del()))
    network.settle()
    put, delete = samples.samples
    assert str(put.encoding) == "text/plain"
    assert put.attachment is not None
    assert bytes(put.attachment) == b"note"
    assert (put.priority.value, put.express) == (1, True)
    assert put.reliability.name == "BEST_EFFORT"
    assert delete.kind.name == "DELETE"
    assert (publication.sent, publication.dropped) == (2, 0)


def test_a_full_lane_drops_and_counts() -> None:
    network = Network()
    one = network.node("one", queue_depth=2)
    two = network.node("two", connect=["one"])
    samples = two.subscribe("k")
    network.settle()
    publication = Publication(one.node, one.node.routes, 0, "k", 5, True, 0, b"", ANY)
    taken = [publication.put(b"x" * 40_000) for _ in range(10)]
    network.settle()
    assert 0 < taken.count(True) < 10
    assert publication.dropped == taken.count(False)
    assert len(samples.samples) == taken.count(True)


def test_a_publisher_is_told_when_somebody_listens(pair: tuple[Network, Host, Host]) -> None:
    network, one, two = pair
    local = one.node.local
    publisher, statuses = local.publisher("k/a", 5, True, 0, b"", ANY), Statuses()
    local.matching.watch(publisher, statuses)
    first, second = two.subscribe("k/*"), two.subscribe("k/**")
    network.settle()
    for recorder in (first, second):
        assert recorder.subscriber is not None
        two.node.local.unsubscribe(recorder.subscriber)
        network.settle()
    assert statuses.changes == [True, False]
    third = Statuses()
    mine = one.subscribe("k/a")
    local.matching.watch(publisher, third)
    assert third.changes == [True]
    local.matching.unwatch(publisher, third)
    assert third.ended
    assert mine.subscriber is not None
    local.unsubscribe(mine.subscriber)
    assert third.changes == [True]
    local.unpublish(publisher)
    assert statuses.ended


@pytest.mark.parametrize(
    ("destination", "own", "others"),
    [(ANY, True, True), (SESSION_LOCAL, True, False), (REMOTE, False, True)],
)
def test_matching_looks_where_the_publisher_may_reach(
    pair: tuple[Network, Host, Host], destination: int, own: bool, others: bool
) -> None:
    network, one, two = pair
    publisher = one.node.local.publisher("k", 5, True, 0, b"", destination)
    mine = one.subscribe("k")
    assert publisher.matching is own
    assert mine.subscriber is not None
    one.node.local.unsubscribe(mine.subscriber)
    assert not publisher.matching
    two.subscribe("k")
    network.settle()
    assert publisher.matching is others


def test_a_second_subscriber_for_all_counts_where_the_first_was_for_others_alone(
    pair: tuple[Network, Host, Host],
) -> None:
    _, one, _ = pair
    publisher = one.node.local.publisher("k", 5, True, 0, b"", ANY)
    one.subscribe("k", REMOTE)
    assert not publisher.matching
    one.subscribe("k", ANY)
    assert publisher.matching


def test_what_is_published_on_a_declared_number_follows_its_meaning() -> None:
    """A neighbour that undeclares a number and uses it again is understood."""
    network = Network()
    one = network.node("one")
    two = network.node("two", connect=["one"])
    samples = one.subscribe("**")
    network.settle()
    publisher = two.node.local.publisher("some/key", 5, True, 0, b"", ANY)
    publisher.put(b"1")
    network.settle()
    publisher.put(b"2")
    network.settle()
    assert samples.values() == [("some/key", b"1"), ("some/key", b"2")]


def test_a_declared_key_is_sent_as_a_number(pair: tuple[Network, Host, Host]) -> None:
    network, one, two = pair
    samples = two.subscribe("a/long/key/that/is/**")
    network.settle()
    one.node.local.declare_key("a/long/key/that/is/declared")
    face = next(face for face in one.node.tables.faces.values() if face is not one.node.face)
    scope, mine, suffix = face.wire_key("a/long/key/that/is/declared", False)
    assert (scope > 0, mine, suffix) == (True, True, "")
    one.put("a/long/key/that/is/declared", b"1")
    network.settle()
    assert samples.values() == [("a/long/key/that/is/declared", b"1")]


def test_a_neighbour_that_comes_later_is_told_the_declared_keys() -> None:
    network = Network()
    one = network.node("one")
    one.node.local.declare_key("declared/before")
    one.node.local.declare_key("forgotten/before")
    one.node.local.undeclare_key("forgotten/before")
    network.node("two", connect=["one"])
    network.settle()
    [face] = [face for face in one.node.tables.faces.values() if face is not one.node.face]
    assert face.wire_key("declared/before", False)[2] == ""
    assert face.wire_key("forgotten/before", False) == (0, True, "forgotten/before")
