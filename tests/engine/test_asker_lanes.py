"""Askers in turn: who asks much waits behind itself, and no asker has all threads."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Iterator

import pytest

from tests.waiting import SECONDS, until
from zenlake.engine.asker_lanes import AskerLanes


@pytest.fixture
def lanes() -> Iterator[AskerLanes]:
    made = AskerLanes("test", threads=2, most=8, most_of_one=5)
    yield made
    made.close()


def test_one_question_is_answered_while_another_asker_has_many(lanes: AskerLanes) -> None:
    """Though the many never end."""
    go = threading.Event()

    def wait() -> None:
        go.wait(SECONDS)

    assert all(lanes.submit("many", wait) for _ in range(5))
    done = threading.Event()
    assert lanes.submit("one", done.set)
    assert done.wait(SECONDS)
    assert not go.is_set()
    go.set()


def test_askers_take_turns() -> None:
    """However many questions the first of them has asked before."""
    lanes = AskerLanes("test", threads=1)
    begun, go, done = threading.Event(), threading.Event(), threading.Semaphore(0)
    told: list[str] = []

    def first() -> None:
        begun.set()
        go.wait(SECONDS)

    def tell(name: str) -> None:
        told.append(name)
        done.release()

    lanes.submit("a", first)
    assert begun.wait(SECONDS)
    asked = ("a", "a", "a", "b", "b", "c")
    for name in asked:
        lanes.submit(name, lambda name=name: tell(name))  # type: ignore[misc]
    go.set()
    assert all(done.acquire(timeout=SECONDS) for _ in asked)
    lanes.close()
    assert told == ["a", "b", "c", "a", "b", "a"]


def test_nineteen_who_ask_once_wait_for_two_turns_of_one_who_asks_much_at_most() -> None:
    lanes = AskerLanes("test", threads=1)
    begun, go, done = threading.Event(), threading.Event(), threading.Semaphore(0)
    told: list[str] = []

    def first() -> None:
        begun.set()
        go.wait(SECONDS)

    def tell(name: str) -> None:
        told.append(name)
        done.release()

    lanes.submit("greedy", first)
    assert begun.wait(SECONDS)
    others = [f"asker {number}" for number in range(19)]
    asked = ["greedy"] * 100 + others
    for name in asked:
        assert lanes.submit(name, lambda name=name: tell(name))  # type: ignore[misc]
    go.set()
    assert all(done.acquire(timeout=SECONDS) for _ in asked)
    lanes.close()
    assert sorted(set(told[:20])) == sorted(["greedy", *others])
    assert told[20:] == ["greedy"] * 99


def test_too_many_questions_are_refused_and_counted(lanes: AskerLanes) -> None:
    go = threading.Event()
    begun = threading.Semaphore(0)

    def wait() -> None:
        begun.release()
        go.wait(SECONDS)

    lanes.submit("many", wait)
    assert begun.acquire(timeout=SECONDS)
    assert [lanes.submit("many", wait) for _ in range(6)] == [True] * 5 + [False]
    lanes.submit("another", wait)
    assert begun.acquire(timeout=SECONDS)
    assert [lanes.submit(n, wait) for n in range(4)] == [True] * 3 + [False]
    assert (lanes.waiting, lanes.refused) == (8, 2)
    go.set()


def test_an_asker_that_holds_its_share_up_delays_nobody_else() -> None:
    lanes = AskerLanes("test", threads=4, share=2)
    held, done = threading.Event(), threading.Semaphore(0)

    def slow() -> None:
        held.wait(SECONDS)
        done.release()

    for _ in range(6):
        assert lanes.submit("slow", slow)
    answered = [threading.Event(), threading.Event()]
    for event in answered:
        assert lanes.submit("other", event.set)
    assert all(event.wait(SECONDS) for event in answered)
    assert not done.acquire(blocking=False)
    held.set()
    for _ in range(6):
        assert done.acquire(timeout=SECONDS)
    lanes.close()


def test_work_that_comes_at_once_is_done_at_once_by_as_many_threads_as_there_may_be() -> None:
    lanes = AskerLanes("test", threads=3, share=3)
    for _ in range(50):
        together = threading.Barrier(3)
        done = threading.Semaphore(0)

        def meet(together: threading.Barrier = together, done: threading.Semaphore = done) -> None:
            together.wait(SECONDS)  # breaks if one of the three is not begun
            done.release()

        assert all(lanes.submit("a", meet) for _ in range(3))
        assert all(done.acquire(timeout=SECONDS) for _ in range(3))
    lanes.close()


def test_nothing_is_begun_after_the_end() -> None:
    lanes = AskerLanes("test", threads=1, share=1)
    begun, held = threading.Event(), threading.Event()
    late: list[str] = []

    def slow() -> None:
        begun.set()
        held.wait(SECONDS)

    lanes.submit("a", slow)
    assert begun.wait(SECONDS)
    lanes.submit("a", lambda: late.append("a"))
    lanes.submit("b", lambda: late.append("b"))
    closing = threading.Thread(target=lanes.close)
    closing.start()
    until(lambda: not lanes.submit("c", lambda: late.append("c")), "it is closed")
    held.set()
    closing.join(SECONDS)
    assert late == []


def test_work_that_fails_is_told_and_costs_no_thread(caplog: pytest.LogCaptureFixture) -> None:
    lanes = AskerLanes("test", threads=1)

    def fail() -> None:
        raise ValueError("torn")

    assert lanes.submit("a", fail)
    done = threading.Event()
    assert lanes.submit("b", done.set)
    assert done.wait(SECONDS)
    lanes.close()
    assert "work for a failed" in caplog.text
    assert "torn" in caplog.text


def test_what_waits_is_let_go_at_the_end() -> None:
    """A query is finalised with the last reference to it."""
    lanes = AskerLanes("test", threads=1)
    begun, go, gone = threading.Event(), threading.Event(), threading.Event()

    def first() -> None:
        begun.set()
        go.wait(SECONDS)

    def second() -> None:
        raise AssertionError("it has begun after the end")

    weakref.finalize(second, gone.set)
    assert lanes.submit("a", first)
    assert begun.wait(SECONDS)
    assert lanes.submit("a", second)
    del second
    assert not gone.is_set()
    lanes.end()
    assert gone.is_set()
    assert lanes.waiting == 0
    go.set()
    lanes.close()
