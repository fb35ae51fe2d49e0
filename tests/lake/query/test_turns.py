from __future__ import annotations

import threading

import pytest

from tests.waiting import until
from zenlake.lake.query.turns import AskerGone, FairTurns, QueueFull


def test_askers_take_turns_whoever_asks_most() -> None:
    turns = FairTurns(1, 100)
    order: list[str] = []
    first = threading.Event()

    def ask(who: str) -> None:
        with turns.taken(who, 30.0):
            order.append(who)

    def hold() -> None:
        with turns.taken("holder", 30.0):
            first.wait()

    threads = [threading.Thread(target=hold)]
    threads[0].start()
    until(lambda: turns._free == 0)
    for who in ["a"] * 4 + ["b"] * 2:
        threads.append(threading.Thread(target=ask, args=(who,)))
        threads[-1].start()
        until(lambda: turns.waiting == len(threads) - 1)
    first.set()
    for thread in threads:
        thread.join()
    assert order == ["a", "b", "a", "b", "a", "a"]
    assert turns.waiting == 0


def test_too_many_too_long_and_gone_are_told_apart() -> None:
    turns = FairTurns(1, 1)
    with turns.taken("a", 1.0):
        with pytest.raises(QueueFull, match=r"no turn within 0.01 s"), turns.taken("b", 0.01):
            pass
        with pytest.raises(AskerGone), turns.taken("b", 1.0, lambda: True):
            pass
        has_left = threading.Event()

        def wait() -> None:
            with pytest.raises(AskerGone), turns.taken("c", 10.0, has_left.is_set):
                pass

        thread = threading.Thread(target=wait)
        thread.start()
        until(lambda: turns.waiting == 1)
        with pytest.raises(QueueFull, match="1 questions wait already"), turns.taken("b", 1.0):
            pass
        has_left.set()
        thread.join()
    assert turns.refused == 2
    with turns.taken("b", 1.0):
        assert turns.waiting == 0
