"""How old the newest answer is: the age of the oldest row that is durable and not in the tables."""

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

    def seen(self, now: float, ends: Sequence[int]) -> None:
        """The journal is durable up to here, for each partition."""
        told = tuple(ends)
        if self._seen and self._seen[-1][1] == told:
            return
        self._seen.append((now, told))
        if len(self._seen) > MOST:
            self._seen = deque(list(self._seen)[::2])

    def reached(self, now: float, ends: Sequence[int]) -> float:
        """Every table has all up to here: gives the age of the oldest row that one lacks."""
        while self._seen and all(
            has >= end for has, end in zip(ends, self._seen[0][1], strict=False)
        ):
            self._seen.popleft()
        return now - self._seen[0][0] if self._seen else 0.0
