"""Threads that answer queries, queriers in turn: the queries of one wait behind each other.

Askers take turns (`FairQueue`), and none has more than a share of the threads at once: an answer
may wait for a disk or for an asker that does not read, and then the others go on.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Hashable
from typing import Final, final

from zenlake.engine.fair_queue import FairQueue

__all__ = ["AskerLanes"]

log = logging.getLogger("zenlake.engine")

MOST: Final = 256
MOST_OF_ONE: Final = 128
"""How many queries may wait, and how many of one asker."""


@final
class AskerLanes:
    """A pool of threads that does the work of many askers."""

    def __init__(
        self,
        name: str,
        threads: int,
        share: int | None = None,
        *,
        most: int = MOST,
        most_of_one: int | None = None,
    ) -> None:
        """So many `threads`, started when there is work; `share` of them for one asker at once.

        Without `share` all but one: it is left for who comes next. `most` queries may wait, and
        `most_of_one` of one asker: half of them, if not said.
        """
        self._name = name
        self._most_threads = threads
        self._share = max(1, threads - 1) if share is None else share
        self._most = most
        self._most_of_one = (
            max(1, min(MOST_OF_ONE, most // 2)) if most_of_one is None else most_of_one
        )
        self._changed = threading.Condition()
        self._queue: FairQueue[Callable[[], None]] = FairQueue()
        self._working: dict[Hashable, int] = {}
        self._threads: list[threading.Thread] = []
        self._idle = 0
        self._over = False
        self.refused = 0

    @property
    def waiting(self) -> int:
        """How many queries wait for a thread."""
        return len(self._queue)

    def submit(self, asker: Hashable, work: Callable[[], None]) -> bool:
        """Have work done in this asker's turn; False if too much waits, or it is closed."""
        with self._changed:
            mine = self._queue.waiting_of(asker)
            if self._over or self.waiting >= self._most or mine >= self._most_of_one:
                self.refused += 1
                return False
            self._queue.add(asker, work)
            # Idle threads that were notified may not have woken yet: count what waits for them.
            if self.waiting > self._idle and len(self._threads) < self._most_threads:
                name = f"{self._name} {len(self._threads)}"
                thread = threading.Thread(target=self._work, name=name, daemon=True)
                self._threads.append(thread)
                thread.start()
            else:
                self._changed.notify()
        return True

    def end(self) -> None:
        """Begin nothing more, and let go what waits: its askers are told at once."""
        with self._changed:
            self._over = True
            waiting, self._queue = self._queue, FairQueue()
            self._changed.notify_all()
        # Without the lock: queries are finalised with their last reference.
        del waiting

    def close(self) -> None:
        """Begin nothing more, and wait for what has begun."""
        self.end()
        for thread in self._threads:
            thread.join()

    def _work(self) -> None:
        while (taken := self._taken()) is not None:
            asker, work = taken
            try:
                work()
            except Exception:
                # The thread goes on: it is one of a few, and others wait for it.
                log.exception("work for %s failed", asker)
            finally:
                with self._changed:
                    self._working[asker] -= 1
                    if not self._working[asker]:
                        del self._working[asker]
                    self._changed.notify()

    def _taken(self) -> tuple[Hashable, Callable[[], None]] | None:
        """The next work, when there is some; None at the end."""
        with self._changed:
            while True:
                if self._over:
                    return None
                asker = self._queue.next_asker(self._has_share)
                if asker is not None:
                    break
                self._idle += 1
                self._changed.wait()
                self._idle -= 1
            self._working[asker] = self._working.get(asker, 0) + 1
            return asker, self._queue.take(asker)

    def _has_share(self, asker: Hashable) -> bool:
        """Whether an asker has fewer threads than it may have."""
        return self._working.get(asker, 0) < self._share
