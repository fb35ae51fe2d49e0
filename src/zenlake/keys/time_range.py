"""`_time`: ranges of time written in a selector, exact to the nanosecond.

    [now(-1h)..now()]                        the last hour, both ends included
    [2026-01-01T00:00:00Z..2026-02-01T00:00:00Z[     January, the end excluded
    ]now(-1.5s)..]                           everything after one and a half seconds ago
    [2026-01-01T00:00:00Z;12h]               a start and a length

A bracket that faces inwards includes its end, one that faces outwards excludes it. An end left
out is open. `now()` stays symbolic until `resolve`, so that it means the clock of the node that
answers. All arithmetic is on integers: nothing is lost between text and nanoseconds.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from fractions import Fraction

from zenlake.errors import SelectorError

__all__ = ["Instant", "Now", "ResolvedRange", "TimeBound", "TimeRange", "moment_of"]

# The units a duration may be written in, longest first.
UNITS = {
    "w": 604_800_000_000_000,
    "d": 86_400_000_000_000,
    "h": 3_600_000_000_000,
    "m": 60_000_000_000,
    "s": 1_000_000_000,
    "ms": 1_000_000,
    "u": 1_000,
}
SECOND = UNITS["s"]

# Moments further than this from 1970 do not exist on any node: a bound there is no bound.
FURTHEST = 2**63 * SECOND
# Long enough for two instants and two offsets of any sense; a stranger's text stops here.
LONGEST_TEXT = 256

_DURATION = re.compile(r"([0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE]([+-]?[0-9]+))?(u|ms|s|m|h|d|w)?")
_INSTANT = re.compile(
    r"([0-9]{4}-[0-9]{2}-[0-9]{2})[Tt ]([0-9]{2}:[0-9]{2}:[0-9]{2})(?:\.([0-9]+))?[Zz]?"
)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Instant:
    """A fixed moment, in nanoseconds since 1970-01-01T00:00:00Z."""

    ns: int

    def resolve(self, now_ns: int) -> int:
        """Return the moment itself, whatever the time is."""
        return self.ns

    def shifted(self, ns: int) -> Instant:
        """Return the moment `ns` later."""
        return Instant(self.ns + ns)

    def __str__(self) -> str:
        seconds, ns = divmod(self.ns, SECOND)
        try:
            text = (_EPOCH + timedelta(seconds=seconds)).isoformat().removesuffix("+00:00")
        except OverflowError:
            raise SelectorError(
                f"{self.ns} ns is outside the years 0001 to 9999 and has no RFC 3339 text; "
                "leave that bound open"
            ) from None
        if ns:
            digits = f"{ns:09d}"
            while digits.endswith("000"):
                digits = digits[:-3]
            text += f".{digits}"
        return text + "Z"


@dataclass(frozen=True, slots=True)
class Now:
    """The moment of evaluation, moved by `offset_ns`."""

    offset_ns: int = 0

    def resolve(self, now_ns: int) -> int:
        """Return the moment meant when it is `now_ns`."""
        return now_ns + self.offset_ns

    def shifted(self, ns: int) -> Now:
        """Return the moment `ns` later."""
        return Now(self.offset_ns + ns)

    def __str__(self) -> str:
        if not self.offset_ns:
            return "now()"
        sign = "-" if self.offset_ns < 0 else ""
        return f"now({sign}{_format_duration(abs(self.offset_ns))})"


@dataclass(frozen=True, slots=True)
class TimeBound:
    """One end of a range, and whether the end itself belongs to it."""

    at: Instant | Now
    inclusive: bool = True


@dataclass(frozen=True, slots=True)
class ResolvedRange:
    """A range whose ends are nanoseconds since 1970; None is an open end."""

    start_ns: int | None = None
    end_ns: int | None = None
    start_inclusive: bool = True
    end_inclusive: bool = True

    def contains(self, time_ns: int) -> bool:
        """Whether `time_ns` lies in the range."""
        start = self.start_ns
        if start is not None and (
            time_ns < start or (time_ns == start and not self.start_inclusive)
        ):
            return False
        end = self.end_ns
        return end is None or time_ns < end or (time_ns == end and self.end_inclusive)


@dataclass(frozen=True, slots=True)
class TimeRange:
    """The value of `_time`: two bounds, None where the range is open."""

    start: TimeBound | None = None
    end: TimeBound | None = None

    @classmethod
    def parse(cls, text: str) -> TimeRange:
        """Read `[start..end]` or `[start;duration]`, with either bracket at either end."""
        if len(text) > LONGEST_TEXT:
            raise SelectorError(
                f"a time range of {len(text)} characters; write at most {LONGEST_TEXT}"
            )
        if len(text) < 4 or text[0] not in "[]" or text[-1] not in "[]":
            raise SelectorError(
                f"time range '{text}' must stand between brackets; "
                "write '[start..end]', with ']' or '[' turned outwards to exclude an end"
            )
        from_start = text[0] == "["
        to_end = text[-1] == "]"
        head, dots, tail = text[1:-1].partition("..")
        if dots:
            return cls(_parse_bound(head, from_start), _parse_bound(tail, to_end))
        head, semicolon, tail = text[1:-1].partition(";")
        if not semicolon:
            raise SelectorError(
                f"time range '{text}' needs '..' between its ends, or ';' before a length; "
                "write '[now(-1h)..now()]' or '[now(-1h);30m]'"
            )
        start = _parse_bound(head, from_start)
        if start is None:
            raise SelectorError(
                f"time range '{text}' has a length but no start; write '[now(-1h);30m]'"
            )
        return cls(start, TimeBound(start.at.shifted(_parse_duration(tail)), to_end))

    def resolve(self, now_ns: int) -> ResolvedRange:
        """Fix both ends for an evaluation at `now_ns`; an end beyond all clocks becomes open."""
        start = _resolve(self.start, now_ns)
        end = _resolve(self.end, now_ns)
        return ResolvedRange(
            start,
            end,
            self.start is None or self.start.inclusive,
            self.end is None or self.end.inclusive,
        )

    def contains(self, time_ns: int, now_ns: int) -> bool:
        """Whether `time_ns` lies in the range when it is `now_ns`."""
        return self.resolve(now_ns).contains(time_ns)

    def __str__(self) -> str:
        start = (
            "["
            if self.start is None
            else f"{'[' if self.start.inclusive else ']'}{_at(self.start)}"
        )
        end = "]" if self.end is None else f"{_at(self.end)}{']' if self.end.inclusive else '['}"
        return f"{start}..{end}"


def _at(bound: TimeBound) -> str:
    return str(bound.at)


def _resolve(bound: TimeBound | None, now_ns: int) -> int | None:
    if bound is None:
        return None
    ns = bound.at.resolve(now_ns)
    return ns if -FURTHEST <= ns <= FURTHEST else None


def moment_of(text: str) -> Instant | Now:
    """One moment: `now()`, `now(-1h)`, or UTC like `2026-01-31T12:00:00.5Z`."""
    if len(text) > LONGEST_TEXT:
        raise SelectorError(f"a moment of {len(text)} characters; write at most {LONGEST_TEXT}")
    return _parse_moment(text)


def _parse_bound(text: str, inclusive: bool) -> TimeBound | None:
    return TimeBound(_parse_moment(text), inclusive) if text else None


def _parse_moment(text: str) -> Instant | Now:
    if text.startswith("now(") and text.endswith(")"):
        offset = text[4:-1]
        if not offset:
            return Now()
        if offset.startswith("-"):
            return Now(-_parse_duration(offset[1:]))
        return Now(_parse_duration(offset.removeprefix("+")))
    match = _INSTANT.fullmatch(text)
    if match is None:
        raise SelectorError(
            f"'{text}' is no time; write 'now()', 'now(-1h)', or UTC like '2026-01-31T12:00:00.5Z'"
        )
    day, clock, fraction = match.groups()
    # A leap second is the first moment of the next minute, as in POSIX time.
    leap = clock.endswith(":60")
    if leap:
        clock = clock[:-2] + "59"
    try:
        moment = datetime.fromisoformat(f"{day}T{clock}+00:00")
    except ValueError as error:
        raise SelectorError(
            f"'{text}' is not in the calendar ({error}); write UTC like '2026-01-31T12:00:00Z'"
        ) from None
    elapsed = moment - _EPOCH
    seconds = elapsed.days * 86_400 + elapsed.seconds + leap
    return Instant(seconds * SECOND + int(((fraction or "") + "000000000")[:9]))


def _parse_duration(text: str) -> int:
    """Read `<number><unit>` as nanoseconds, exactly; no unit is seconds."""
    match = _DURATION.fullmatch(text)
    if match is None:
        raise SelectorError(
            f"'{text}' is no duration; write a positive number and one of "
            "u, ms, s, m, h, d, w, like '1.5h'"
        )
    number, exponent, unit = match.groups()
    units, _, fraction = number.partition(".")
    digits = int(units + fraction)
    power = int(exponent or 0) - len(fraction)
    if not digits or power < -LONGEST_TEXT - 32:
        return 0
    if power > 32:
        return 3 * FURTHEST  # past every clock, whatever it is added to
    exact = Fraction(digits) * Fraction(10) ** power * UNITS[unit or "s"]
    return min(round(exact), 3 * FURTHEST)


def _format_duration(ns: int) -> str:
    """Write `ns` in the longest unit that divides it, else in seconds with a fraction."""
    for unit, size in UNITS.items():
        if ns % size == 0:
            return f"{ns // size}{unit}"
    seconds, rest = divmod(ns, SECOND)
    return f"{seconds}.{rest:09d}s"
