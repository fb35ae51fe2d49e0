"""How often something comes and how large it is, over the last so many times."""

from __future__ import annotations

import math
import threading
import time
from collections import deque
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from zenlake.cli.natural import natural

if TYPE_CHECKING:
    from zenlake.node.sample import Sample

#: How many keys are told apart, and what all others are called.
MOST_KEYS = 1000
OTHERS = "other keys"


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

    def __init__(self, most: int) -> None:
        """`most`: how many are remembered."""
        self.count = 0
        self._lock = threading.Lock()
        self._came: deque[tuple[float, int]] = deque(maxlen=most)

    def add(self, when: float, size: int) -> None:
        """Something came."""
        with self._lock:
            self._came.append((when, size))
            self.count += 1

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


class Windows:
    """A window for each key; what comes on too many keys is measured together."""

    def __init__(self, most: int, enough: int | None = None) -> None:
        """`most`: samples remembered of a key; `full` is set when `enough` have come in all."""
        self.full = threading.Event()
        self._count = 0
        self._most = most
        self._enough = enough
        self._lock = threading.Lock()
        self._keys: dict[str, Window] = {}

    def heard(self, sample: Sample) -> None:
        """A sample came."""
        self.add(str(sample.key_expr), time.monotonic(), sample.size())

    def add(self, key: str, when: float, size: int) -> None:
        """Something came on a key."""
        with self._lock:
            if self.full.is_set():
                return
            window = self._keys.get(key)
            if window is None:
                name = key if len(self._keys) < MOST_KEYS else OTHERS
                window = self._keys.setdefault(name, Window(self._most))
            window.add(when, size)
            self._count += 1
            if self._count == self._enough:
                self.full.set()

    def by_key(self) -> list[tuple[str, Window]]:
        """The windows, in the order of their keys."""
        with self._lock:
            return sorted(self._keys.items(), key=lambda one: natural(one[0]))
