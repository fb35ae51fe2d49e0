"""Judge how old data is by a wall clock that somebody may set.

    clock = AgeClock(times_of_data)
    clock.time(wall=1000.0, steady=10.0)         # 1000.0
    clock.time(wall=32_000_000.0, steady=20.0)   # 1010.0: the wall clock was set
    clock.held                                   # 31_998_990.0

Where the wall clock goes ahead of a steady one, nothing may be deleted for its age at once: the
date may be wrong. The step is held back for a day, in which somebody can set the date right. A
program that starts has no steady clock to compare with, so it looks at the times of what was
recorded before: a long pause there may be a step, too.

Time is an argument: `wall` in seconds since 1970, `steady` in those of any clock that nobody sets.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from typing import Final, final

__all__ = ["HOLD_SECONDS", "PAUSE_SECONDS", "STEP_SECONDS", "AgeClock"]

STEP_SECONDS: Final = 60.0
"""A wall clock that gains more than this between two looks was set."""

PAUSE_SECONDS: Final = 6 * 3600.0
"""A pause between recorded data that is longer may be a clock that was set."""

HOLD_SECONDS: Final = 24 * 3600.0
"""Steady time after which a wall clock that was set is believed."""


@final
class AgeClock:
    """Return the time by which ages are judged: the wall clock without recent steps ahead."""

    def __init__(self, past: Iterable[float] = ()) -> None:
        """Take the wall-clock times at which data was recorded before, in any order."""
        self._past: list[float] = sorted(past)
        self._begun: bool = False
        self._wall: float = 0.0
        self._steady: float = 0.0
        self._until: float = 0.0
        #: Seconds by which the wall clock is not believed; 0.0 if it is.
        self.held: float = 0.0

    def time(self, wall: float, steady: float) -> float:
        """Return the time by which ages are judged now."""
        if self._begun:
            gained = wall - self._wall - (steady - self._steady)
            if gained > STEP_SECONDS:
                self.held += gained
                self._until = steady + HOLD_SECONDS
            elif gained < 0.0:
                # A date that is set back takes the step back.
                self.held = max(0.0, self.held + gained)
        else:
            self._begin(wall, steady)
        self._wall, self._steady = wall, steady
        if steady >= self._until:
            self.held = 0.0
        return wall - self.held

    def _begin(self, wall: float, steady: float) -> None:
        """Hold the pauses before data of the last day, and the pause until now."""
        self._begun = True
        times = [one for one in self._past if one <= wall]
        self._past = []
        for before, after in pairwise([*times, wall]):
            if after - before > PAUSE_SECONDS and wall - after < HOLD_SECONDS:
                self.held += after - before
                self._until = steady + HOLD_SECONDS - (wall - after)
