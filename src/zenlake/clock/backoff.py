"""How long to wait before the next try: longer after each failure, up to a bound.

retry = Backoff(0.5, 30.0)
pause = retry.after(0.0)     # 0.5: the first failure
pause = retry.after(pause)   # 1.0, then 2.0, … 30.0
"""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["Backoff"]


class Backoff(NamedTuple):
    """The pauses between tries, in seconds; `most` 0 means that they grow without bound.

    As `connect/retry` of Zenoh has it, the bound is for the pauses after the first.
    """

    first: float
    most: float
    factor: float = 2.0

    def after(self, pause: float) -> float:
        """Return the pause that follows another one; 0 stands for none."""
        if pause <= 0.0:
            return self.first
        longer = pause * self.factor
        return longer if self.most <= 0.0 else min(longer, self.most)
