"""Which files of a table may have rows that a predicate is true of, by the statistics in its log.

A predicate (`expr/tree`) over columns becomes, for all files at once, whether it may be true of
some row. What is not understood leaves every file in, so it costs time and never rows: negations,
functions, columns without statistics, values of another kind.
"""

from __future__ import annotations

from collections.abc import Iterable
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

__all__ = ["matching"]

_DAY: Final = 86_400_000_000


def matching(actions: pa.Table, conditions: Iterable[Node]) -> list[str]:
    """Return the files whose statistics do not rule out a row that meets all the conditions."""
    may = _may(And(tuple(conditions)), actions)
    paths = actions["path"] if may is None else actions["path"].filter(may)
    return list(paths.to_pylist())


def _may(node: Node, actions: pa.Table) -> Any:
    """Return for each file whether the condition may be true of a row; None if that is unknown."""
    match node:
        case And():
            every = [_may(one, actions) for one in node.nodes]
            known = [one for one in every if one is not None]
            return reduce(pc.and_, known) if known else None
        case Or():
            some = [_may(one, actions) for one in node.nodes]
            return None if not some or any(one is None for one in some) else reduce(pc.or_, some)
        case Between(negated=False):
            low, high = (
                Comparison(node.field, operator, bound)
                for operator, bound in ((">=", node.low), ("<=", node.high))
            )
            return _may(And((low, high)), actions)
        case In(negated=False):
            return _may(Or(tuple(Comparison(node.field, "=", one) for one in node.among)), actions)
        case Comparison(left=Field() as field, operator="LIKE", right=Literal(value=str(pattern))):
            return _may(starts_with(field, pattern.replace("_", "%").partition("%")[0]), actions)
        case Comparison(left=Field(name=name)):
            for least, most in (("min", "max"), ("partition", "partition")):
                if {f"{least}.{name}", f"{most}.{name}"} <= set(actions.column_names):
                    bounds = actions[f"{least}.{name}"], actions[f"{most}.{name}"]
                    return _compared(*bounds, node.operator, node.right)
    return None


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
