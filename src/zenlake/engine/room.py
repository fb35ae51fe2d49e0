"""Waiting for room in an outbox: threads, tasks, and links that are not read meanwhile.

The outbox calls `freed` whenever a batch has left, and `closed` at its end. Everything here is
guarded by the outbox's lock, which `Condition.wait` releases while a thread sleeps.
"""

from __future__ import annotations

import threading
from typing import cast, final

from zenlake.engine.back_pressure import Pausable, Waker
from zenlake.engine.mutex import Mutex


@final
class RoomWaiters:
    """The threads, tasks and links that wait for room in one outbox."""

    __slots__ = ("condition", "links", "supervised", "threads", "wakers")

    def __init__(self, lock: Mutex) -> None:
        """`lock`: the lock of the outbox."""
        self.condition: threading.Condition = threading.Condition(cast(threading.Lock, lock))
        #: How many threads wait at the condition, or at the socket.
        self.threads: int = 0
        #: Woken once when a batch has left: each belongs to a task.
        self.wakers: list[Waker] = []
        #: Links that are not read until no lane is full.
        self.links: list[Pausable] = []
        #: Whether a timer sees to it that the outbox still moves while links are paused.
        self.supervised: bool = False

    def freed(self) -> None:
        """A batch has left: threads and tasks look again whether their lane has room."""
        if self.threads:
            self.condition.notify_all()
        if self.wakers:
            self._wake_tasks()

    def closed(self) -> None:
        """There will be no room: all waiters go on."""
        self.condition.notify_all()
        self._wake_tasks()
        self.resume_links()

    def _wake_tasks(self) -> None:
        wakers = self.wakers
        self.wakers = []
        for waker in wakers:
            waker.release()

    def resume_links(self) -> None:
        """Have the paused links read again."""
        links = self.links
        self.links = []
        for link in links:
            link.resume_soon()
