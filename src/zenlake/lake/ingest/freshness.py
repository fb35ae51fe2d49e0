"""How long rows wait for the tables: from when they were durable until they can be asked for."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Final, final

__all__ = ["Freshness"]

MOST: Final = 600
"""Looks at the journal that are remembered; of more, every other is forgotten."""


@final
class Freshness:
    """Remembers when each end of the journal was first seen, until the tables have it."""

    def __init__(self) -> None:
        """Nothing was seen yet."""
        self._seen: deque[tuple[float, tuple[int, ...]]] = deque()
        self._last = 0.0

    def seen(self, now: float, ends: Sequence[int]) -> None:
        """The journal is durable up to here, for each partition."""
        offsets = tuple(ends)
        if self._seen and self._seen[-1][1] == offsets:
            return
        self._seen.append((now, offsets))
        if len(self._seen) > MOST:
            self._seen = deque(list(self._seen)[::2])

    def reached(self, now: float, ends: Sequence[int]) -> float:
        """Every table has all up to here: gives how long the oldest row waited, or waits now."""
        waits = self.waits(now, ends)
        return max(waits, self._last)

    def waits(self, now: float, ends: Sequence[int]) -> float:
        """Every table has all up to here: return how long the oldest other row waits now, or 0."""
        waited: float | None = None
        while self._seen and all(
            has >= end for has, end in zip(ends, self._seen[0][1], strict=False)
        ):
            at, _ = self._seen.popleft()
            waited = now - at if waited is None else waited
        if waited is not None:
            self._last = waited
        return now - self._seen[0][0] if self._seen else 0.0
