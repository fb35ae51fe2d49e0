"""No asker has all the threads that answer."""

from __future__ import annotations

import threading

from tests.waiting import until
from zenlake.storages.workers import MOST_OF_ONE, Workers


def test_an_asker_that_holds_its_share_up_delays_nobody_else() -> None:
    workers = Workers("test", threads=4, share=2)
    held, done = threading.Event(), threading.Semaphore(0)

    def slow() -> None:
        held.wait(10)
        done.release()

    for _ in range(6):
        assert workers.submit("slow", slow)
    answered = threading.Event()
    assert workers.submit("other", answered.set)
    assert answered.wait(10)
    assert not done.acquire(blocking=False)
    held.set()
    for _ in range(6):
        assert done.acquire(timeout=10)
    workers.close()


def test_what_one_asks_beyond_its_bound_is_refused_and_others_go_on() -> None:
    workers = Workers("test", threads=2, share=1)
    held = threading.Event()

    def slow() -> None:
        held.wait(10)

    taken = [workers.submit("greedy", slow) for _ in range(MOST_OF_ONE + 1)]
    assert taken == [True] * MOST_OF_ONE + [False]
    answered = threading.Event()
    assert workers.submit("other", answered.set)
    assert answered.wait(10)
    held.set()
    until(lambda: workers.submit("greedy", answered.set), "its work is done, so there is room")
    workers.close()


def test_nothing_is_begun_after_the_end() -> None:
    workers = Workers("test", threads=1, share=1)
    held = threading.Event()
    begun: list[str] = []

    def slow() -> None:
        held.wait(10)

    workers.submit("a", slow)
    workers.submit("a", lambda: begun.append("a"))
    workers.submit("b", lambda: begun.append("b"))
    threading.Timer(0.05, held.set).start()
    workers.close()
    assert workers.submit("c", lambda: begun.append("c"))
    assert begun == []
