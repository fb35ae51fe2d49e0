"""Which groups of rows may have a row that a predicate is true of, by least and greatest values.

A group is a file of a table, a segment or a partition of a journal, or a single row. A predicate
(`expr/tree`) over columns becomes, for all groups at once, whether it may be true of some row. What
is not understood rules no group out, so it costs time and never rows: negations, functions, columns
without bounds, values of another kind.

Where all rows of a group have the same text or integer in a column, what is understood of that
column is decided exactly, but for LIKE.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from zenlake.expr.tree import (
    And,
    Between,
    Comparison,
    Field,
    In,
    Literal,
    Moment,
    Node,
    Or,
    Term,
    starts_with,
)

__all__ = ["Bounds", "may_hold"]

_DAY: Final = 86_400_000_000

Bounds = Mapping[str, tuple[Any, Any]]
"""By column: arrays of the least and the greatest value of each group; null is unknown.

The same array twice says that all rows of a group have the same value.
"""


def may_hold(node: Node, bounds: Bounds) -> Any:
    """Return for each group whether a condition may be true of a row; None if none is ruled out."""
    match node:
        case And():
            every = [may_hold(one, bounds) for one in node.nodes]
            known = [one for one in every if one is not None]
            return reduce(pc.and_, known) if known else None
        case Or():
            some = [may_hold(one, bounds) for one in node.nodes]
            return None if not some or any(one is None for one in some) else reduce(pc.or_, some)
        case Between(negated=False):
            low, high = (
                Comparison(node.field, operator, bound)
                for operator, bound in ((">=", node.low), ("<=", node.high))
            )
            return may_hold(And((low, high)), bounds)
        case In(field=Field(name=name), negated=False) if name in bounds:
            return _among(*bounds[name], node.among)
        case Comparison(left=Field() as field, operator="LIKE", right=Literal(value=str(pattern))):
            return may_hold(starts_with(field, pattern.replace("_", "%").partition("%")[0]), bounds)
        case Comparison(left=Field(name=name)) if name in bounds:
            return _compared(*bounds[name], node.operator, node.right)
    return None


def _among(low: Any, high: Any, terms: tuple[Term, ...]) -> Any:
    """Return whether a value between these may be one of the terms; None if that is unknown."""
    texts = [one.value for one in terms if isinstance(one, Literal) and isinstance(one.value, str)]
    if low is high and pa.types.is_string(low.type) and len(texts) == len(terms):
        # Null is among them, for a value that is unknown may be one of the terms.
        return pc.is_in(low, value_set=pa.array([*texts, None], pa.string()))
    each = [_compared(low, high, "=", one) for one in terms]
    return None if not each or any(one is None for one in each) else reduce(pc.or_, each)


def _compared(low: Any, high: Any, operator: str, term: Term) -> Any:
    """Return whether a value between these may compare so; null bounds are unknown, and may."""
    try:
        value = _scalar(term, low.type)
    except (pa.ArrowInvalid, OverflowError):
        return None
    if value is None:
        return None
    if pa.types.is_floating(low.type):
        if operator in (">", ">="):
            return None  # NaN is greater than all numbers, and no bound counts it
        low, high = low.cast(pa.float64()), high.cast(pa.float64())
    match operator:
        case "=":
            may = pc.and_(pc.less_equal(low, value), pc.greater_equal(high, value))
        case "<":
            may = pc.less(low, value)
        case "<=":
            may = pc.less_equal(low, value)
        case ">":
            may = pc.greater(high, value)
        case ">=":
            may = pc.greater_equal(high, value)
        case _:
            return None
    return pc.fill_null(may, True)


def _scalar(term: Term, kind: pa.DataType) -> Any:
    """Return a term as a value to compare a column with; None where that is left to Spark."""
    match term:
        case Moment(micros=micros) if pa.types.is_timestamp(kind) and kind.tz:
            return pa.scalar(micros, pa.timestamp("us", tz="UTC")).cast(kind)
        case Moment(micros=micros) if pa.types.is_date32(kind) and micros % _DAY == 0:
            return pa.scalar(micros // _DAY, pa.int32()).cast(kind)
        case Literal(value=str(text)) if pa.types.is_string(kind):
            return pa.scalar(text)
        case Literal(value=bool()):
            return None
        case Literal(value=int() | float() as number):
            if pa.types.is_floating(kind) and number == number:
                return pa.scalar(float(number))
            # A number with a fraction raises, and so does one that the column cannot have.
            return pa.scalar(number).cast(kind) if pa.types.is_integer(kind) else None
    return None
