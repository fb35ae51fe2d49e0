from __future__ import annotations

import threading

import pytest

import zenlake
from tests.waiting import SECONDS
from zenlake import MatchingStatus

Pair = tuple[zenlake.Session, zenlake.Session]


def test_a_publisher_hears_when_its_listeners_come_and_go(pair: Pair) -> None:
    here, there = pair
    publisher = there.declare_publisher("a/b")
    listener = publisher.declare_matching_listener()
    assert listener.try_recv() is None
    first = here.declare_subscriber("a/*")
    assert listener.recv() == MatchingStatus(True)
    assert publisher.matching_status.matching
    first.undeclare()
    assert listener.recv() == MatchingStatus(False)
    assert not publisher.matching_status.matching
    listener.undeclare()
    with pytest.raises(zenlake.ZError, match="Undeclared matching listener"):
        listener.recv()


def test_a_querier_hears_when_somebody_answers(pair: Pair) -> None:
    here, there = pair
    querier = there.declare_querier("a/b")
    told: list[bool] = []
    came, left = threading.Event(), threading.Event()

    def callback(status: MatchingStatus) -> None:
        told.append(status.matching)
        (came if status.matching else left).set()

    querier.declare_matching_listener(callback)
    queryable = here.declare_queryable("a/**")
    assert came.wait(SECONDS)
    queryable.undeclare()
    assert left.wait(SECONDS)
    assert told == [True, False]


def test_the_end_of_a_publisher_is_the_end_of_its_listeners(alone: zenlake.Session) -> None:
    publisher = alone.declare_publisher("a")
    statuses = iter(publisher.declare_matching_listener())
    alone.declare_subscriber("a", lambda sample: None)
    publisher.undeclare()
    assert list(statuses) == [MatchingStatus(True)]


def test_a_status_is_a_value() -> None:
    assert repr(MatchingStatus(True)) == "MatchingStatus(True)"
    assert len({MatchingStatus(True), MatchingStatus(True), MatchingStatus(False)}) == 2
    assert not MatchingStatus(False)
