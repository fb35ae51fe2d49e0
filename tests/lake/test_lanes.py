"""Askers in turn: who asks much waits behind himself."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from zenlake.lake.lanes import Lanes

PATIENCE = 10.0


@pytest.fixture
def lanes() -> Iterator[Lanes]:
    made = Lanes("test", threads=2, most=8, most_of_one=5)
    yield made
    made.close()


def test_one_question_is_answered_while_another_asker_has_many(lanes: Lanes) -> None:
    """Though the many never end."""
    go = threading.Event()

    def wait() -> None:
        go.wait(PATIENCE)

    assert all(lanes.submit("many", wait) for _ in range(5))
    done = threading.Event()
    assert lanes.submit("one", done.set)
    assert done.wait(PATIENCE)
    assert not go.is_set()
    go.set()


def test_askers_take_turns() -> None:
    """However many questions the first of them has asked before."""
    lanes = Lanes("test", threads=1)
    begun, go, done = threading.Event(), threading.Event(), threading.Semaphore(0)
    told: list[str] = []

    def first() -> None:
        begun.set()
        go.wait(PATIENCE)

    def tell(name: str) -> None:
        told.append(name)
        done.release()

    lanes.submit("a", first)
    assert begun.wait(PATIENCE)
    asked = ("a", "a", "a", "b", "b", "c")
    for name in asked:
        lanes.submit(name, lambda name=name: tell(name))  # type: ignore[misc]
    go.set()
    assert all(done.acquire(timeout=PATIENCE) for _ in asked)
    lanes.close()
    assert told == ["a", "b", "c", "a", "b", "a"]


def test_too_many_questions_are_refused_and_counted(lanes: Lanes) -> None:
    go = threading.Event()
    begun = threading.Semaphore(0)

    def wait() -> None:
        begun.release()
        go.wait(PATIENCE)

    lanes.submit("many", wait)
    assert begun.acquire(timeout=PATIENCE)
    assert [lanes.submit("many", wait) for _ in range(6)] == [True] * 5 + [False]
    lanes.submit("another", wait)
    assert begun.acquire(timeout=PATIENCE)
    assert [lanes.submit(n, wait) for n in range(4)] == [True] * 3 + [False]
    assert (lanes.waiting, lanes.refused) == (8, 2)
    go.set()
