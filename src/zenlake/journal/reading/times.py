"""A range of time as callers write it: text, datetimes, or microseconds."""

from __future__ import annotations

from datetime import datetime
from typing import TypeAlias

from zenlake.clock.unix_time import micros_of
from zenlake.errors import LocalError
from zenlake.keys import TimeRange
from zenlake.recorded.time_bounds import ALL_TIME, TimeBounds

__all__ = ["Times", "bounds_of"]

Moment: TypeAlias = "int | datetime | None"
Times: TypeAlias = "str | TimeRange | TimeBounds | tuple[Moment, Moment] | None"


def bounds_of(time: Times, now_ns: int) -> TimeBounds:
    """Return the times of the wire that are meant; None is all.

    Text is what `_time` takes in a selector, such as `[now(-5m)..]`, and is resolved at `now_ns`.
    A datetime without a time zone is local time, as everywhere in Python.
    """
    if time is None:
        return ALL_TIME
    if isinstance(time, TimeBounds):
        return time
    if isinstance(time, str | TimeRange):
        written = TimeRange.parse(time) if isinstance(time, str) else time
        return TimeBounds.of(written.resolve(now_ns))
    try:
        start, end = time
    except (TypeError, ValueError):
        raise LocalError(
            f"time={time!r} is no range; write '[now(-5m)..]', or (start, end) of datetimes or "
            "microseconds"
        ) from None
    return TimeBounds.of_micros(_micros(start), _micros(end))


def _micros(moment: int | datetime | None) -> int | None:
    if moment is None:
        return None
    if isinstance(moment, datetime):
        aware = moment if moment.tzinfo is not None else moment.astimezone()
        return micros_of(aware)
    if isinstance(moment, bool) or not hasattr(moment, "__index__"):
        raise LocalError(
            f"{moment!r} is no time; write a datetime, or microseconds since 1970 as a whole number"
        )
    return moment.__index__()
