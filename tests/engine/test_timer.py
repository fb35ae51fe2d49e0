from __future__ import annotations

import asyncio
from typing import cast

import pytest

from tests.engine.by_hand import MemoryLink, Schedule
from zenlake.engine.listeners import EARLY_LINKS, Listeners
from zenlake.engine.timer import STALL, NodeTimer


class Clock:
    """A schedule and the time that it keeps."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.schedule = Schedule()
        self.rung: list[float] = []
        self.timer = NodeTimer(cast(asyncio.AbstractEventLoop, self.schedule), self.rung.append)
        monkeypatch.setattr("zenlake.engine.timer.monotonic", lambda: self.schedule.now)

    def pending(self) -> list[float]:
        return [timer.when for timer in self.schedule.timers if not timer.cancelled]

    def ring(self, now: float) -> None:
        """The earliest timer rings at `now`, as late as the loop is."""
        [timer] = [timer for timer in self.schedule.timers if not timer.cancelled]
        self.schedule.timers.clear()
        self.schedule.now = now
        timer.call()


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    return Clock(monkeypatch)


def test_only_an_earlier_deadline_replaces_the_timer(clock: Clock) -> None:
    clock.timer.arm(5.0)
    assert not clock.timer.is_earlier(5.0)
    clock.timer.arm(7.0)
    assert clock.pending() == [5.0]
    assert clock.timer.is_earlier(3.0)
    clock.timer.arm(3.0)
    assert clock.pending() == [3.0]
    clock.ring(3.0)
    assert clock.rung == [3.0]
    assert clock.timer.is_earlier(7.0), "it has rung and may be set anew"


def test_a_deadline_in_the_past_rings_at_once(clock: Clock) -> None:
    clock.schedule.now = 10.0
    clock.timer.arm(2.0)
    assert clock.pending() == [10.0]
    clock.ring(10.0)
    assert clock.rung == [10.0]


def test_after_a_standstill_the_sockets_are_read_before_deadlines_are_kept(clock: Clock) -> None:
    clock.timer.arm(1.0)
    clock.ring(1.0 + 10 * STALL)
    assert clock.rung == []
    [again] = clock.pending()
    assert again <= clock.schedule.now + STALL
    clock.ring(again)
    assert clock.rung == [again]


def test_a_cancelled_timer_does_not_ring(clock: Clock) -> None:
    clock.timer.arm(1.0)
    clock.timer.cancel()
    assert clock.pending() == []


def test_links_that_come_before_the_node_is_ready_wait_in_order() -> None:
    handed: list[object] = []
    listeners = Listeners(handed.append)
    first, second, third = MemoryLink(), MemoryLink(), MemoryLink()
    listeners._accepted(first)
    listeners._accepted(second)
    assert handed == []
    listeners.serve()
    listeners._accepted(third)
    assert handed == [first, second, third]


def test_no_more_links_wait_than_their_bound() -> None:
    handed: list[object] = []
    listeners = Listeners(handed.append)
    links = [MemoryLink() for _ in range(EARLY_LINKS + 2)]
    for link in links:
        listeners._accepted(link)
    assert [link.closed for link in links[-3:]] == [False, True, True]
    listeners.serve()
    assert handed == links[:-2]


def test_links_that_waited_in_vain_are_closed() -> None:
    listeners = Listeners(lambda _: pytest.fail("it was never ready"))
    link = MemoryLink()
    listeners._accepted(link)
    listeners.close()
    assert link.closed
