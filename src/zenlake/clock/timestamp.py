"""A moment and who told it: the order that all nodes of a network agree on.

Two timestamps differ in time, or else in the id of the node that told them, so of two samples
with a timestamp everyone knows which is the later.

    7301444403730242871/1a2b3                 exact: NTP64 in decimal, then the id
    2023-11-14T22:13:20.123456789Z/1a2b3      readable: less than a nanosecond is lost
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import final

from zenlake.clock.ntp64 import FRACTION_MASK, MAX_SECONDS, NTP64
from zenlake.clock.zid import ZenohId, id_text, trimmed
from zenlake.errors import TimestampError

__all__ = ["Timestamp"]


@final
class Timestamp:
    """When something was said and by whom, in a total order: time first, then id."""

    # Seconds and fraction are kept apart: an NTP64 of today has 63 bits, which costs the
    # compiled build a big integer at every step, while each half is a small one.
    __slots__ = ("_fraction", "_id", "_seconds")

    def __init__(
        self, time: datetime | NTP64 | int, id: ZenohId | bytes | bytearray, fraction: int = 0
    ) -> None:
        """A moment, and the id of the clock that told it.

        A time that comes in halves, as from the wire, is given as whole seconds since 1970 and
        the `fraction` of the next one.
        """
        if not isinstance(time, int):
            if isinstance(time, datetime):
                time = NTP64.from_datetime(time)
            elif not isinstance(time, NTP64):
                raise TypeError(f"a time is a datetime or an NTP64, not {type(time).__name__}")
            raw = int(time)
            time = raw >> 32
            fraction = raw & FRACTION_MASK
        elif not (0 <= time <= MAX_SECONDS and 0 <= fraction <= FRACTION_MASK):
            raise TimestampError(
                f"seconds {time} and fraction {fraction} are not two halves of 32 bits; "
                "for a whole NTP64 write Timestamp(NTP64.from_raw(...), id)"
            )
        self._seconds: int = time
        self._fraction: int = fraction
        self._id: bytes = trimmed(id) if isinstance(id, bytes) else bytes(ZenohId(id))

    @classmethod
    def parse(cls, text: str) -> Timestamp:
        """The timestamp that `text` spells, in the exact or in the readable form."""
        time, slash, _ = text.partition("/")
        if slash and time.isascii() and time.isdigit():
            if len(time) > 20:
                raise TimestampError(f"'{time[:40]}' does not fit the 64 bits of an NTP64")
            return cls(NTP64.from_raw(int(time)), _parse_id(text))
        return cls.parse_rfc3339(text)

    @classmethod
    def parse_rfc3339(cls, s: str) -> Timestamp:
        """The timestamp that `s` spells as an RFC 3339 time, a slash and an id."""
        time, slash, _ = s.partition("/")
        if not slash:
            raise TimestampError(
                f"'{s[:80]}' has no '/'; write the time, a slash and the id of its clock"
            )
        return cls(NTP64.parse_rfc3339(time), _parse_id(s))

    @property
    def seconds(self) -> int:
        """Whole seconds since 1970: the high half of the time on the wire."""
        return self._seconds

    @property
    def fraction(self) -> int:
        """Units of 2^-32 s after the whole second: the low half of the time on the wire."""
        return self._fraction

    @property
    def id_bytes(self) -> bytes:
        """The id as the wire carries it, little-endian without high zero bytes."""
        return self._id

    def get_time(self, /) -> datetime:
        """The moment in UTC, cut to the microsecond."""
        return self.get_time_as_ntp64().to_datetime()

    def get_time_as_ntp64(self, /) -> NTP64:
        """The moment, exactly."""
        return NTP64.from_raw(self._seconds << 32 | self._fraction)

    def get_id(self, /) -> ZenohId:
        """Whose clock told the time."""
        return ZenohId(self._id)

    def get_diff_duration(self, /, other: Timestamp) -> timedelta:
        """How much later this is than `other`, to the microsecond; negative when it is earlier."""
        mine = self.get_time_as_ntp64().as_nanos()
        return timedelta(microseconds=(mine - other.get_time_as_ntp64().as_nanos()) // 1000)

    def to_string_rfc3339_lossy(self, /) -> str:
        """The readable form; what it loses is less than a nanosecond."""
        return f"{self.get_time_as_ntp64().to_string_rfc3339_lossy()}/{id_text(self._id)}"

    def __str__(self) -> str:
        return f"{self._seconds << 32 | self._fraction}/{id_text(self._id)}"

    def __repr__(self) -> str:
        return f"Timestamp.parse('{self}')"

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Timestamp)
            and self._fraction == other._fraction
            and self._seconds == other._seconds
            and self._id == other._id
        )

    def __hash__(self) -> int:
        return hash((self._seconds, self._fraction, self._id))

    def __lt__(self, other: object) -> bool:
        return self._compare(other) < 0 if isinstance(other, Timestamp) else NotImplemented

    def __le__(self, other: object) -> bool:
        return self._compare(other) <= 0 if isinstance(other, Timestamp) else NotImplemented

    def __gt__(self, other: object) -> bool:
        return self._compare(other) > 0 if isinstance(other, Timestamp) else NotImplemented

    def __ge__(self, other: object) -> bool:
        return self._compare(other) >= 0 if isinstance(other, Timestamp) else NotImplemented

    def _compare(self, other: Timestamp) -> int:
        """Negative, zero or positive as this is before, equal to or after `other`."""
        if self._seconds != other._seconds:
            return self._seconds - other._seconds
        if self._fraction != other._fraction:
            return self._fraction - other._fraction
        if self._id == other._id:
            return 0
        return -1 if self._id < other._id else 1

    def __reduce__(self) -> tuple[type[Timestamp], tuple[int, bytes, int]]:
        return Timestamp, (self._seconds, self._id, self._fraction)


def _parse_id(text: str) -> ZenohId:
    # Capital digits are welcome here, though not in a node's configuration: other programs
    # read them so.
    return ZenohId.parse(text.partition("/")[2].lower())
