"""A few questions at a time: threads of askers wait for their turn (`engine/fair_queue`)."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final, final

from zenlake.engine.fair_queue import FairQueue
from zenlake.errors import LocalError

__all__ = ["AskerGone", "FairTurns", "QueueFull"]

LOOK: Final = 0.1
"""Seconds between two looks whether who waits is still there."""


class QueueFull(LocalError):
    """Too many questions wait, or one waited too long."""


class AskerGone(LocalError):
    """The program that asked waits no longer."""


@final
class FairTurns:
    """Lets a few in at a time, askers in turn."""

    def __init__(self, at_once: int, waiting: int) -> None:
        """`waiting`: how many may wait; more are refused."""
        self._free = at_once
        self._most = waiting
        self._changed = threading.Condition()
        self._queue: FairQueue[object] = FairQueue()
        self.refused = 0

    @property
    def waiting(self) -> int:
        """How many wait for their turn."""
        return len(self._queue)

    @contextmanager
    def taken(
        self, who: str, seconds: float, gone: Callable[[], bool] = lambda: False
    ) -> Iterator[None]:
        """Wait for a turn of this asker, and have it for the block."""
        self._enter(who, seconds, gone)
        try:
            yield
        finally:
            with self._changed:
                self._free += 1
                self._changed.notify_all()

    def _enter(self, who: str, seconds: float, gone: Callable[[], bool]) -> None:
        ticket = object()
        until = time.monotonic() + seconds
        with self._changed:
            if self.waiting >= self._most:
                self.refused += 1
                raise QueueFull(f"{self._most} questions wait already; ask again in a moment")
            self._queue.add(who, ticket)
            try:
                while not (self._free and self._is_next(who, ticket)):
                    left = until - time.monotonic()
                    if left <= 0:
                        self.refused += 1
                        raise QueueFull(
                            f"no turn within {seconds:g} s: {self.waiting} questions wait"
                        )
                    if gone():
                        raise AskerGone("who asked has gone")
                    self._changed.wait(min(LOOK, left))
            except BaseException:
                self._queue.remove(who, ticket)
                self._changed.notify_all()
                raise
            self._free -= 1
            self._queue.take(who)
            self._changed.notify_all()

    def _is_next(self, who: str, ticket: object) -> bool:
        return self._queue.next_asker() == who and self._queue.first_of(who) is ticket
