"""Waiting until something about a node is so: threads by its lock, tasks on its loop."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from zenlake.engine.loop import Loop


class Changes:
    """Those who wait for a node to change."""

    def __init__(self, lock: threading.RLock, loop: Loop) -> None:
        """`lock` guards the node."""
        self._lock = lock
        self._loop = loop
        self._threads = threading.Condition(lock)
        self._tasks: list[asyncio.Event] = []

    def notify(self) -> None:
        """Have all who wait look again; the lock is held."""
        self._threads.notify_all()
        for heard in self._tasks:
            self._loop.soon(heard.set)

    def wait(self, ready: Callable[[], bool], patience: float | None) -> None:
        """Wait in a thread that holds the lock, but not for ever."""
        self._threads.wait_for(ready, patience)

    async def until(self, ready: Callable[[], bool], patience: float | None) -> None:
        """Wait on the loop, but not for ever."""
        heard = asyncio.Event()
        self._tasks.append(heard)
        try:
            async with asyncio.timeout(patience):
                while True:
                    with self._lock:
                        if ready():
                            return
                    heard.clear()
                    await heard.wait()
        except TimeoutError:
            return
        finally:
            self._tasks.remove(heard)
