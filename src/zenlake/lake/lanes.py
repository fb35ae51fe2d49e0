"""Threads that answer, askers in turn: who asks much waits behind himself.

Each asker has a lane. A thread that is free takes the first question of the lane whose turn was
longest ago; and no asker has all threads at once, so that one is left for who comes next.
"""

from __future__ import annotations

import threading
from collections import OrderedDict, deque
from collections.abc import Callable, Hashable
from typing import Final, final

__all__ = ["Lanes"]

MOST: Final = 256
MOST_OF_ONE: Final = 128
"""How many questions may wait, and how many of one asker."""


@final
class Lanes:
    """Does work of many askers with a few threads."""

    def __init__(
        self, name: str, threads: int, most: int = MOST, most_of_one: int = MOST_OF_ONE
    ) -> None:
        """Start the threads; `most` questions may wait, and so many of one asker."""
        self._changed = threading.Condition()
        #: Those that wait, by asker; the asker whose turn is next comes first.
        self._lanes: OrderedDict[Hashable, deque[Callable[[], None]]] = OrderedDict()
        self._working: dict[Hashable, int] = {}
        self._share = max(1, threads - 1)
        self._most = most
        self._most_of_one = most_of_one
        self._over = False
        self.waiting = 0
        self.refused = 0
        self._threads = [
            threading.Thread(target=self._work, name=f"{name} {n}", daemon=True)
            for n in range(threads)
        ]
        for thread in self._threads:
            thread.start()

    def submit(self, who: Hashable, work: Callable[[], None]) -> bool:
        """Have work done in this asker's turn; False if too much waits, or it is closed."""
        with self._changed:
            lane = self._lanes.get(who, ())
            if self._over or self.waiting >= self._most or len(lane) >= self._most_of_one:
                self.refused += 1
                return False
            self._lanes.setdefault(who, deque()).append(work)
            self.waiting += 1
            self._changed.notify()
        return True

    def close(self) -> None:
        """Begin nothing more, and wait for what has begun."""
        with self._changed:
            self._over = True
            self._changed.notify_all()
        for thread in self._threads:
            thread.join()

    def _work(self) -> None:
        while (taken := self._taken()) is not None:
            who, work = taken
            try:
                work()
            finally:
                with self._changed:
                    self._working[who] -= 1
                    if not self._working[who]:
                        del self._working[who]
                    self._changed.notify()

    def _taken(self) -> tuple[Hashable, Callable[[], None]] | None:
        """The next work, when there is some; None at the end."""
        with self._changed:
            while True:
                if self._over:
                    return None
                who = next(
                    (one for one in self._lanes if self._working.get(one, 0) < self._share), None
                )
                if who is not None:
                    break
                self._changed.wait()
            lane = self._lanes[who]
            work = lane.popleft()
            self.waiting -= 1
            if lane:
                self._lanes.move_to_end(who)
            else:
                del self._lanes[who]
            self._working[who] = self._working.get(who, 0) + 1
            return who, work
