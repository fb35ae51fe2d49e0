"""What is to be over by a certain time, the earliest first.

Most of it is over long before. That costs nothing at the time: it is only marked, and swept out
when more than half of what is kept is no longer waited for.
"""

from __future__ import annotations

import heapq
from typing import Final

NEVER: Final = float("inf")

#: So many are kept without a look at how many are still waited for.
UNSWEPT: Final = 64


class Timed:
    """Something that is waited for until its deadline."""

    __slots__ = ("deadline", "waited_for")

    def __init__(self, deadline: float) -> None:
        """Not waited for until it is added."""
        self.deadline: float = deadline
        self.waited_for: bool = False


class Deadlines:
    """All that is waited for."""

    __slots__ = ("_count", "_heap", "waiting")

    def __init__(self) -> None:
        """Nothing yet."""
        self._heap: list[tuple[float, int, Timed]] = []
        self._count: int = 0
        #: How many are waited for.
        self.waiting: int = 0

    def __len__(self) -> int:
        """How many are kept, also of those that are over."""
        return len(self._heap)

    def add(self, item: Timed) -> None:
        """Wait for something."""
        self._count += 1
        self.waiting += 1
        item.waited_for = True
        heapq.heappush(self._heap, (item.deadline, self._count, item))

    def over(self, item: Timed) -> None:
        """Wait for something no more."""
        if item.waited_for:
            item.waited_for = False
            self.waiting -= 1
            if len(self._heap) > UNSWEPT and len(self._heap) > 2 * self.waiting:
                self._heap = [entry for entry in self._heap if entry[2].waited_for]
                heapq.heapify(self._heap)

    def next(self) -> float:
        """The earliest deadline of all that is waited for."""
        heap = self._heap
        while heap:
            if heap[0][2].waited_for:
                return heap[0][0]
            heapq.heappop(heap)
        return NEVER

    def due(self, now: float, most: int = 1 << 30) -> list[Timed]:
        """The entries whose deadline has passed, at most `most`; they are removed."""
        due: list[Timed] = []
        while len(due) < most and self.next() <= now:
            item = heapq.heappop(self._heap)[2]
            item.waited_for = False
            self.waiting -= 1
            due.append(item)
        return due
