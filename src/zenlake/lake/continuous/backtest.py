"""An alert over history: when it would have been raised and cleared."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from zenlake.errors import LocalError, SelectorError
from zenlake.keys.time_range import TimeRange, moment_of
from zenlake.lake.continuous.alert_results import changed, heard, shown
from zenlake.lake.continuous.alert_state import AlertState
from zenlake.lake.continuous.query_shape import conditional, shape_of
from zenlake.lake.continuous.result_table import flattened
from zenlake.lake.model.continuous_query import ContinuousQuery
from zenlake.lake.query.executor import SqlQuestion
from zenlake.lake.query.limits import QueryLimits

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["instant_of", "span_of", "trial"]

MOST_SECONDS: Final = 600.0
"""Seconds that an alert is tried for at most."""


def instant_of(text: str, now: float, what: str) -> datetime:
    """An instant: `2026-01-31T12:00:00Z`, or `now(-1h)`."""
    try:
        nanos = moment_of(text).resolve(round(now * 1e9))
    except SelectorError as error:
        raise LocalError(f"{what} {text}: {error}") from error
    return datetime.fromtimestamp(nanos / 1e9, UTC)


def span_of(text: str, now_ns: int) -> tuple[datetime, datetime]:
    """The ends of a `_time`: its start must be said, its end is now if it is not."""
    span = TimeRange.parse(text).resolve(now_ns)
    if span.start_ns is None:
        raise SelectorError(f"_time={text} has no start; write [now(-1h)..]")
    end = now_ns if span.end_ns is None else span.end_ns
    return (
        datetime.fromtimestamp(span.start_ns / 1e9, UTC),
        datetime.fromtimestamp(end / 1e9, UTC),
    )


def trial(
    run: Callable[[SqlQuestion], pa.Table],
    definition: ContinuousQuery,
    since: datetime,
    until: datetime,
) -> list[dict[str, Any]]:
    """Return the changes that an alert would have published, from `since` to `until`.

    `run` gives the rows of a question (`lake/query/executor`).
    """
    if since >= until:
        raise LocalError(f"nothing lies between {since:%FT%TZ} and {until:%FT%TZ}")
    shape = shape_of(definition.sql)
    subject = shape.subject if shape.grouped else None
    question = SqlQuestion(
        conditional(definition.sql, since, until),
        QueryLimits(seconds=MOST_SECONDS, rows=1_000_000),
        definition.access,
        shape=lambda frame: changed(flattened(frame), subject),
    )
    rows = run(question)
    raising = AlertState(round(definition.hold * 1e6))
    changes = heard(raising, rows, subject)
    changes += raising.passed(round(until.timestamp() * 1e6))
    changes.sort(key=lambda change: (change.time, change.subject))
    return [shown(definition.name, change) for change in changes]
