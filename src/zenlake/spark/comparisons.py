"""Comparisons of a WHERE clause as Spark hands them over: column, operator and value."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final, NamedTuple

from pyspark.sql.datasource import (
    EqualNullSafe,
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    LessThan,
    LessThanOrEqual,
)

from zenlake.clock.unix_time import micros_of
from zenlake.expr.tree import Moment

__all__ = ["ColumnComparison", "comparison_of", "moment_of"]

_OPERATORS: Final[dict[type[Filter], str]] = {
    EqualTo: "=",
    EqualNullSafe: "=",
    GreaterThan: ">",
    GreaterThanOrEqual: ">=",
    LessThan: "<",
    LessThanOrEqual: "<=",
}


class ColumnComparison(NamedTuple):
    """A column that is compared with a value."""

    column: str
    operator: str
    value: Any


def comparison_of(filter: Filter) -> ColumnComparison | None:
    """Return a filter as a comparison; None if the filter is another, or about a nested field."""
    match filter:
        case (
            EqualTo(attribute=(name,), value=value)
            | EqualNullSafe(attribute=(name,), value=value)
            | GreaterThan(attribute=(name,), value=value)
            | GreaterThanOrEqual(attribute=(name,), value=value)
            | LessThan(attribute=(name,), value=value)
            | LessThanOrEqual(attribute=(name,), value=value)
        ):
            return ColumnComparison(name, _OPERATORS[type(filter)], value)
    return None


def moment_of(value: datetime) -> Moment:
    """Return a time with a zone as conditions have it, to the microsecond."""
    return Moment(micros_of(value), value.isoformat())
