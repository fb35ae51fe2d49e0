"""What an SQL question asks of a lake: which tables, and whether they and their columns exist.

Mistakes are found here, from the names alone, before Spark is started. Only what is certain is a
mistake: text that this parser does not know is left to Spark.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

from zenlake.config.nearest import nearest
from zenlake.errors import LocalError

__all__ = ["Question", "Unanswerable", "ask", "no_table", "only_counts"]

MOST_NAMES = 30
DIALECTS: Final = ("spark", "databricks")
"""How sqlglot reads a question, tried in turn: Spark knows `json:a.b`, its dialect does not."""


class Unanswerable(LocalError):
    """A question about something that is not there; the message says what is."""


@dataclass(frozen=True, slots=True)
class Question:
    """The tables of the lake that a question reads, by the names that they have."""

    tables: frozenset[str]
    trees: tuple[Any, ...] = ()
    """The statements as sqlglot reads them; none where it cannot."""
    others: frozenset[str] = frozenset()
    """Names that are no tables of the lake, and mean something all the same."""


def ask(
    query: str,
    columns: Mapping[str, Sequence[str]],
    known: Callable[[str], bool] = lambda name: False,
) -> Question:
    """Read a question about a lake whose tables have these columns.

    `known` says whether a name that is no table of the lake means something all the same. Raises
    `Unanswerable` for a table or column that does not exist.
    """
    if not query.strip().strip(";"):
        raise Unanswerable("there is no question; write e.g. SELECT * FROM samples LIMIT 5")
    own = {name.lower(): name for name in columns}
    trees = _parsed(query)
    if trees is None:
        # Which of the tables are meant cannot be told: all of them may be.
        return Question(frozenset(columns))
    tables: set[str] = set()
    others: set[str] = set()
    for tree in trees:
        sources, foreign = _sources(tree)
        for name in sources:
            if name.lower() in own:
                tables.add(own[name.lower()])
            elif known(name):
                others.add(name)
            else:
                raise Unanswerable(no_table(name, columns))
        if not foreign and all(name.lower() in own for name in sources):
            _demand_columns(tree, [(name, columns[name]) for name in tables])
    return Question(frozenset(tables), tuple(trees), frozenset(others))


def only_counts(query: str) -> tuple[str, str] | None:
    """The table that a question only counts the rows of, and what it calls the number.

    That stands in the log of the table, and no job is needed for it.
    """
    from sqlglot import exp

    trees = _parsed(query)
    if trees is None or len(trees) != 1 or not isinstance(trees[0], exp.Select):
        return None
    said = {name: value for name, value in trees[0].args.items() if value}
    source = said.pop("from_", None) or said.pop("from", None)
    if set(said) != {"expressions"} or len(said["expressions"]) != 1 or source is None:
        return None
    [count] = said["expressions"]
    name = "count(1)"
    if isinstance(count, exp.Alias):
        name, count = count.alias, count.this
    if not isinstance(count, exp.Count) or not isinstance(count.this, exp.Star):
        return None
    table = source.this
    if not isinstance(table, exp.Table) or not isinstance(table.this, exp.Identifier):
        return None
    plain = {key for key, value in table.args.items() if value} == {"this"}
    return (table.name, name) if plain and not count.expressions else None


@lru_cache(maxsize=64)
def _parsed(query: str) -> list[Any] | None:
    """Return the statements of a question, which nobody changes; None if they cannot be read."""
    import sqlglot
    from sqlglot import exp
    from sqlglot.errors import SqlglotError

    for dialect in DIALECTS:
        try:
            trees = [tree for tree in sqlglot.parse(query, read=dialect) if tree is not None]
        except (SqlglotError, RecursionError):
            continue
        # A statement that the parser only carries along says nothing about its tables.
        return None if any(isinstance(tree, exp.Command) for tree in trees) else trees
    return None


def _sources(tree: Any) -> tuple[list[str], bool]:
    """The names that rows are read from, without those that the question itself defines.

    And whether rows come from elsewhere too: a file, another catalog, a function.
    """
    from sqlglot import exp

    defined = {cte.alias.lower() for cte in tree.find_all(exp.CTE)}
    names: list[str] = []
    foreign = False
    for table in tree.find_all(exp.Table):
        if table.db or not table.name or not isinstance(table.this, exp.Identifier):
            foreign = True
        elif table.name.lower() not in defined:
            names.append(table.name)
    return names, foreign


def no_table(name: str, columns: Mapping[str, Sequence[str]]) -> str:
    """Return the sentence that says that there is no such table, and which there are."""
    near = nearest(name.lower(), columns)
    advice = f"did you mean '{near}'? There" if near else "there"
    return f"there is no table '{name}'; {advice} are {_listed(columns)}"


def _demand_columns(tree: Any, tables: Sequence[tuple[str, Sequence[str]]]) -> None:
    """Refuse a column that is neither of the tables nor defined anywhere in the question."""
    from sqlglot import exp

    if tree.find(exp.Lateral, exp.Lambda, exp.Pivot, exp.Values) is not None:
        return  # names that are made up where they stand
    real = {column.lower() for _, columns in tables for column in columns}
    defined = {alias.alias.lower() for alias in tree.find_all(exp.Alias)}
    for alias in tree.find_all(exp.TableAlias):
        defined |= {column.name.lower() for column in alias.columns}
    # What functions that make rows call their columns, when nobody says it.
    defined |= {"col", "key", "value", "pos", "_metadata"}
    qualifiers = {alias.name.lower() for alias in tree.find_all(exp.TableAlias)}
    qualifiers |= {name.lower() for name, _ in tables}
    for column in tree.find_all(exp.Column):
        if not isinstance(column.this, exp.Identifier):
            continue
        # `a.b` may also be the field b of a column a.
        word = column.name if not column.table or column.table.lower() in qualifiers else ""
        if word and word.lower() not in real | defined:
            raise Unanswerable(_no_column(word, tables))


def _no_column(name: str, tables: Sequence[tuple[str, Sequence[str]]]) -> str:
    words = [column for _, columns in tables for column in columns]
    near = nearest(name.lower(), words)
    advice = f"did you mean '{near}'? " if near else ""
    if not tables:
        return f"there is no column '{name}': the question reads no table"
    where = " and ".join(f"'{table}'" for table, _ in sorted(tables))
    has = "; ".join(f"{table} has {_listed(columns)}" for table, columns in sorted(tables))
    return f"there is no column '{name}' in {where}; {advice}{has}"


def _listed(names: Mapping[str, Any] | Sequence[str]) -> str:
    words = list(names)
    more = f" and {len(words) - MOST_NAMES} more" if len(words) > MOST_NAMES else ""
    return ", ".join(words[:MOST_NAMES]) + more if words else "none"
