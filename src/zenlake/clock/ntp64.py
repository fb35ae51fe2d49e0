"""A moment as 64 bits: whole seconds above, a binary fraction of a second below.

     63            32 31             0
    |    seconds     |    fraction    |      one unit is 2^-32 s, about 0.23 ns

The format is NTP's; the day it counts from is not. NTP (RFC 5905) counts from 1900-01-01 and
starts a new era in 2036. Zenoh counts from 1970-01-01 UTC, as Unix does, and so reaches to
2106-02-07. Everything here is of 1970, and so is the wire; `from_1900` and `to_1900` are the
only door to the other reckoning, for times that come from an NTP server or a DDS recording.

A unit is finer than a nanosecond, so a nanosecond survives the trip there and back when one way
rounds down and the other up:

    nanoseconds → NTP64   rounds down   (a reading is never in the future)
    NTP64 → nanoseconds   rounds up     (at most 0.999 999 999 s: never into the next second)
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Final, final

from zenlake.clock.unix_time import EPOCH, micros_of
from zenlake.errors import TimestampError

__all__ = ["NTP64", "SECONDS_1900_TO_1970"]

SECONDS_1900_TO_1970: Final = 2_208_988_800
MAX_RAW: Final = (1 << 64) - 1
MAX_SECONDS: Final = (1 << 32) - 1
FRACTION_MASK: Final = (1 << 32) - 1
NANOS: Final = 1_000_000_000

_RFC3339: Final = (
    r"(?a)(\d{4})-(\d\d)-(\d\d)[Tt ](\d\d):(\d\d):(\d\d)(?:\.(\d{1,64}))?"
    + r"(?:[Zz]|([+-])(\d\d):(\d\d))"
)


@final
class NTP64:
    """A moment between 1970 and 2106, exact to a quarter of a nanosecond."""

    __slots__ = ("_raw",)

    def __init__(self, seconds: int, nanos: int) -> None:
        """Seconds since 1970 and nanoseconds more; the nanoseconds may exceed a second."""
        if seconds < 0 or nanos < 0:
            raise TimestampError(f"{seconds} s + {nanos} ns is before 1970, where NTP64 begins")
        seconds += nanos // NANOS
        if seconds > MAX_SECONDS:
            raise TimestampError(f"{seconds} s since 1970 is past 2106-02-07, where NTP64 ends")
        self._raw: int = seconds << 32 | ((nanos % NANOS) << 32) // NANOS

    @classmethod
    def from_raw(cls, raw: int) -> NTP64:
        """The moment these 64 bits mean on the wire.

        Args:
            raw: Seconds since 1970 times 2³².
        """
        if not 0 <= raw <= MAX_RAW:
            raise TimestampError(f"{raw} does not fit the 64 bits of an NTP64")
        moment = cls(raw >> 32, 0)
        moment._raw = raw
        return moment

    @classmethod
    def from_nanos(cls, nanos: int) -> NTP64:
        """The last moment not after this many nanoseconds since 1970 (`time.time_ns`).

        Args:
            nanos: Nanoseconds since 1970.
        """
        return cls(0, nanos)

    @classmethod
    def from_datetime(cls, when: datetime) -> NTP64:
        """The moment of a `datetime` that knows its time zone.

        Args:
            when: A moment with a time zone.
        """
        if when.tzinfo is None or when.utcoffset() is None:
            raise TypeError(
                f"{when.isoformat()} has no time zone; write datetime(..., tzinfo=timezone.utc)"
            )
        return cls(0, micros_of(when) * 1000)

    @classmethod
    def from_1900(cls, raw: int) -> NTP64:
        """The moment these 64 bits mean in NTP's own reckoning, between 1970 and 2106.

        NTP's seconds wrap around in 2036; those that would be before 1970 in the first era are
        taken for the second one, so each 64-bit value has exactly one meaning here.

        Args:
            raw: Seconds since 1900 times 2³².
        """
        if not 0 <= raw <= MAX_RAW:
            raise TimestampError(f"{raw} does not fit the 64 bits of an NTP64")
        return cls.from_raw((raw - (SECONDS_1900_TO_1970 << 32)) & MAX_RAW)

    @classmethod
    def parse_rfc3339(cls, s: str) -> NTP64:
        """The moment an RFC 3339 text names, such as `2023-11-14T22:13:20.123456789Z`.

        Digits after the ninth decimal are ignored. Unix time knows no leap second: `:60` is
        told as the second before it.

        Args:
            s: A time such as `2026-01-31T12:00:00Z`.
        """
        match = re.fullmatch(_RFC3339, s)
        if match is None:
            raise TimestampError(
                f"'{s[:80]}' is not an RFC 3339 time; write '2023-11-14T22:13:20.5Z'"
            )
        year, month, day, hour, minute, second = [int(part) for part in match.groups()[:6]]
        fraction, sign, zone_hours, zone_minutes = match.groups()[6:]
        try:
            if second == 60:
                second = 59
            when = datetime(year, month, day, hour, minute, second, tzinfo=UTC)
            if sign:
                if int(zone_hours) > 23 or int(zone_minutes) > 59:
                    raise ValueError("the time zone must be within 23:59 of UTC")
                offset = timedelta(hours=int(zone_hours), minutes=int(zone_minutes))
                when = when - offset if sign == "+" else when + offset
        except (ValueError, OverflowError) as error:
            raise TimestampError(f"'{s[:80]}' names no moment: {error}") from error
        seconds = (when - EPOCH) // timedelta(seconds=1)
        return cls(seconds, int((fraction or "0")[:9].ljust(9, "0")))

    def as_secs(self, /) -> int:
        """Whole seconds since 1970."""
        return self._raw >> 32

    def as_secs_f64(self, /) -> float:
        """Seconds since 1970, as near as a float can tell (about 0.2 µs today)."""
        return self._raw / 4294967296.0

    def subsec_nanos(self, /) -> int:
        """Nanoseconds after the whole second, rounded up but never to a whole second."""
        return min(-((self._raw & FRACTION_MASK) * -NANOS >> 32), NANOS - 1)

    def as_nanos(self, /) -> int:
        """Nanoseconds since 1970; what `from_nanos` was given comes back unchanged."""
        return (self._raw >> 32) * NANOS + self.subsec_nanos()

    def to_datetime(self, /) -> datetime:
        """The moment in UTC, cut to the microsecond."""
        return EPOCH + timedelta(seconds=self._raw >> 32, microseconds=self.subsec_nanos() // 1000)

    def to_string_rfc3339_lossy(self, /) -> str:
        """RFC 3339 text with nine decimals; what it loses is less than a nanosecond."""
        return f"{self.to_datetime():%Y-%m-%dT%H:%M:%S}.{self.subsec_nanos():09d}Z"

    def to_1900(self) -> int:
        """The 64 bits that name this moment in NTP's own reckoning."""
        return (self._raw + (SECONDS_1900_TO_1970 << 32)) & MAX_RAW

    def __int__(self) -> int:
        return self._raw

    def __str__(self) -> str:
        return str(self._raw)

    def __repr__(self) -> str:
        return f"NTP64.from_raw({self._raw})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, NTP64) and self._raw == other._raw

    def __hash__(self) -> int:
        return hash(self._raw)

    def __lt__(self, other: object) -> bool:
        return self._raw < other._raw if isinstance(other, NTP64) else NotImplemented

    def __le__(self, other: object) -> bool:
        return self._raw <= other._raw if isinstance(other, NTP64) else NotImplemented

    def __gt__(self, other: object) -> bool:
        return self._raw > other._raw if isinstance(other, NTP64) else NotImplemented

    def __ge__(self, other: object) -> bool:
        return self._raw >= other._raw if isinstance(other, NTP64) else NotImplemented

    def __reduce__(self) -> tuple[object, tuple[int]]:
        return NTP64.from_raw, (self._raw,)
