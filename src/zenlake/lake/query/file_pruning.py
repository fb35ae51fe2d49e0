"""Which conditions a question puts on single columns of a table, read from its text.

What is found is only used to leave out files in which no row can meet it, so a condition that is
not understood costs time and never rows. Only those parts of a WHERE that every row of the answer
must meet count: comparisons of a column with something whose value is known without Spark.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterator, Mapping
from typing import Any, Final

import pyarrow as pa

from zenlake.lake.query.table_frames import Condition

__all__ = ["conditions_of"]

_COMPARED: Final = {"EQ": "=", "NullSafeEQ": "=", "LT": "<", "LTE": "<=", "GT": ">", "GTE": ">="}
_TURNED: Final = {"=": "=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
_UNITS: Final = {
    "MICROSECOND": 1,
    "MILLISECOND": 1_000,
    "SECOND": 1_000_000,
    "MINUTE": 60_000_000,
    "HOUR": 3_600_000_000,
    "DAY": 86_400_000_000,
    "WEEK": 604_800_000_000,
}
_EPOCH: Final = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)


def conditions_of(
    trees: list[Any], schemas: Mapping[str, pa.Schema], now: datetime.datetime
) -> dict[str, list[list[Condition]]]:
    """For each table that is read, the conditions of each place that it is read in.

    `schemas` are the columns of the tables by name; `now` is what `now()` means.
    """
    from sqlglot import exp

    own = {name.lower(): name for name in schemas}
    conditions: dict[str, list[list[Condition]]] = {}
    for tree in trees:
        defined = {cte.alias.lower() for cte in tree.find_all(exp.CTE)}
        for table in tree.find_all(exp.Table):
            name = own.get(table.name.lower())
            if name is None or table.db or table.name.lower() in defined:
                continue
            conditions.setdefault(name, []).append(list(_of_place(table, schemas[name], now)))
    return conditions


def _of_place(table: Any, schema: pa.Schema, now: datetime.datetime) -> Iterator[Condition]:
    from sqlglot import exp

    select = table.find_ancestor(exp.Select)
    direct = table.parent
    if isinstance(direct, exp.Join | exp.From):
        direct = direct.parent
    where = select.args.get("where") if select is not None and direct is select else None
    if where is None or table.args.get("pivots") or table.args.get("sample"):
        return
    if any(isinstance(other, exp.TableSample) for other in table.find_all(exp.TableSample)):
        return
    sources = _sources(select)
    alias = table.alias_or_name.lower()
    types = {field.name.lower(): field for field in schema}
    for part in _conjuncts(where.this):
        for column, operator, literal in _simple(part):
            # A name without its table is this table's only if there is no other to have it.
            if (column.table.lower() != alias) if column.table else sources != 1:
                continue
            if column.args.get("db"):
                continue
            field = types.get(column.name.lower())
            value = None if field is None else _value(literal, operator, field.type, now)
            if field is not None and value is not None:
                yield field.name, operator, value


def _sources(select: Any) -> int:
    return (
        1
        + len(select.args.get("joins") or ())
        + len(select.args.get("laterals") or ())
        + len(select.args.get("pivots") or ())
    )


def _conjuncts(node: Any) -> Iterator[Any]:
    from sqlglot import exp

    if isinstance(node, exp.Paren):
        yield from _conjuncts(node.this)
    elif isinstance(node, exp.And):
        yield from _conjuncts(node.left)
        yield from _conjuncts(node.right)
    else:
        yield node


def _simple(node: Any) -> Iterator[tuple[Any, str, Any]]:
    """Column, operator and the other side, where a condition has that form."""
    from sqlglot import exp

    operator = _COMPARED.get(type(node).__name__)
    if operator is not None:
        if isinstance(node.left, exp.Column):
            yield node.left, operator, node.right
        elif isinstance(node.right, exp.Column):
            yield node.right, _TURNED[operator], node.left
    elif isinstance(node, exp.Between) and isinstance(node.this, exp.Column):
        if not node.args.get("symmetric"):
            yield node.this, ">=", node.args["low"]
            yield node.this, "<=", node.args["high"]
    elif isinstance(node, exp.In) and isinstance(node.this, exp.Column):
        if node.expressions and not node.args.get("query") and not node.args.get("unnest"):
            yield node.this, "in", node.expressions
    elif isinstance(node, exp.Like) and isinstance(node.this, exp.Column):
        yield node.this, "starts", node.expression


def _value(term: Any, operator: str, kind: pa.DataType, now: datetime.datetime) -> Any:
    """What is compared with, as the column has it; None if that is not certain."""
    if operator == "in":
        values = [_value(one, "=", kind, now) for one in term]
        return None if any(value is None for value in values) else values
    if operator == "starts":
        return _prefix(term) if pa.types.is_string(kind) else None
    from sqlglot import exp

    if pa.types.is_string(kind):
        plain = isinstance(term, exp.Literal) and term.is_string and "\\" not in term.this
        return str(term.this) if plain else None
    if pa.types.is_integer(kind) or pa.types.is_floating(kind):
        return _number(term)
    # Spark's own `now()` is a little later than ours: good for what lies after it only.
    if _is_now(term) and operator not in (">", ">="):
        return None
    if pa.types.is_timestamp(kind) and kind.tz:
        return _instant(term, now)
    if pa.types.is_date(kind):
        instant = None if _is_now(term) else _instant(term, now)
        return instant.date() if instant is not None and _is_midnight(instant) else None
    return None


def _is_midnight(moment: datetime.datetime) -> bool:
    return moment.time() == datetime.time(0)


def _is_now(term: Any) -> bool:
    from sqlglot import exp

    return term.find(exp.CurrentTimestamp) is not None or any(
        _is_call(one, "now") for one in term.find_all(exp.Anonymous)
    )


def _is_call(term: Any, name: str) -> bool:
    from sqlglot import exp

    return isinstance(term, exp.Anonymous) and term.name.lower() == name and not term.expressions


def _prefix(term: Any) -> str | None:
    """What a LIKE pattern starts with, if that is something."""
    from sqlglot import exp

    if not isinstance(term, exp.Literal) or not term.is_string or "\\" in term.this:
        return None
    text = str(term.this)
    cut = min((text.find(one) for one in "%_" if one in text), default=len(text))
    return text[:cut] or None


def _number(term: Any) -> int | float | None:
    from sqlglot import exp

    sign = 1
    while isinstance(term, exp.Neg | exp.Paren):
        sign = -sign if isinstance(term, exp.Neg) else sign
        term = term.this
    if not isinstance(term, exp.Literal) or term.is_string:
        return None
    try:
        return sign * int(term.this)
    except ValueError:
        return sign * float(term.this)


def _instant(term: Any, now: datetime.datetime) -> datetime.datetime | None:
    from sqlglot import exp

    if isinstance(term, exp.Paren):
        return _instant(term.this, now)
    if isinstance(term, exp.Literal) and term.is_string:
        return _read(str(term.this))
    if isinstance(term, exp.Cast) and isinstance(term.this, exp.Literal) and term.this.is_string:
        instant = _read(str(term.this.this))
        if instant is None or not term.is_type("timestamp", "timestamptz", "timestampltz", "date"):
            return None
        return instant if not term.is_type("date") or _is_midnight(instant) else None
    if isinstance(term, exp.CurrentTimestamp) or _is_call(term, "now"):
        return now
    if isinstance(term, exp.Anonymous | exp.UnixToTime):
        return _seconds(term)
    if isinstance(term, exp.Add | exp.Sub):
        start = _instant(term.left, now)
        length = _length(term.right)
        if start is None or length is None:
            return None
        return start + length if isinstance(term, exp.Add) else start - length
    return None


def _seconds(term: Any) -> datetime.datetime | None:
    """`timestamp_seconds(n)` and `timestamp_micros(n)`."""
    from sqlglot import exp

    name = term.name.lower() if isinstance(term, exp.Anonymous) else "timestamp_seconds"
    scale = {"timestamp_seconds": 1_000_000, "timestamp_millis": 1000, "timestamp_micros": 1}
    if isinstance(term, exp.Anonymous):
        if len(term.expressions) != 1:
            return None
        number = _number(term.expressions[0])
    else:
        if term.args.get("scale") is not None or term.args.get("zone") is not None:
            return None
        number = _number(term.this)
    if name not in scale or not isinstance(number, int):
        return None
    try:
        return _EPOCH + datetime.timedelta(microseconds=number * scale[name])
    except OverflowError:
        return None


def _length(term: Any) -> datetime.timedelta | None:
    from sqlglot import exp

    if not isinstance(term, exp.Interval) or term.unit is None:
        return None
    unit = str(term.unit).upper().rstrip("S")
    word = term.this
    number = word.this if isinstance(word, exp.Literal) else None
    if unit not in _UNITS or number is None or not str(number).lstrip("-").isdigit():
        return None
    try:
        return datetime.timedelta(microseconds=int(number) * _UNITS[unit])
    except OverflowError:
        return None


def _read(text: str) -> datetime.datetime | None:
    """A moment that is written with all its digits; in UTC, as our sessions are."""
    try:
        instant = datetime.datetime.fromisoformat(text.strip())
    except ValueError:
        return None
    return instant if instant.tzinfo is not None else instant.replace(tzinfo=datetime.UTC)
