"""A range of time as callers write it: text, datetimes, or microseconds."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TypeAlias

from zenlake.errors import LocalError
from zenlake.keys import TimeRange

__all__ = ["Micros", "Times", "micros_of"]

Micros: TypeAlias = tuple[int | None, int | None]
Times: TypeAlias = "str | TimeRange | tuple[int | datetime | None, int | datetime | None] | None"

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def micros_of(time: Times, now_ns: int) -> Micros | None:
    """The half-open range in microseconds since 1970; None is no bound.

    Text is what `_time` takes in a selector, such as `[now(-5m)..]`, and is resolved at `now_ns`.
    A datetime without a time zone is local time, as everywhere in Python.
    """
    if time is None:
        return None
    if isinstance(time, str | TimeRange):
        resolved = (TimeRange.parse(time) if isinstance(time, str) else time).resolve(now_ns)
        return (
            _above(resolved.start_ns, itself=resolved.start_inclusive),
            _above(resolved.end_ns, itself=not resolved.end_inclusive),
        )
    try:
        start, end = time
    except (TypeError, ValueError):
        raise LocalError(
            f"time={time!r} is no range; write '[now(-5m)..]', or (start, end) of datetimes or "
            "microseconds"
        ) from None
    return _micros(start), _micros(end)


def _above(nanos: int | None, *, itself: bool) -> int | None:
    """The first whole microsecond from a moment on, or after it."""
    if nanos is None:
        return None
    return -(-nanos // 1000) if itself else nanos // 1000 + 1


def _micros(moment: int | datetime | None) -> int | None:
    if moment is None:
        return None
    if isinstance(moment, datetime):
        aware = moment if moment.tzinfo is not None else moment.astimezone()
        return (aware - _EPOCH) // timedelta(microseconds=1)
    if isinstance(moment, bool) or not hasattr(moment, "__index__"):
        raise LocalError(
            f"{moment!r} is no time; write a datetime, or microseconds since 1970 as a whole number"
        )
    return moment.__index__()
