"""An alert over history: when it would have been raised and cleared."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

from zenlake.clock.unix_time import datetime_at, micros_of
from zenlake.errors import LocalError, SelectorError
from zenlake.keys.time_range import ResolvedRange, TimeRange, moment_of
from zenlake.lake.continuous.alert_results import changed, heard, shown
from zenlake.lake.continuous.alert_state import AlertState
from zenlake.lake.continuous.query_shape import conditional, shape_of
from zenlake.lake.continuous.result_table import flattened
from zenlake.lake.model.continuous_query import ContinuousQuery
from zenlake.lake.query.executor import SqlQuestion
from zenlake.lake.query.limits import QueryLimits
from zenlake.recorded.time_bounds import TimeBounds

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["span_between", "span_of", "trial"]

MOST_SECONDS: Final = 600.0
"""Seconds that an alert is tried for at most."""


def span_of(text: str, now_ns: int) -> tuple[datetime, datetime]:
    """Return the microseconds of a `_time`, half open: its end is now if none is said."""
    span = TimeRange.parse(text).resolve(now_ns)
    if span.start_ns is None:
        raise SelectorError(f"_time={text} has no start; write [now(-1h)..]")
    found = _micros(replace(span, end_ns=now_ns) if span.end_ns is None else span)
    if found is None:
        raise SelectorError(f"_time={text}: no time lies in that range")
    return found


def span_between(since: str, until: str, now_ns: int) -> tuple[datetime, datetime]:
    """Return the microseconds from one instant on and before another, as options give them.

    An instant is `2026-01-31T12:00:00Z`, or `now(-1h)`.
    """
    ends: list[int] = []
    for what, text in (("--from", since), ("--to", until)):
        try:
            ends.append(moment_of(text).resolve(now_ns))
        except SelectorError as error:
            raise LocalError(f"{what} {text}: {error}") from error
    start, end = ends
    found = _micros(ResolvedRange(start, end, end_inclusive=False))
    if found is None:
        raise LocalError(f"nothing lies between {since} and {until}")
    return found


def _micros(span: ResolvedRange) -> tuple[datetime, datetime] | None:
    """Return the microseconds that a range touches, half open; None if there are none."""
    bounds = TimeBounds.of(span)
    start, end = bounds.micros
    if bounds.nothing or end is None:
        return None
    return datetime_at(start or 0), datetime_at(end)


def trial(
    run: Callable[[SqlQuestion], pa.Table],
    definition: ContinuousQuery,
    since: datetime,
    until: datetime,
    gone: Callable[[], bool],
) -> list[dict[str, Any]]:
    """Return the changes that an alert would have published from `since` on and before `until`.

    `run` gives the rows of a question (`lake/query/executor`), `gone` says whether nobody waits for
    them any more.
    """
    shape = shape_of(definition.sql)
    subject = shape.subject if shape.grouped else None
    question = SqlQuestion(
        conditional(definition.sql, since, until),
        QueryLimits(seconds=MOST_SECONDS, rows=1_000_000),
        definition.access,
        shape=lambda frame: changed(flattened(frame), subject),
        gone=gone,
    )
    rows = run(question)
    raising = AlertState(round(definition.hold * 1e6))
    changes = heard(raising, rows, subject)
    changes += raising.passed(micros_of(until) - 1)
    changes.sort(key=lambda change: (change.time, change.subject))
    return [shown(definition.name, change) for change in changes]
