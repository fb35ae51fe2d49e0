"""When a continuous query has stood still for too long; pure.

    stillness = Stillness()
    stillness.looked(0.0, True, 2, "Processing new data")       # in a micro-batch
    stillness.looked(61.0, True, 2, "Processing new data")      # 61.0: it stands still

What is seen of a query: whether it is in a micro-batch, how many it has finished, and what it says
that it does. If nothing of that changes within a micro-batch for as long as one may take, it stands
still. How long that is learns from the batches that were finished, and doubles with every new start
that did not help: one that is only slow gets its time in the end.
"""

from __future__ import annotations

from typing import Final, final

__all__ = ["MOST", "PATIENCE", "StallDetector"]

PATIENCE: Final = 60.0
"""Seconds without any progress that are too many, where no batch was ever slow."""

MOST: Final = 1800.0
"""Seconds that are too many in any case."""

LONGER: Final = 4.0
"""So many times as long as the longest batch before may another one take."""


@final
class StallDetector:
    """Watches one query through all its starts."""

    def __init__(self, patience: float = PATIENCE) -> None:
        """Nothing was seen of it yet."""
        self.restarts = 0
        self._patience = patience
        self._since: float | None = None
        self._seen: tuple[int, str] = (0, "")
        self._longest = 0.0
        self._in_vain = 0

    @property
    def allowed(self) -> float:
        """Seconds that it may stand still now."""
        learnt = max(self._patience * 2.0**self._in_vain, LONGER * self._longest)
        return min(MOST, learnt)

    def observe(self, now: float, busy: bool, batches: int, doing: str) -> float | None:
        """Take in what is seen of it; for how long it has stood still, if that is too long."""
        before = self._since
        finished = batches > self._seen[0]
        if finished:
            self._in_vain = 0
            if before is not None:
                self._longest = max(self._longest, now - before)
        if before is None or not busy or (batches, doing) != self._seen:
            self._seen = (batches, doing)
            self._since = now
            return None
        still = now - before
        return still if still >= self.allowed else None

    def started_again(self) -> None:
        """It was ended because it stood still, and begins anew."""
        self.restarts += 1
        self._in_vain = min(self._in_vain + 1, 16)
        self._seen = (0, "")
        self._since = None
