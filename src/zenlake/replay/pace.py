"""How fast a replay goes: which recorded moment it is at, and when the next sample is due.

    pace = Pace(speed=4.0, at=first, now=0.0)      # the recorded moment `first` is now
    pace.wait(moment, now)                         # seconds until it is due; None while paused

Recorded moments are nanoseconds since 1970, the present is seconds on any clock that only goes
forward. A replay that was held up catches up: its samples keep their distances to its beginning.
"""

from __future__ import annotations

import math
from typing import Final, final

from zenlake.errors import LocalError

__all__ = ["FASTEST", "MAX", "SLOWEST", "Pace", "speed_of"]

MAX: Final = math.inf
"""As fast as samples are taken."""

SLOWEST: Final = 0.001
FASTEST: Final = 100_000.0
SECOND: Final = 1_000_000_000


def speed_of(text: str | float) -> float:
    """A speed as people write it: `original`, `max`, or how many times faster."""
    if text == "original":
        return 1.0
    if text == "max":
        return MAX
    try:
        speed = float(text)
    except (TypeError, ValueError):
        speed = math.nan
    if not SLOWEST <= speed <= FASTEST:
        raise LocalError(
            f"'{text}' is no speed; write original, max, or a number such as 4 or 0.5, from "
            f"{SLOWEST:g} to {FASTEST:,.0f}"
        )
    return speed


@final
class Pace:
    """The clock of a replay: it runs, stands still, and can be put to another moment."""

    def __init__(self, speed: float, at: int, now: float) -> None:
        """At a recorded moment, from now on."""
        self.speed = speed
        self.paused = False
        #: How many samples may pass although it is paused.
        self.steps = 0
        self._at = at
        self._since = now

    def position(self, now: float) -> int:
        """The recorded moment that it is now."""
        if self.paused or self.speed == MAX:
            return self._at
        return self._at + round((now - self._since) * self.speed * SECOND)

    def wait(self, moment: int, now: float) -> float | None:
        """How many seconds until a recorded moment is due; None: not before something is said."""
        if self.paused:
            return 0.0 if self.steps else None
        if self.speed == MAX:
            return 0.0
        return max(0.0, (moment - self.position(now)) / SECOND / self.speed)

    def passed(self, moment: int) -> None:
        """A sample of this moment has been published."""
        if self.steps:
            self.steps -= 1
        if self.paused or self.speed == MAX:
            # Nothing else moves these clocks on.
            self._at = max(self._at, moment)

    def pause(self, now: float) -> None:
        """Stand still."""
        self._at = self.position(now)
        self.paused, self.steps = True, 0

    def resume(self, now: float) -> None:
        """Go on from where it stands."""
        if self.paused:
            self.paused, self.steps, self._since = False, 0, now

    def step(self, count: int, now: float) -> None:
        """Let so many samples pass, and stand still."""
        if not self.paused:
            self.pause(now)
        self.steps += count

    def go(self, speed: float, now: float) -> None:
        """Go at another speed from here on."""
        self._at = self.position(now)
        self._since = now
        self.speed = speed

    def seek(self, moment: int, now: float) -> None:
        """Be at another moment, running or standing as before."""
        self._at, self._since, self.steps = moment, now, 0
