"""How much of a disk the journal may take, and when the disk will be full: pure functions."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import Final

__all__ = ["Disk", "Trend", "default_budget", "forecast", "reserve"]

SHARE: Final = 0.2
"""The share of a disk that the journal takes, if nothing else is said."""

OF_ROOM: Final = 0.4
"""The share of the room that is left which it takes at most."""

KEEP_FREE: Final = 0.02
"""The share of a disk that counts as full: filesystems slow down and fail before their end."""

WINDOW: Final = 3600.0
SPACING: Final = 10.0
ENOUGH: Final = 60.0


@dataclass(frozen=True, slots=True)
class Disk:
    """A disk in bytes: its size, what is free, and what journal and lake hold."""

    total: int
    free: int
    journal: int = 0
    lake: int = 0


def default_budget(disk: Disk) -> int:
    """How many bytes the journal may have, unless configured: a fifth of the disk.

    On a disk that is nearly full it is two fifths of what is free or already the journal's, so
    that the lake finds room beside it.
    """
    room = disk.free + disk.journal
    return max(1 << 20, min(int(disk.total * SHARE), int(room * OF_ROOM)))


def reserve(disk: Disk) -> int:
    """With how many free bytes a disk counts as full."""
    return int(disk.total * KEEP_FREE)


def forecast(
    disk: Disk, budget: int | None, journal_rate: float, other_rate: float
) -> float | None:
    """Seconds until the disk is full; None if it does not fill up.

    The journal grows at `journal_rate` bytes a second until it has its budget, everything else
    (the lake, other programs) at `other_rate`.
    """
    room = float(disk.free - reserve(disk))
    if room <= 0:
        return 0.0
    journal_rate, other_rate = max(0.0, journal_rate), max(0.0, other_rate)
    both = journal_rate + other_rate
    if budget is not None and journal_rate > 0:
        until = max(0.0, budget - disk.journal) / journal_rate
        if both * until < room:
            return until + (room - both * until) / other_rate if other_rate > 0 else None
    return room / both if both > 0 else None


class Trend:
    """How fast a number grows, by what it was within the last hour."""

    def __init__(self, window: float = WINDOW, spacing: float = SPACING) -> None:
        """Remembers at most two values for each `spacing` of the `window`."""
        self._window = window
        self._spacing = spacing
        self._seen: deque[tuple[float, float]] = deque()

    def add(self, now: float, value: float) -> None:
        """What the number is at this moment; values that come quickly replace each other."""
        if len(self._seen) > 1 and now - self._seen[-2][0] < self._spacing:
            self._seen.pop()
        self._seen.append((now, value))
        while now - self._seen[0][0] > self._window:
            self._seen.popleft()

    @property
    def rate(self) -> float | None:
        """Its growth a second; None until a minute has been seen."""
        if not self._seen or self._seen[-1][0] - self._seen[0][0] < ENOUGH:
            return None
        (first, low), (last, high) = self._seen[0], self._seen[-1]
        return (high - low) / (last - first)
