"""What of a WHERE clause the files of a table can decide.

Each filter of Spark becomes two things: a condition (`expr/tree`) by which files and row groups are
left out, and an expression of Arrow that is true of exactly the rows that Spark would keep. A
filter that has no such expression stays with Spark.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date, datetime
from functools import reduce
from operator import and_
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.datasource import (
    EqualNullSafe,
    Filter,
    In,
    IsNotNull,
    IsNull,
    StringStartsWith,
)

from zenlake.clock.unix_time import EPOCH
from zenlake.expr import tree
from zenlake.expr.tree import Comparison, Field, Literal, Moment, Node, Term
from zenlake.spark.comparisons import ColumnComparison, comparison_of, moment_of

__all__ = ["EVERY_ROW", "PushedFilter", "pushed_filter"]

_FUNCTIONS: Final[dict[str, Any]] = {
    "=": pc.equal,
    ">": pc.greater,
    ">=": pc.greater_equal,
    "<": pc.less,
    "<=": pc.less_equal,
}
_DAY: Final = 86_400_000_000


@dataclass(frozen=True, slots=True)
class PushedFilter:
    """Filters that are applied to each row here; joined by AND."""

    #: What leaves files and row groups out.
    nodes: tuple[Node, ...] = ()
    #: What leaves rows out.
    expressions: tuple[Any, ...] = ()

    @classmethod
    def joined(cls, filters: Iterable[PushedFilter]) -> PushedFilter:
        """Return one filter in the place of several."""
        every = list(filters)
        return cls(
            tuple(node for one in every for node in one.nodes),
            tuple(expression for one in every for expression in one.expressions),
        )

    def rows(self, rows: pa.Table) -> pa.Table:
        """Return the rows that meet all filters."""
        return rows.filter(reduce(and_, self.expressions)) if self.expressions else rows


EVERY_ROW: Final = PushedFilter()


def pushed_filter(filter: Filter, schema: pa.Schema) -> PushedFilter | None:
    """Return what a filter of Spark is here; None if it is left to Spark.

    `schema`: the columns as Spark has them.
    """
    match filter:
        case IsNull(attribute=(name,)) | EqualNullSafe(attribute=(name,), value=None):
            return PushedFilter((tree.IsNull(Field(name)),), (pc.field(name).is_null(),))
        case IsNotNull(attribute=(name,)):
            return PushedFilter((tree.IsNull(Field(name), True),), (pc.field(name).is_valid(),))
        case StringStartsWith(attribute=(name,), value=str(prefix)):
            node = tree.starts_with(Field(name), prefix)
            return PushedFilter((node,), (pc.starts_with(pc.field(name), pattern=prefix),))
        case In(attribute=(name,), value=values):
            return _among(name, values, schema.field(name).type)
    comparison = comparison_of(filter)
    return None if comparison is None else _compared(comparison, schema)


def _compared(comparison: ColumnComparison, schema: pa.Schema) -> PushedFilter | None:
    name, operator, value = comparison
    kind = schema.field(name).type
    scalar = _scalar(value, kind)
    if scalar is None:
        return None
    expression = _FUNCTIONS[operator](pc.field(name), scalar)
    if pa.types.is_floating(kind) and operator in (">", ">="):
        # For Spark NaN is greater than every number.
        expression |= pc.is_nan(pc.field(name))
    term = _term(value)
    nodes = () if term is None else (Comparison(Field(name), operator, term),)
    return PushedFilter(nodes, (expression,))


def _among(name: str, values: Iterable[object], kind: pa.DataType) -> PushedFilter | None:
    # Arrow looks a value up by its bits, and 0.0 is -0.0 for Spark.
    if pa.types.is_floating(kind):
        return None
    # What is compared with null is unknown, which selects no row.
    there = [value for value in values if value is not None]
    if any(_scalar(value, kind) is None for value in there):
        return None
    terms = tuple(term for term in map(_term, there) if term is not None)
    nodes = (tree.In(Field(name), terms),) if terms and len(terms) == len(there) else ()
    return PushedFilter(nodes, (pc.field(name).isin(pa.array(there, kind)),))


def _scalar(value: object, kind: pa.DataType) -> pa.Scalar | None:
    """Return a value of Spark as the column has it; None if it is left to Spark."""
    match value:
        case bool():
            fits = pa.types.is_boolean(kind)
        case int():
            fits = pa.types.is_integer(kind)
        case float():
            fits = pa.types.is_floating(kind) and value == value
        case str():
            fits = pa.types.is_string(kind)
        case datetime():
            fits = pa.types.is_timestamp(kind) and (value.tzinfo is None) == (kind.tz is None)
        case date():
            fits = pa.types.is_date32(kind)
        case _:
            fits = False
    if not fits:
        return None
    try:
        scalar = pa.scalar(value, kind)
    except (pa.ArrowInvalid, OverflowError):
        return None
    # A column of 32 bits has not every number of 64.
    return scalar if not isinstance(value, float) or scalar.as_py() == value else None


def _term(value: object) -> Term | None:
    """Return a value as conditions have it; None if no file is left out by it."""
    match value:
        case bool():
            return None
        case int() | float() | str():
            return Literal(value)
        case datetime() if value.tzinfo is not None:
            return moment_of(value)
        case date() if not isinstance(value, datetime):
            return Moment((value - EPOCH.date()).days * _DAY, value.isoformat())
    return None
