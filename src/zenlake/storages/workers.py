"""Threads that answer queries, of which no asker has all.

An answer may wait: for a volume, or for an asker that does not read. Each asker has at most a share
of the threads; what it asks beyond that waits in a queue of its own, and everybody else goes on.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Hashable
from concurrent.futures import ThreadPoolExecutor
from typing import Final

__all__ = ["Workers"]

#: How many threads answer for one storage, and how many of them for one asker.
THREADS: Final = 16
SHARE: Final = 4
#: How many queries may wait or be answered, and how many of one asker.
MOST: Final = 256
MOST_OF_ONE: Final = 128


class Workers:
    """A pool of threads with a share for each asker."""

    def __init__(self, name: str, threads: int = THREADS, share: int = SHARE) -> None:
        """Threads are started when there is work for them."""
        self._pool = ThreadPoolExecutor(threads, name)
        self._share = share
        self._lock = threading.Lock()
        self._count = 0
        self._working: dict[Hashable, int] = {}
        self._waiting: dict[Hashable, deque[Callable[[], None]]] = {}

    def submit(self, asker: Hashable, work: Callable[[], None]) -> bool:
        """Have work done for an asker; False if too much waits already."""
        with self._lock:
            waiting = self._waiting.get(asker)
            mine = self._working.get(asker, 0)
            if self._count >= MOST or mine + len(waiting or ()) >= MOST_OF_ONE:
                return False
            self._count += 1
            if mine >= self._share:
                self._waiting.setdefault(asker, deque()).append(work)
                return True
            self._working[asker] = mine + 1
        self._start(asker, work)
        return True

    def _start(self, asker: Hashable, work: Callable[[], None]) -> None:
        try:
            self._pool.submit(self._run, asker, work)
        except RuntimeError:  # closed
            with self._lock:
                self._done(asker)

    def _run(self, asker: Hashable, work: Callable[[], None]) -> None:
        try:
            work()
        finally:
            with self._lock:
                following = self._done(asker)
            if following is not None:
                self._start(asker, following)

    def _done(self, asker: Hashable) -> Callable[[], None] | None:
        """One piece of an asker's work is over; gives the next one, which takes its place."""
        self._count -= 1
        waiting = self._waiting.get(asker)
        if waiting:
            following = waiting.popleft()
            if not waiting:
                del self._waiting[asker]
            return following
        self._working[asker] -= 1
        if not self._working[asker]:
            del self._working[asker]
        return None

    def close(self) -> None:
        """Begin nothing more, and wait for what has begun."""
        with self._lock:
            self._waiting.clear()
        self._pool.shutdown(wait=True, cancel_futures=True)
