"""A condition variable of a node that threads and tasks can wait at."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from zenlake.engine.loop import EventLoop


class Changes:
    """The threads and tasks that wait until a predicate about the node holds."""

    def __init__(self, lock: threading.RLock, loop: EventLoop) -> None:
        """`lock` guards the node."""
        self._lock = lock
        self._loop = loop
        self._threads = threading.Condition(lock)
        self._tasks: list[asyncio.Event] = []

    def notify(self) -> None:
        """Have all waiters check their predicates; the lock is held."""
        self._threads.notify_all()
        for changed in self._tasks:
            self._loop.soon(changed.set)

    def wait(self, ready: Callable[[], bool], patience: float | None) -> None:
        """Wait until `ready()`, or for `patience` seconds, as a thread that holds the lock."""
        self._threads.wait_for(ready, patience)

    async def until(self, ready: Callable[[], bool], patience: float | None) -> None:
        """Wait until `ready()`, or for `patience` seconds, as a task."""
        changed = asyncio.Event()
        self._tasks.append(changed)
        try:
            async with asyncio.timeout(patience):
                while True:
                    with self._lock:
                        if ready():
                            return
                    changed.clear()
                    await changed.wait()
        except TimeoutError:
            return
        finally:
            self._tasks.remove(changed)
