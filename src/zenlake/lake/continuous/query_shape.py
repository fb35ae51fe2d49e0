"""What can be read from the text of a continuous query: what its rows are about, and what an
alert waits for.

    shape_of("SELECT robot, avg(percent) AS mean FROM battery GROUP BY robot").subject
    # ('robot',)

Pure: sqlglot reads the text, and Spark is not asked.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from zenlake.errors import LocalError

__all__ = [
    "HOLDS",
    "SUBJECT",
    "TIME",
    "ResultShape",
    "chunks_of",
    "conditional",
    "needed_columns",
    "reads_every_column",
    "shape_of",
]

TIME: Final = "_time"
HOLDS: Final = "_holds"
SUBJECT: Final = "_subject"
"""Columns that an alert's question is given beside its own."""

_ESCAPED: Final = frozenset("%*$?#")


@dataclass(frozen=True, slots=True)
class ResultShape:
    """A question that can stand."""

    subject: tuple[str, ...]
    """The columns that say what a row is about: those it is grouped by, or `key`."""
    grouped: bool
    joined: bool
    """Whether rows of several places are put together."""
    stateful: bool
    """Return True if Spark keeps rows or groups from one batch to the next."""


def shape_of(query: str) -> ResultShape:
    """What a continuous query looks like; raises `LocalError` for one that cannot run on."""
    tree = _selected(query)
    names = [one.alias_or_name for one in tree.expressions]
    grouped = _grouped(tree)
    subject: tuple[str, ...]
    if grouped:
        subject = tuple(
            name
            for name, one in zip(names, tree.expressions, strict=True)
            if name and not _aggregates(one) and not _is_window(tree, one)
        )
    else:
        subject = tuple(name for name in names if name.lower() == "key")
    return ResultShape(subject, grouped, _joined(tree), _stateful(tree))


def needed_columns(query: str, columns: Sequence[str]) -> list[str]:
    """Return those of a table's columns that a query may read, and `key` and `time`.

    A name that the text mentions in any place counts as read. `*` and NATURAL read all columns.
    """
    from sqlglot import exp

    tree = _selected(query)
    every = any(not isinstance(star.parent, exp.Count) for star in tree.find_all(exp.Star))
    if every or any(join.args.get("method") for join in tree.find_all(exp.Join)):
        return list(columns)
    named = {one.name.lower() for one in tree.find_all(exp.Identifier)} | {"key", "time"}
    return [name for name in columns if name.lower() in named]


def reads_every_column(query: str) -> bool:
    """Return True if a query reads whatever columns there are, with `*`."""
    return bool(needed_columns(query, ["\0"]))


def conditional(query: str, since: datetime | None = None, until: datetime | None = None) -> str:
    """The question of an alert with its condition as a column, instead of as a filter.

    So it is heard when a condition that held does not hold any more. `since` and `until`: only
    about what was published from the one to the other, without what alerts and views said.
    """
    from sqlglot import exp

    tree = _selected(query)
    grouped = _grouped(tree)
    place = "having" if grouped else "where"
    condition = tree.args.get(place)
    if condition is None:
        word = "HAVING" if grouped else "WHERE"
        raise LocalError(
            f"an alert needs a condition: there is no {word} in the question, so that nothing "
            "could ever clear it"
        )
    names = {one.alias_or_name.lower() for one in tree.expressions}
    for name in (TIME, HOLDS, SUBJECT):
        if name in names:
            raise LocalError(f"the column '{name}' is given to alerts; choose another name")
    tree.set(place, None)
    first = tree.args.get("from_") or tree.args.get("from")
    if first is None:
        raise LocalError("an alert is about tables; write SELECT … FROM … WHERE …")
    base = first.this.alias_or_name
    time = exp.column("time", table=base)
    more = [
        exp.alias_(exp.Max(this=time) if grouped else time, TIME),
        exp.alias_(exp.Paren(this=condition.this), HOLDS),
    ]
    if not grouped:
        more.append(exp.alias_(exp.column("key", table=base), SUBJECT))
    for one in more:
        tree.append("expressions", one)
    for operator, moment in ((">=", since), ("<", until)):
        if moment is not None:
            instant = f"{moment.astimezone(UTC):%Y-%m-%d %H:%M:%S.%f}"
            tree = tree.where(f"`{base}`.time {operator} TIMESTAMP '{instant}Z'", dialect="spark")
    if since is not None or until is not None:
        for own in ("view", "alert"):
            tree = tree.where(f"NOT startswith(`{base}`.key, '{own}/')", dialect="spark")
    return str(tree.sql(dialect="spark"))


def chunks_of(row: Mapping[str, Any], subject: Sequence[str]) -> str:
    """What a row is about as chunks of a key; what no key can hold is written with `%`."""
    return "/".join(_chunks(row[name]) for name in subject)


def _chunks(value: Any) -> str:
    if value is None:
        return "null"
    text = value.isoformat() if isinstance(value, datetime) else str(value)
    if isinstance(value, bytes | bytearray):
        text = bytes(value).hex()
    if not text:
        return "%00"
    pieces = text.split("/")
    # A key has no empty chunks.
    return ("/" if all(pieces) else "%2F").join(map(_escaped, pieces))


def _escaped(piece: str) -> str:
    return "".join(
        "".join(f"%{byte:02X}" for byte in letter.encode())
        if letter in _ESCAPED or letter < " " or (letter == "@" and not place)
        else letter
        for place, letter in enumerate(piece)
    )


def _selected(query: str) -> Any:
    import sqlglot
    from sqlglot import exp
    from sqlglot.errors import SqlglotError

    try:
        tree = sqlglot.parse_one(query, read="spark")
    except (SqlglotError, RecursionError) as error:
        first = str(error).partition("\n")[0]
        raise LocalError(f"the question cannot be read: {first}") from error
    if not isinstance(tree, exp.Select):
        raise LocalError("a continuous query is one SELECT, without UNION and the like around it")
    for word, name in (("order", "ORDER BY"), ("limit", "LIMIT"), ("offset", "OFFSET")):
        if tree.args.get(word) is not None:
            raise LocalError(f"{name} means nothing where rows never end; leave it out")
    return tree


def _grouped(tree: Any) -> bool:
    return tree.args.get("group") is not None or any(map(_aggregates, tree.expressions))


def _aggregates(expression: Any) -> bool:
    from sqlglot import exp

    return expression.find(exp.AggFunc) is not None


def _joined(tree: Any) -> bool:
    from sqlglot import exp

    return tree.find(exp.Join) is not None or tree.args.get("distinct") is not None


def _stateful(tree: Any) -> bool:
    """Return True if Spark has to remember something: groups, rows seen, partners of a join."""
    from sqlglot import exp

    if tree.find(exp.AggFunc, exp.Group, exp.Distinct, exp.Exists) is not None:
        return True
    if any(one.args.get("query") is not None for one in tree.find_all(exp.In)):
        return True
    for one in tree.find_all(exp.SetOperation):
        if not isinstance(one, exp.Union) or one.args.get("distinct"):
            return True
    # `latest` is no stream: a row that is joined with it waits for nothing.
    return any(
        sum(
            not (isinstance(source.this, exp.Table) and source.this.name.lower() == "latest")
            for source in (select.args.get("from_") or select.args.get("from"), *joins)
            if source is not None
        )
        > 1
        for select in tree.find_all(exp.Select)
        if (joins := select.args.get("joins") or ())
    )


def _is_window(tree: Any, expression: Any) -> bool:
    """Whether a column is a window of time, or an end of one."""
    from sqlglot import exp

    inner = expression.unalias()
    calls = {call.name.lower() for call in inner.find_all(exp.Anonymous)}
    if calls & {"window", "session_window", "window_time"}:
        return True
    columns = list(inner.find_all(exp.Column))
    return bool(columns) and all(
        "window" in (column.name.lower(), column.table.lower()) for column in columns
    )
