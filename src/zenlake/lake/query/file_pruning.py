"""Which conditions a question puts on the columns of a table, read from its text.

What is found is only used to leave out files in which no row can meet it (`lake/table/pruning`), so
a condition that is not understood costs time and never rows. Only those parts of a WHERE that every
row of the answer must meet count: comparisons of columns with something whose value is known
without Spark, joined by AND and OR.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

import pyarrow as pa

from zenlake.clock.unix_time import datetime_at, micros_of
from zenlake.expr.tree import And, Comparison, Field, In, Literal, Moment, Node, Or, Term

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

FieldOf = Callable[[Any], pa.Field | None]
"""Which column of the table a name means, if it is one of its own."""


def conditions_of(
    trees: list[Any], schemas: Mapping[str, pa.Schema], now: datetime.datetime
) -> dict[str, list[list[Node]]]:
    """For each table that is read, the conditions of each place that it is read in.

    `schemas` are the columns of the tables by name; `now` is what `now()` means.
    """
    from sqlglot import exp

    own = {name.lower(): name for name in schemas}
    conditions: dict[str, list[list[Node]]] = {}
    for tree in trees:
        defined = {cte.alias.lower() for cte in tree.find_all(exp.CTE)}
        for table in tree.find_all(exp.Table):
            name = own.get(table.name.lower())
            if name is None or table.db or table.name.lower() in defined:
                continue
            conditions.setdefault(name, []).append(list(_of_place(table, schemas[name], now)))
    return conditions


def _of_place(table: Any, schema: pa.Schema, now: datetime.datetime) -> Iterator[Node]:
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

    def field_of(column: Any) -> pa.Field | None:
        # A name without its table is this table's only if there is no other to have it.
        if (column.table.lower() != alias) if column.table else sources != 1:
            return None
        return None if column.args.get("db") else types.get(column.name.lower())

    node = _node(where.this, field_of, now)
    if node is not None:
        yield from _conjuncts(node)


def _conjuncts(node: Node) -> Iterator[Node]:
    """The parts that all must be true: some tables are asked for those of some columns alone."""
    if isinstance(node, And):
        for one in node.nodes:
            yield from _conjuncts(one)
    else:
        yield node


def _sources(select: Any) -> int:
    return (
        1
        + len(select.args.get("joins") or ())
        + len(select.args.get("laterals") or ())
        + len(select.args.get("pivots") or ())
    )


def _node(part: Any, field_of: FieldOf, now: datetime.datetime) -> Node | None:
    """The condition as a tree over columns, or what is understood of it; None if nothing is."""
    from sqlglot import exp

    if isinstance(part, exp.Paren):
        return _node(part.this, field_of, now)
    if isinstance(part, exp.And | exp.Or):
        parts = [_node(one, field_of, now) for one in part.flatten()]
        if isinstance(part, exp.Or):
            known = tuple(one for one in parts if one is not None)
            return Or(known) if len(known) == len(parts) else None
        return _all_of(parts)

    def compared(column: Any, operator: str, other: Any) -> Node | None:
        field = field_of(column) if isinstance(column, exp.Column) else None
        term = None if field is None else _term(other, operator, field.type, now)
        if field is None or term is None:
            return None
        return Comparison(Field(field.name), operator, term)

    operator = _COMPARED.get(type(part).__name__)
    if operator is not None:
        return compared(part.left, operator, part.right) or compared(
            part.right, _TURNED[operator], part.left
        )
    if isinstance(part, exp.Between) and not part.args.get("symmetric"):
        ends = (">=", part.args["low"]), ("<=", part.args["high"])
        return _all_of([compared(part.this, how, end) for how, end in ends])
    if isinstance(part, exp.In) and not part.args.get("query") and not part.args.get("unnest"):
        each = tuple(compared(part.this, "=", one) for one in part.expressions)
        terms = tuple(one.right for one in each if isinstance(one, Comparison))
        if terms and len(terms) == len(each) and isinstance(each[0], Comparison):
            return In(each[0].left, terms)
    if isinstance(part, exp.Like):
        return compared(part.this, "LIKE", part.expression)
    return None


def _all_of(parts: list[Node | None]) -> Node | None:
    known = tuple(one for one in parts if one is not None)
    return known[0] if len(known) == 1 else And(known) if known else None


def _term(part: Any, operator: str, kind: pa.DataType, now: datetime.datetime) -> Term | None:
    """What is compared with, as the column has it; None if that is not certain."""
    from sqlglot import exp

    if pa.types.is_string(kind):
        plain = isinstance(part, exp.Literal) and part.is_string and "\\" not in part.this
        return Literal(str(part.this)) if plain else None
    if operator == "LIKE":
        return None
    if pa.types.is_integer(kind) or pa.types.is_floating(kind):
        number = _number(part)
        return None if number is None else Literal(number)
    # Spark's own `now()` is a little later than ours: good for what lies after it only.
    if _is_now(part) and (operator not in (">", ">=") or pa.types.is_date(kind)):
        return None
    if pa.types.is_date(kind) or (pa.types.is_timestamp(kind) and kind.tz):
        instant = _instant(part, now)
        if instant is None or (pa.types.is_date(kind) and not _is_midnight(instant)):
            return None
        return Moment(micros_of(instant), str(part))
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
        return datetime_at(number * scale[name])
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
