"""Back-pressure of a channel: the links, threads and tasks that wait until it is half empty.

    full ──► the pump of a link pauses it (`links`), a publisher of the same node waits (`wakers`)
    half empty ──► `drained`: links are resumed, wakers released

`watched` is the flag that a taker reads after every item; it is set before fullness is checked
again, so that one of the two threads sees the other's step.

Back-pressure is *lifted* while the thread that empties the channel waits for something else (a
reply, room in an outbox): the link that is paused may be the one that brings it. Until the thread
is back the channel counts as not full, up to the queue's hard limit.
"""

from __future__ import annotations

from collections import deque
from threading import Lock
from typing import Final, Protocol, final

#: How long a program that feeds its own full channel waits for room, in seconds.
PATIENCE: Final = 1.0


class Pausable(Protocol):
    """A link that is paused."""

    def resume_soon(self) -> None:
        """Read the link again; from any thread."""


class Waker(Protocol):
    """Wakes one waiter: the lock that a thread sleeps at, or the `TaskWaker` of a task."""

    def release(self) -> None:
        """Wake the waiter; from any thread."""


@final
class BackPressure:
    """The waiters for room in one channel."""

    __slots__ = ("guard", "lifted", "links", "stuck", "wakers", "watched")

    def __init__(self, guard: Lock) -> None:
        """`guard`: the lock of the channel."""
        self.guard: Lock = guard
        #: Whether `drained` is to be called when the channel is half empty.
        self.watched: bool = False
        #: Links that are not read meanwhile.
        self.links: list[Pausable] = []
        #: Wakers of threads and tasks that wait for room, or for the last callback.
        self.wakers: deque[Waker] = deque()
        #: How many waits of the emptying thread lift the back-pressure now.
        self.lifted: int = 0
        #: Whether a publisher of this node waited in vain: it may be the thread that takes, and is
        #: not made to wait again before there was room.
        self.stuck: bool = False

    def drained(self) -> None:
        """There is room, or the end: release all waiters."""
        with self.guard:
            self.watched = False
            self.stuck = False
            links = self.links
            self.links = []
        for link in links:
            link.resume_soon()
        while self.wakers:
            try:
                self.wakers.popleft().release()
            except IndexError:
                break

    def lift(self) -> None:
        """The thread that empties the channel begins to wait for something else."""
        with self.guard:
            self.lifted += 1
        if self.watched:
            self.drained()

    def restore(self) -> None:
        """The thread that empties the channel is back."""
        with self.guard:
            self.lifted -= 1
