"""Writes of many keys by neighbours that may not write all of them, on their way to the stores.

Access control denies such a write as a whole, and notes it here under the node's lock. A thread,
which is there while there is something to do, has each store of the node apply it to the keys that
the store knows and the sender may write.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from typing import Final

from zenlake.clock.throttle import LineBudget, Throttle
from zenlake.engine.fair_queue import FairQueue
from zenlake.errors import ZError
from zenlake.node.narrowed_write import NarrowedWrite

__all__ = ["NarrowedWrites", "Store"]

log = logging.getLogger("zenlake.engine")

WAITING: Final = 64
"""Narrowed writes that wait for the stores of a node."""
WAITING_OF_SENDER: Final = 16
"""Writes of one neighbour that may wait."""
WAITING_BYTES: Final = 64 << 20
"""Bytes of their values."""
LINES: Final = 20
"""Lines a minute about writes that were not applied."""

Store = Callable[[NarrowedWrite], bool]
"""Applies a write to the keys that it knows; False: they are too many, and none was changed."""


class NarrowedWrites:
    """Has the stores of one node apply narrowed writes, one write after the other."""

    def __init__(self) -> None:
        """No store and no write is known."""
        self._lock = threading.Lock()
        self._stores: list[Store] = []
        self._queue: FairQueue[NarrowedWrite] = FairQueue()
        self._bytes = 0
        self._working = False
        self._lines = Throttle(budget=LineBudget(LINES))
        #: Writes that were applied, and writes that were not: too many wait, or too many keys.
        self.applied = 0
        self.refused = 0

    @property
    def is_idle(self) -> bool:
        """Return True if every write that came is applied."""
        return not self._working

    def add_store(self, store: Store) -> None:
        """Have a store apply what comes from now on."""
        with self._lock:
            self._stores.append(store)

    def remove_store(self, store: Store) -> None:
        """Have a store apply nothing any more."""
        with self._lock:
            if store in self._stores:
                self._stores.remove(store)

    def add(self, write: NarrowedWrite) -> None:
        """Take a write; never waits."""
        with self._lock:
            if not self._stores:
                return
            queue = self._queue
            full = len(queue) >= WAITING or queue.waiting_of(write.sender) >= WAITING_OF_SENDER
            if full or (len(queue) and self._bytes + write.size > WAITING_BYTES):
                self._refuse(write, "too many such writes wait")
                return
            queue.add(write.sender, write)
            self._bytes += write.size
            if self._working:
                return
            self._working = True
        threading.Thread(target=self._work, name="zenlake narrowed writes", daemon=True).start()

    def _work(self) -> None:
        """Apply what waits, until nothing does."""
        while True:
            with self._lock:
                sender = self._queue.next_asker()
                if sender is None:
                    self._working = False
                    return
                write = self._queue.take(sender)
                self._bytes -= write.size
                stores = list(self._stores)
            for store in stores:
                try:
                    fits = store(write)
                except ZError as error:
                    # It is closed, or its disk fails, which it says itself.
                    log.debug("'%s' was not applied: %s", write.expr, error)
                    continue
                if not fits:
                    with self._lock:
                        self._refuse(write, "it would change too many keys or bytes")
            with self._lock:
                self.applied += 1

    def _refuse(self, write: NarrowedWrite, why: str) -> None:
        """Count a write that is not applied; the lock is held."""
        self.refused += 1
        what = f"'{write.expr[:200]}'"
        line = self._lines.line(time.monotonic(), why, what)
        if line is not None:
            log.warning(
                "a write of %s by who may write some of its keys is dropped: %s", what, line
            )
