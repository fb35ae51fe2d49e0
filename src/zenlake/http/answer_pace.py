"""Finds clients that take their answer too slowly, or do not end: they hold what others need."""

from __future__ import annotations

from typing import final

from zenlake.http.limits import SLOWEST_READER, HttpLimits

__all__ = ["AnswerPace", "ClosingTime"]


@final
class AnswerPace:
    """How fast one client takes what waits for it while nothing is added.

    In each `stalled_seconds` it takes `SLOWEST_READER` bytes a second, and after the first of them
    it is on its way to have all within `answer_seconds`: who lets much wait takes it faster.
    """

    __slots__ = ("_all_seconds", "_begun", "_least", "_seconds", "_since", "_size", "_waiting")

    def __init__(self, limits: HttpLimits) -> None:
        """Nothing waits."""
        self._seconds = limits.stalled_seconds
        self._all_seconds = limits.answer_seconds
        self._least = SLOWEST_READER * limits.stalled_seconds
        self._begun: float | None = None
        self._size = 0
        self._since = 0.0
        self._waiting = 0

    def restart(self) -> None:
        """Begin anew: all was taken, or more was added."""
        self._begun = None

    def is_too_slow(self, now: float, waiting: int) -> bool:
        """Return whether the client took too little; `waiting`: bytes that wait for it now."""
        if self._begun is None:
            self._begun = self._since = now
            self._size = self._waiting = waiting
            return False
        late = now - self._begun - self._seconds
        if late > 0.0 and waiting > self._size * (1.0 - late / self._all_seconds):
            return True
        if now - self._since < self._seconds:
            return False
        slow = self._waiting - waiting < self._least
        self._since, self._waiting = now, waiting
        return slow


@final
class ClosingTime:
    """How long a connection that was closed waits for its client to close it, too (TLS)."""

    __slots__ = ("_end", "_seconds")

    def __init__(self, limits: HttpLimits) -> None:
        """It is open."""
        self._seconds = limits.closing_seconds
        self._end: float | None = None

    def is_over(self, now: float) -> bool:
        """Return whether the time of a closed connection is over; it begins with the first call."""
        if self._end is None:
            self._end = now + self._seconds
        return now >= self._end
