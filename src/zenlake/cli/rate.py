"""How often something comes and how large it is, over the last so many times."""

from __future__ import annotations

import math
import threading
import time
from collections import deque
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from zenlake.node.sample import Sample


@dataclass(frozen=True, slots=True)
class Spread:
    """A few numbers for many."""

    mean: float
    least: float
    most: float
    deviation: float

    @classmethod
    def of(cls, numbers: list[float]) -> Spread:
        """Of at least one."""
        mean = math.fsum(numbers) / len(numbers)
        variance = math.fsum((number - mean) ** 2 for number in numbers) / len(numbers)
        return cls(mean, min(numbers), max(numbers), math.sqrt(variance))


class Window:
    """The last samples that came: when, and of what size; any thread may add to it."""

    def __init__(self, most: int, enough: int | None = None) -> None:
        """`most`: how many are remembered; `full` is set when `enough` have come."""
        self.full = threading.Event()
        self.count = 0
        self._enough = enough
        self._lock = threading.Lock()
        self._came: deque[tuple[float, int]] = deque(maxlen=most)

    def heard(self, sample: Sample) -> None:
        """A sample came."""
        self.add(time.monotonic(), sample.size())

    def add(self, when: float, size: int) -> None:
        """Something came."""
        with self._lock:
            if self.full.is_set():
                return
            self._came.append((when, size))
            self.count += 1
            if self.count == self._enough:
                self.full.set()

    def periods(self) -> Spread | None:
        """The times between two; None before the second."""
        with self._lock:
            times = [when for when, _ in self._came]
        if len(times) < 2:
            return None
        return Spread.of([after - before for before, after in pairwise(times)])

    def sizes(self) -> Spread | None:
        """The sizes; None before the first."""
        with self._lock:
            sizes = [float(size) for _, size in self._came]
        return Spread.of(sizes) if sizes else None

    def bandwidth(self) -> float:
        """Bytes a second, from the first that is remembered to the last."""
        with self._lock:
            came = list(self._came)
        if len(came) < 2 or came[-1][0] <= came[0][0]:
            return 0.0
        # The first marks the beginning: its bytes were before.
        return sum(size for _, size in came[1:]) / (came[-1][0] - came[0][0])

    def remembered(self) -> int:
        """How many it is about."""
        with self._lock:
            return len(self._came)
