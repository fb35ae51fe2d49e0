"""Finds clients that take their answer too slowly: bytes that wait are memory of this process."""

from __future__ import annotations

from typing import final

__all__ = ["AnswerPace"]


@final
class AnswerPace:
    """How fast one client takes what waits for it while nothing is added."""

    __slots__ = ("_least", "_seconds", "_since", "_waiting")

    def __init__(self, seconds: float, bytes_per_second: int) -> None:
        """A client must take `bytes_per_second`; that is looked at after so many seconds."""
        self._seconds = seconds
        self._least = bytes_per_second * seconds
        self._since: float | None = None
        self._waiting = 0

    def restart(self) -> None:
        """Begin anew: all was taken, or more was added."""
        self._since = None

    def is_too_slow(self, now: float, waiting: int) -> bool:
        """Return whether the client took too little; `waiting`: bytes that wait for it now."""
        if self._since is not None and now - self._since < self._seconds:
            return False
        slow = self._since is not None and self._waiting - waiting < self._least
        self._since, self._waiting = now, waiting
        return slow
