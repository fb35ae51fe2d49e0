"""Waiting for an item of a channel: the threads and tasks that take.

A thread that finds the channel empty first offers to poll the sockets of its node itself (`poll`,
see `polling`). If another thread does that already, or nothing came for a while, it sleeps at a
lock of its own; `commit` releases one such lock for all that was pushed.

No waiter is forgotten between a push and a wait: a waiter first adds its waker and then looks at
the queue once more, `commit` is called after the items were appended and then looks for wakers. The
interpreter's lock keeps both orders.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from threading import Lock
from typing import TYPE_CHECKING, final

from zenlake.engine.back_pressure import Waker

if TYPE_CHECKING:
    from zenlake.engine.channel import Channel


@final
class Takers:
    """The waiters for an item of one channel."""

    __slots__ = ("interrupt", "poll", "wakers")

    def __init__(self) -> None:
        """No waiter."""
        #: One for each thread or task that waits for an item.
        self.wakers: deque[Waker] = deque()
        #: Polls the node's sockets until the channel has an item; False: the thread should sleep.
        self.poll: Callable[[Channel], bool] | None = None
        #: Calls back the thread that polls sockets for this channel just now.
        self.interrupt: Callable[[], None] | None = None

    def wake(self) -> None:
        """Wake one waiter."""
        try:  # noqa: SIM105  (this is hot, and compiled)
            self.wakers.popleft().release()
        except IndexError:
            pass  # woken by another thread

    def wake_all(self) -> None:
        """Wake all waiters, and the thread that polls."""
        while self.wakers:
            self.wake()
        interrupt = self.interrupt
        if interrupt is not None:
            interrupt()

    def sleep(self, channel: Channel) -> None:
        """Sleep until the channel has an item or is ended."""
        waker = Lock()
        waker.acquire()
        self.wakers.append(waker)
        woken = False
        try:
            if not channel.queue.items and not channel.ended:
                waker.acquire()
                woken = True
        finally:
            if not woken:
                self._leave(waker, channel)

    def _leave(self, waker: Lock, channel: Channel) -> None:
        """Wait no more, because there is an item already, or an exception ends the wait."""
        try:
            self.wakers.remove(waker)
        except ValueError:
            # Woken meanwhile: if this thread does not take the item, another must.
            if channel.queue.items and self.wakers:
                self.wake()
