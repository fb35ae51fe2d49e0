"""Whose turn it is: a few questions at a time, and everybody's in turn.

Who asks much waits behind himself: of those that wait, the next is taken from the asker who had
his last turn longest ago.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final, final

from zenlake.errors import LocalError

__all__ = ["Crowded", "Gone", "Turns"]

LOOK: Final = 0.1
"""Seconds between two looks whether who waits is still there."""


class Crowded(LocalError):
    """Too many questions wait, or one waited too long."""


class Gone(LocalError):
    """Who asked is not there any more."""


@final
class Turns:
    """Lets a few in at a time, askers in turn."""

    def __init__(self, at_once: int, waiting: int) -> None:
        """`waiting`: how many may wait; more are refused."""
        self._free = at_once
        self._most = waiting
        self._changed = threading.Condition()
        #: Those that wait, by asker; the asker whose turn is next comes first.
        self._lanes: OrderedDict[str, deque[object]] = OrderedDict()
        self.waiting = 0
        self.refused = 0

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
                raise Crowded(f"{self._most} questions wait already; ask again in a moment")
            self._lanes.setdefault(who, deque()).append(ticket)
            self.waiting += 1
            try:
                while not (self._free and self._is_next(ticket)):
                    left = until - time.monotonic()
                    if left <= 0:
                        self.refused += 1
                        raise Crowded(
                            f"no turn within {seconds:g} s: {self.waiting} questions wait"
                        )
                    if gone():
                        raise Gone("who asked has gone")
                    self._changed.wait(min(LOOK, left))
            finally:
                self._leave(who, ticket)
            self._free -= 1
            if who in self._lanes:
                self._lanes.move_to_end(who)

    def _is_next(self, ticket: object) -> bool:
        first = next(iter(self._lanes.values()))
        return first[0] is ticket

    def _leave(self, who: str, ticket: object) -> None:
        self.waiting -= 1
        lane = self._lanes[who]
        lane.remove(ticket)
        if not lane:
            del self._lanes[who]
        self._changed.notify_all()
