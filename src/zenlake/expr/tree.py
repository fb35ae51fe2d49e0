"""The nodes of a predicate: what they mean for a record, and how they read as SQL.

A comparison with a field that is not there is false, and so is one between a text and a number:
a sample that cannot be judged is not selected. `NOT` turns that into true, as the subset of DDS
has no third value.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from zenlake.errors import LocalError
from zenlake.expr.record import field_of

#: What a field may be.
Value = int | float | str | bool | None


class ExprError(LocalError, ValueError):
    """A predicate that does not parse, or lacks a parameter."""


class Unsupported(ExprError):
    """A predicate that asks for what is not part of the language, such as a function."""


@dataclass(frozen=True, slots=True)
class Field:
    """A field of the record; dots lead into nested ones."""

    name: str

    def of(self, record: Mapping[str, Any], parameters: Sequence[str]) -> Value:
        """Its value; None if it is not there."""
        found: Value = field_of(record, self.name)
        return found

    def sql(self) -> str:
        """Its name."""
        return self.name


@dataclass(frozen=True, slots=True)
class Literal:
    """A number or a text."""

    value: int | float | str

    def of(self, record: Mapping[str, Any], parameters: Sequence[str]) -> Value:
        """Its value."""
        return self.value

    def sql(self) -> str:
        """The value as SQL writes it."""
        if isinstance(self.value, str):
            return "'" + self.value.replace("'", "''") + "'"
        return repr(self.value)


@dataclass(frozen=True, slots=True)
class Parameter:
    """A value that is given with the predicate, by number."""

    index: int

    def of(self, record: Mapping[str, Any], parameters: Sequence[str]) -> Value:
        """The parameter, a number if it reads as one; raises `ExprError` if it was not given."""
        if self.index >= len(parameters):
            raise ExprError(
                f"%{self.index}: only {len(parameters)} parameters are given, counted from 0"
            )
        return _value(parameters[self.index])

    def sql(self) -> str:
        """As DDS writes it."""
        return f"%{self.index}"


Term = Field | Literal | Parameter


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two terms and an operator between them."""

    left: Term
    operator: str
    right: Term

    def holds(self, record: Mapping[str, Any], parameters: Sequence[str] = ()) -> bool:
        """Whether it is so."""
        return _compare(
            self.left.of(record, parameters), self.operator, self.right.of(record, parameters)
        )

    def sql(self) -> str:
        """The comparison as SQL."""
        return f"{self.left.sql()} {self.operator} {self.right.sql()}"


@dataclass(frozen=True, slots=True)
class Between:
    """A field within two bounds, which are included."""

    field: Field
    low: Term
    high: Term
    negated: bool = False

    def holds(self, record: Mapping[str, Any], parameters: Sequence[str] = ()) -> bool:
        """Whether it is so; a field that is not there is neither within nor outside."""
        value = self.field.of(record, parameters)
        low, high = self.low.of(record, parameters), self.high.of(record, parameters)
        if not (_comparable(value, low) and _comparable(value, high)):
            return False
        within = _compare(value, ">=", low) and _compare(value, "<=", high)
        return within != self.negated

    def sql(self) -> str:
        """The condition as SQL."""
        word = "NOT BETWEEN" if self.negated else "BETWEEN"
        return f"{self.field.sql()} {word} {self.low.sql()} AND {self.high.sql()}"


@dataclass(frozen=True, slots=True)
class Not:
    """The opposite."""

    node: Node

    def holds(self, record: Mapping[str, Any], parameters: Sequence[str] = ()) -> bool:
        """Whether the condition is not so."""
        return not self.node.holds(record, parameters)

    def sql(self) -> str:
        """The condition as SQL."""
        inner = self.node.sql()
        return f"NOT ({inner})" if isinstance(self.node, And | Or) else f"NOT {inner}"


@dataclass(frozen=True, slots=True)
class And:
    """All of several conditions."""

    nodes: tuple[Node, ...]

    def holds(self, record: Mapping[str, Any], parameters: Sequence[str] = ()) -> bool:
        """Whether all are so."""
        return all(node.holds(record, parameters) for node in self.nodes)

    def sql(self) -> str:
        """The condition as SQL."""
        return " AND ".join(
            f"({node.sql()})" if isinstance(node, Or) else node.sql() for node in self.nodes
        )


@dataclass(frozen=True, slots=True)
class Or:
    """At least one of several conditions."""

    nodes: tuple[Node, ...]

    def holds(self, record: Mapping[str, Any], parameters: Sequence[str] = ()) -> bool:
        """Whether one is so."""
        return any(node.holds(record, parameters) for node in self.nodes)

    def sql(self) -> str:
        """The condition as SQL."""
        return " OR ".join(node.sql() for node in self.nodes)


Node = Comparison | Between | Not | And | Or


def _value(text: str) -> Value:
    """A parameter's value: DDS gives them all as text, numbers without quotes."""
    if len(text) > 1 and text[0] == text[-1] == "'":
        return text[1:-1]
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def _number(value: Value) -> bool:
    return isinstance(value, int | float)


def _comparable(a: Value, b: Value) -> bool:
    return (_number(a) and _number(b)) or (isinstance(a, str) and isinstance(b, str))


def _compare(a: Value, operator: str, b: Value) -> bool:
    if not _comparable(a, b):
        return False
    if operator == "LIKE":
        return isinstance(a, str) and isinstance(b, str) and like(a, b)
    found: bool
    match operator:
        case "=":
            found = a == b
        case "<>":
            found = a != b
        case "<":
            found = a < b  # type: ignore[operator]
        case "<=":
            found = a <= b  # type: ignore[operator]
        case ">":
            found = a > b  # type: ignore[operator]
        case _:
            found = a >= b  # type: ignore[operator]
    return found


def like(text: str, pattern: str) -> bool:
    """Whether the whole text fits: `%` is any run of characters, `_` is one.

    Walked without going back, so that no pattern takes long.
    """
    literals = _runs(pattern)
    if len(literals) == 1:
        return len(text) == len(literals[0]) and _fits(text, 0, literals[0])
    first, *middle, last = literals
    if len(text) < len(first) + len(last) or not _fits(text, 0, first):
        return False
    place, end = len(first), len(text) - len(last)
    for run in middle:
        while place + len(run) <= end and not _fits(text, place, run):
            place += 1
        if place + len(run) > end:
            return False
        place += len(run)
    return _fits(text, end, last)


@lru_cache(maxsize=256)
def _runs(pattern: str) -> tuple[str, ...]:
    return tuple(pattern.split("%"))


def _fits(text: str, place: int, run: str) -> bool:
    return all(c in ("_", text[place + i]) for i, c in enumerate(run))
