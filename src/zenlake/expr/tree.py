"""The nodes of a predicate, and how they read as text.

Terms have a value: fields of the payload, literals, parameters, functions, arithmetic. Conditions
are true, false or, where a value is missing or two of different kinds are compared, unknown, as in
SQL: `NOT` of unknown is unknown, and only what is true is selected. Numbers are 64-bit floats.

What a tree means for one sample is in `expr/closure`; a test compares that with Spark SQL. Which
files of a table and segments of a journal may have rows that it is true of is in `expr/pruning`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

from zenlake.errors import LocalError

#: Kinds of values: numbers, texts, truth values, instants.
NUMBER: Final = "number"
TEXT: Final = "text"
TRUTH: Final = "truth value"
INSTANT: Final = "instant"
Kinds = tuple[str, ...]
ANY: Final[Kinds] = (NUMBER, TEXT, TRUTH)


class ExprError(LocalError, ValueError):
    """A predicate that does not parse, or lacks a parameter."""


class Unsupported(ExprError):
    """A predicate that asks for what is not part of the language, such as a function."""


@dataclass(frozen=True, slots=True)
class Field:
    """A field of the payload; dots lead into nested ones."""

    name: str

    def kinds(self) -> Kinds:
        """What it may be: anything that JSON has."""
        return ANY

    def sql(self) -> str:
        """Its name."""
        return self.name


@dataclass(frozen=True, slots=True)
class Literal:
    """A number, a text, or a truth value."""

    value: int | float | str | bool

    def kinds(self) -> Kinds:
        """What it is."""
        if isinstance(self.value, bool):
            return (TRUTH,)
        return (TEXT,) if isinstance(self.value, str) else (NUMBER,)

    def sql(self) -> str:
        """The value as SQL writes it."""
        if isinstance(self.value, str):
            return "'" + self.value.replace("'", "''") + "'"
        if isinstance(self.value, bool):
            return "TRUE" if self.value else "FALSE"
        return repr(self.value)


@dataclass(frozen=True, slots=True)
class Moment:
    """An instant: a text that was compared with one, in microseconds since 1970."""

    micros: int
    text: str

    def kinds(self) -> Kinds:
        """An instant."""
        return (INSTANT,)

    def sql(self) -> str:
        """As it was written."""
        return "'" + self.text.replace("'", "''") + "'"


@dataclass(frozen=True, slots=True)
class Parameter:
    """A value that is given with the predicate, by number."""

    index: int

    def kinds(self) -> Kinds:
        """A number or a text."""
        return (NUMBER, TEXT)

    def sql(self) -> str:
        """As DDS writes it."""
        return f"%{self.index}"


@dataclass(frozen=True, slots=True)
class Function:
    """A function of the sample, or of other values; `FUNCTIONS` says which there are."""

    name: str
    arguments: tuple[Term, ...] = ()

    def kinds(self) -> Kinds:
        """What it gives."""
        return FUNCTIONS[self.name].gives

    def sql(self) -> str:
        """The call."""
        return f"{self.name}({', '.join(one.sql() for one in self.arguments)})"


@dataclass(frozen=True, slots=True)
class Arithmetic:
    """Two numbers and one of `+ - * / %` between them; division by zero is unknown."""

    left: Term
    operator: str
    right: Term

    def kinds(self) -> Kinds:
        """A number."""
        return (NUMBER,)

    def sql(self) -> str:
        """With parentheses around what is arithmetic itself."""
        return f"{_inner(self.left)} {self.operator} {_inner(self.right)}"


Term = Field | Literal | Moment | Parameter | Function | Arithmetic


@dataclass(frozen=True, slots=True)
class Signature:
    """What a function takes and gives."""

    takes: tuple[Kinds, ...]
    gives: Kinds
    #: Whether its arguments must be literals.
    literal: bool = False


FUNCTIONS: Final[Mapping[str, Signature]] = {
    "key": Signature((), (TEXT,)),
    "chunk": Signature(((NUMBER,),), (TEXT,), literal=True),
    "kind": Signature((), (TEXT,)),
    "encoding": Signature((), (TEXT,)),
    "value": Signature((), ANY),
    "time": Signature((), (INSTANT,)),
    "now": Signature(((TEXT,),), (INSTANT,), literal=True),
    "length": Signature(((TEXT,),), (NUMBER,)),
    "abs": Signature(((NUMBER,),), (NUMBER,)),
    **{
        name: Signature(((INSTANT,),), (NUMBER,))
        for name in ("year", "month", "day", "hour", "minute", "second")
    },
}
"""Every function by name. `now('-10s')` and `now(-10s)` are the same; `now()` has no argument."""


class _Condition:
    """What all conditions have."""

    __slots__ = ()

    def holds(self, record: Mapping[str, Any], parameters: Sequence[str] = ()) -> bool:
        """Whether it is so for a record; what is unknown is not."""
        from zenlake.expr.closure import SampleFields, compiled

        return compiled(self, tuple(parameters))(SampleFields(record)) is True


@dataclass(frozen=True, slots=True)
class Comparison(_Condition):
    """Two terms and an operator between them."""

    left: Term
    operator: str
    right: Term

    def sql(self) -> str:
        """The comparison as SQL."""
        return f"{self.left.sql()} {self.operator} {self.right.sql()}"


@dataclass(frozen=True, slots=True)
class Between(_Condition):
    """A value within two bounds, which are included."""

    field: Term
    low: Term
    high: Term
    negated: bool = False

    def sql(self) -> str:
        """The condition as SQL."""
        word = "NOT BETWEEN" if self.negated else "BETWEEN"
        return f"{self.field.sql()} {word} {self.low.sql()} AND {self.high.sql()}"


@dataclass(frozen=True, slots=True)
class In(_Condition):
    """A value among several."""

    field: Term
    among: tuple[Term, ...]
    negated: bool = False

    def sql(self) -> str:
        """The condition as SQL."""
        word = "NOT IN" if self.negated else "IN"
        return f"{self.field.sql()} {word} ({', '.join(one.sql() for one in self.among)})"


@dataclass(frozen=True, slots=True)
class IsNull(_Condition):
    """A value that is missing: no such field, a null, or no single value."""

    field: Term
    negated: bool = False

    def sql(self) -> str:
        """The condition as SQL."""
        return f"{self.field.sql()} {'IS NOT NULL' if self.negated else 'IS NULL'}"


@dataclass(frozen=True, slots=True)
class Not(_Condition):
    """The opposite."""

    node: Node

    def sql(self) -> str:
        """The condition as SQL."""
        inner = self.node.sql()
        return f"NOT ({inner})" if isinstance(self.node, And | Or) else f"NOT {inner}"


@dataclass(frozen=True, slots=True)
class And(_Condition):
    """All of several conditions."""

    nodes: tuple[Node, ...]

    def sql(self) -> str:
        """The condition as SQL."""
        return " AND ".join(
            f"({node.sql()})" if isinstance(node, Or) else node.sql() for node in self.nodes
        )


@dataclass(frozen=True, slots=True)
class Or(_Condition):
    """At least one of several conditions."""

    nodes: tuple[Node, ...]

    def sql(self) -> str:
        """The condition as SQL."""
        return " OR ".join(node.sql() for node in self.nodes)


Node = Comparison | Between | In | IsNull | Not | And | Or
"""A predicate: what `parse` returns."""


def _inner(term: Term) -> str:
    return f"({term.sql()})" if isinstance(term, Arithmetic) else term.sql()


def terms_of(node: Node | Term) -> Iterator[Term]:
    """Every term of a condition or of a term, and those that they are made of."""
    inner: tuple[Node | Term, ...]
    match node:
        case Field() | Literal() | Moment() | Parameter():
            inner = ()
        case Function():
            inner = node.arguments
        case Arithmetic() | Comparison():
            inner = (node.left, node.right)
        case Between():
            inner = (node.field, node.low, node.high)
        case In():
            inner = (node.field, *node.among)
        case IsNull():
            inner = (node.field,)
        case Not():
            inner = (node.node,)
        case And() | Or():
            inner = node.nodes
    if not isinstance(node, _Condition):
        yield node
    for one in inner:
        yield from terms_of(one)


def patterns_of(node: Node) -> Iterator[Term]:
    """Yield the pattern of every LIKE in a condition."""
    match node:
        case Comparison(operator="LIKE", right=pattern):
            yield pattern
        case Not():
            yield from patterns_of(node.node)
        case And() | Or():
            for one in node.nodes:
                yield from patterns_of(one)


def fields_of(node: Node | Term) -> frozenset[str]:
    """The names of all fields that a condition is about."""
    return frozenset(term.name for term in terms_of(node) if isinstance(term, Field))


def reads_payload(node: Node | Term) -> bool:
    """Whether the payload has to be looked into to know."""
    return any(
        isinstance(term, Field) or (isinstance(term, Function) and term.name == "value")
        for term in terms_of(node)
    )


def reads_time(node: Node | Term) -> bool:
    """Whether the answer depends on when the sample was published, or on what time it is."""
    return any(
        isinstance(term, Function) and term.name in ("time", "now") for term in terms_of(node)
    )


def starts_with(term: Term, prefix: str) -> Node:
    """The condition that a text begins so: that it lies between two texts."""
    kept = prefix.rstrip(_LAST_CHARACTER)
    least = Comparison(term, ">=", Literal(prefix))
    if not kept:
        return least
    # After the last character before the surrogates, which no text has, come those behind them.
    after = 0xE000 if kept[-1] == "\ud7ff" else ord(kept[-1]) + 1
    return And((least, Comparison(term, "<", Literal(kept[:-1] + chr(after)))))


_LAST_CHARACTER: Final = "\U0010ffff"


MOST_WILD: Final = 128
"""Characters of a pattern that are searched for with `_` among them.

Each of them may cost a look at each character of a text.
"""


def wild_of(pattern: str) -> int:
    """Return how many characters of a pattern are searched for with `_` among them."""
    return sum(len(run) for run in pattern.split("%")[1:-1] if "_" in run)


def most_wild_of(pattern: Term) -> int:
    """Return how many these may be in the pattern that a term gives."""
    if isinstance(pattern, Literal):
        return wild_of(pattern.value) if isinstance(pattern.value, str) else 0
    return MOST_WILD


def like(text: str, pattern: str) -> bool | None:
    """Return True if the whole text fits: `%` is any run of characters, `_` is one.

    None, for unknown, if more than `MOST_WILD` characters are to be searched for with `_` among
    them. The text is walked without going back, so that no pattern takes long.
    """
    first, *others = pattern.split("%")
    if not others:
        return len(text) == len(first) and _is_at(first, text, 0)
    *middle, last = others
    if "_" in pattern and wild_of(pattern) > MOST_WILD:
        return None
    place, end = len(first), len(text) - len(last)
    if end < place or not _is_at(first, text, 0):
        return False
    for run in middle:
        at = _find(run, text, place, end)
        if at < 0:
            return False
        place = at + len(run)
    return _is_at(last, text, end)


def _is_at(run: str, text: str, place: int) -> bool:
    """Return True if a run between two `%` stands at a place in a text that has room for it."""
    for piece in run.split("_"):
        if not text.startswith(piece, place):
            return False
        place += len(piece) + 1
    return True


def _find(run: str, text: str, start: int, end: int) -> int:
    """Return where a run between two `%` is first, within this part of a text; -1: nowhere."""
    if "_" not in run:
        return text.find(run, start, end)
    match = _searched(run).search(text, start, end)
    return -1 if match is None else match.start()


@lru_cache(maxsize=256)
def _searched(run: str) -> re.Pattern[str]:
    return re.compile(".".join(map(re.escape, run.split("_"))), re.DOTALL)
