"""The timer of a node: calls it when its next deadline is due.

States: *idle* (`_handle` is None) and *armed* for `_armed_for`. `arm` with an earlier deadline
replaces the timer; a later one is left to the next call, so that arming costs a comparison.

A deadline that rings `STALL` seconds late was missed by a process that stood still. What neighbours
sent meanwhile waits in the sockets: it is read before a neighbour is blamed for silence, so the
call is put off once more.

Everything but `is_earlier` is called on the loop thread.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from time import monotonic
from typing import Final

#: A deadline that is kept this many seconds too late was kept by a process that stood still.
STALL: Final = 0.1


class NodeTimer:
    """At most one timer of the event loop, for the earliest deadline."""

    def __init__(self, loop: asyncio.AbstractEventLoop, due: Callable[[float], None]) -> None:
        """`due` is given the time, and arms again."""
        self._loop = loop
        self._due = due
        self._handle: asyncio.TimerHandle | None = None
        self._armed_for = float("inf")
        #: When the handle ought to ring.
        self._rings_at = float("inf")

    def is_earlier(self, deadline: float) -> bool:
        """Whether `arm` would have something to do; from any thread."""
        return deadline < self._armed_for

    def arm(self, deadline: float) -> None:
        """Ring at `deadline`, unless it rings earlier anyway."""
        if deadline >= self._armed_for:
            return
        self.cancel()
        self._armed_for = deadline
        now = monotonic()
        self._rings_at = max(now, deadline)
        self._handle = self._loop.call_later(self._rings_at - now, self._ring)

    def cancel(self) -> None:
        """Do not ring."""
        if self._handle is not None:
            self._handle.cancel()
            self._handle = None

    def _ring(self) -> None:
        self._handle = None
        now = monotonic()
        if now - self._rings_at > STALL:
            self._rings_at = now
            self._handle = self._loop.call_later(STALL / 10, self._ring)
            return
        self._armed_for = float("inf")
        self._due(now)
