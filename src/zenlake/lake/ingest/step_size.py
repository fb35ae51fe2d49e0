"""How many rows and bytes a step may take: half after a failure, twice as many after a success.

    size = StepSize(2_000_000, 4 << 30)
    size.failed(575_012)     # the step took so many; the next takes 287 506 at most
    size.succeeded()         # 575 012, then 1 150 024, then 2 000 000

A step commits all of its rows or none. Where something ends every long step (a killed process, a
worker without memory, a store that breaks off long writes), smaller steps still get through.
"""

from __future__ import annotations

from typing import Final, final

__all__ = ["SMALL_ROWS", "StepSize"]

SMALL_ROWS: Final = 50_000
"""Rows of the first step after the process died in one."""


@final
class StepSize:
    """Rows and bytes that the next step may take, one row at least."""

    def __init__(self, rows: int, bytes: int) -> None:
        """`rows`, `bytes`: as many as a step takes while nothing fails."""
        self._full = (rows, bytes)
        self.rows = rows
        self.bytes = bytes

    @property
    def is_full(self) -> bool:
        """Whether a step takes as much as is configured."""
        return (self.rows, self.bytes) == self._full

    def failed(self, taken: int) -> None:
        """Halve the size: a step of `taken` rows failed."""
        if 0 < taken < self.rows:
            self.rows = taken
        self.rows = max(1, self.rows // 2)
        self.bytes = max(1, self.bytes // 2)

    def died(self, taken: int) -> None:
        """Begin small: the process died in a step that might take `taken` rows."""
        self.failed(taken)
        self.rows = min(self.rows, SMALL_ROWS)

    def succeeded(self) -> None:
        """Double the size, up to what is configured."""
        rows, bytes = self._full
        self.rows = min(rows, 2 * self.rows)
        self.bytes = min(bytes, 2 * self.bytes)
