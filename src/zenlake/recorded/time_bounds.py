"""A range of time as the first and the last time of the wire in it.

A sample has one time, the NTP64 of its timestamp. Its other forms are read off that one: the
nanosecond (`NTP64.as_nanos`), the microsecond of tables, and `hlc`, the signed number that columns
have. So a range in any of these is two NTP64, and who compares those decides as all others do.

    nanosecond n         every time after n - 1, up to n
    microsecond m        the nanoseconds from 1000 m up to 1000 m + 999
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Self

from zenlake.clock import NTP64

if TYPE_CHECKING:
    from zenlake.keys import ResolvedRange

__all__ = ["ALL_TIME", "HLC_BIAS", "TimeBounds", "last_of"]

#: What is added to `hlc` to get the 64 bits of the time as they were on the wire. A signed long
#: that is shifted keeps the order of all 64 bits; a cast would turn 2038 into the past.
HLC_BIAS: Final = 1 << 63

_LAST: Final = (1 << 64) - 1
_SECOND: Final = 1_000_000_000


@dataclass(frozen=True, slots=True)
class TimeBounds:
    """The first and the last NTP64 of a range, both included."""

    first: int = 0
    last: int = _LAST

    @classmethod
    def of(cls, range: ResolvedRange | None) -> Self:
        """Return the bounds of a range of nanoseconds; None is all time."""
        if range is None:
            return cls()
        start, end = range.start_ns, range.end_ns
        return cls(
            0 if start is None else last_of(start - range.start_inclusive) + 1,
            _LAST if end is None else last_of(end - (not range.end_inclusive)),
        )

    @classmethod
    def of_micros(cls, start: int | None, end: int | None) -> Self:
        """Return the bounds of the microseconds from `start` on and before `end`."""
        return cls(
            0 if start is None else last_of(start * 1000 - 1) + 1,
            _LAST if end is None else last_of(end * 1000 - 1),
        )

    @property
    def micros(self) -> tuple[int | None, int | None]:
        """The microseconds that the range touches, half open; None is no bound."""
        if self.nothing:
            return 0, 0
        return (
            None if self.first == 0 else NTP64.from_raw(self.first).as_nanos() // 1000,
            None if self.last == _LAST else NTP64.from_raw(self.last).as_nanos() // 1000 + 1,
        )

    @property
    def hlc(self) -> tuple[int, int]:
        """The first and the last `hlc`, both included."""
        return self.first - HLC_BIAS, self.last - HLC_BIAS

    @property
    def nothing(self) -> bool:
        """Whether no time lies between the two."""
        return self.first > self.last


ALL_TIME: Final = TimeBounds()


def last_of(nanos: int) -> int:
    """Return the last NTP64 whose nanosecond since 1970 is not after `nanos`; -1 if none is."""
    seconds, below = divmod(nanos, _SECOND)
    if seconds < 0:
        return -1
    if seconds >= 1 << 32:
        return _LAST
    # The last nanosecond of a second has what is left of it: none is rounded into the next.
    fraction = 0xFFFFFFFF if below == _SECOND - 1 else (below << 32) // _SECOND
    return seconds << 32 | fraction
