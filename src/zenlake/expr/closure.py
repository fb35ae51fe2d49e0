"""A predicate as a function of one sample.

    >>> from zenlake.expr import parse
    >>> compiled(parse("battery < 20"))(SampleFields({"battery": 12}))
    True

True, False, or None where it is unknown. A property test compares that with what Spark says, for
trees and samples of all kinds.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, Final, NamedTuple

from zenlake.clock.unix_time import datetime_at
from zenlake.expr.record import field_of
from zenlake.expr.tree import (
    And,
    Arithmetic,
    Between,
    Comparison,
    ExprError,
    Field,
    Function,
    In,
    IsNull,
    Literal,
    Moment,
    Node,
    Not,
    Or,
    Parameter,
    Term,
    like,
)

__all__ = ["Microseconds", "Predicate", "SampleFields", "Value", "compiled", "computed"]


class Microseconds(int):
    """A moment, in microseconds since 1970; no number."""

    __slots__ = ()


#: What a term may be.
Value = int | float | str | bool | Microseconds | None


class SampleFields(NamedTuple):
    """A sample, as predicates look at it."""

    #: The fields of the payload, if it is an object.
    record: Mapping[str, Any] | None = None
    key: str = ""
    time: int = 0
    kind: str = "put"
    encoding: str = ""
    #: The payload, if it is a single value.
    root: Value = None
    #: What `now()` is.
    now: int = 0


Predicate = Callable[[SampleFields], bool | None]
_Of = Callable[[SampleFields], Value]


@lru_cache(maxsize=1024)
def compiled(node: Node, parameters: tuple[str, ...] = ()) -> Predicate:
    """The function of a predicate; raises `ExprError` if it lacks a parameter."""
    match node:
        case Comparison():
            left, right = computed(node.left, parameters), computed(node.right, parameters)
            if node.operator == "LIKE":
                return lambda s: _like(left(s), right(s))
            compare = _COMPARE[node.operator]
            return lambda s: compare(left(s), right(s))
        case Between():
            of = computed(node.field, parameters)
            low, high = computed(node.low, parameters), computed(node.high, parameters)
            negated = node.negated

            def between(s: SampleFields) -> bool | None:
                value = of(s)
                within = _and(_COMPARE[">="](value, low(s)), _COMPARE["<="](value, high(s)))
                return _not(within) if negated else within

            return between
        case In():
            of = computed(node.field, parameters)
            among = [computed(one, parameters) for one in node.among]
            negated = node.negated

            def member(s: SampleFields) -> bool | None:
                value = of(s)
                verdict: bool | None = False
                for one in among:
                    verdict = _or(verdict, _COMPARE["="](value, one(s)))
                return _not(verdict) if negated else verdict

            return member
        case IsNull():
            of = computed(node.field, parameters)
            negated = node.negated
            return lambda s: (of(s) is None) != negated
        case Not():
            inner = compiled(node.node, parameters)
            return lambda s: _not(inner(s))
        case And():
            parts = [compiled(one, parameters) for one in node.nodes]

            def all_of(s: SampleFields) -> bool | None:
                known: bool | None = True
                for part in parts:
                    verdict = part(s)
                    if verdict is False:
                        return False
                    if verdict is None:
                        known = None
                return known

            return all_of
        case Or():
            parts = [compiled(one, parameters) for one in node.nodes]

            def any_of(s: SampleFields) -> bool | None:
                known: bool | None = False
                for part in parts:
                    verdict = part(s)
                    if verdict:
                        return True
                    if verdict is None:
                        known = None
                return known

            return any_of


def computed(term: Term, parameters: tuple[str, ...] = ()) -> Callable[[SampleFields], Value]:
    """The function that gives a term's value."""
    match term:
        case Field():
            name = term.name
            if "." not in name and "[" not in name:
                return lambda s: _scalar(None if s.record is None else s.record.get(name))
            return lambda s: _scalar(None if s.record is None else field_of(s.record, name))
        case Literal():
            value = _scalar(term.value)
            return lambda s: value
        case Moment():
            moment = Microseconds(term.micros)
            return lambda s: moment
        case Parameter():
            if term.index >= len(parameters):
                raise ExprError(
                    f"%{term.index}: only {len(parameters)} parameters are given, counted from 0"
                )
            given = _parameter(parameters[term.index])
            return lambda s: given
        case Function():
            return _function(term, parameters)
        case Arithmetic():
            left, right = computed(term.left, parameters), computed(term.right, parameters)
            work = _ARITHMETIC[term.operator]

            def calculate(s: SampleFields) -> Value:
                a, b = left(s), right(s)
                return work(a, b) if isinstance(a, float) and isinstance(b, float) else None

            return calculate


def _function(term: Function, parameters: tuple[str, ...]) -> _Of:
    match term.name:
        case "key":
            return lambda s: s.key
        case "chunk":
            (place,) = term.arguments
            number = int(place.value) if isinstance(place, Literal) else 0

            def chunk(s: SampleFields) -> Value:
                chunks = s.key.split("/")
                return chunks[number] if -len(chunks) <= number < len(chunks) else None

            return chunk
        case "kind":
            return lambda s: s.kind
        case "encoding":
            return lambda s: s.encoding
        case "value":
            return lambda s: _scalar(s.root)
        case "time":
            return lambda s: Microseconds(s.time)
        case "now":
            offset = _offset(term)
            return lambda s: Microseconds(s.now + offset)
        case "length":
            of = computed(term.arguments[0], parameters)
            return lambda s: float(len(text)) if isinstance(text := of(s), str) else None
        case "abs":
            of = computed(term.arguments[0], parameters)
            return lambda s: abs(number) if isinstance(number := of(s), float) else None
        case part:
            of = computed(term.arguments[0], parameters)

            def calendar(s: SampleFields) -> Value:
                moment = of(s)
                if not isinstance(moment, Microseconds):
                    return None
                return float(getattr(datetime_at(int(moment)), part))

            return calendar


def _offset(term: Function) -> int:
    from zenlake.expr.parse import offset_of

    return offset_of(term)


def _scalar(value: Any) -> Value:
    """A value as predicates have it: every number a float, nothing that has parts."""
    if isinstance(value, bool | str | Microseconds):
        return value
    if isinstance(value, int | float):
        try:
            return float(value)
        except OverflowError:
            return None
    return None


def _parameter(text: str) -> Value:
    """A parameter's value: DDS gives them all as text, numbers without quotes."""
    if len(text) > 1 and text[0] == text[-1] == "'":
        return text[1:-1]
    try:
        return float(text)
    except ValueError:
        return text


# --- three-valued logic, and comparisons as Spark has them --------------------------------------


def _not(a: bool | None) -> bool | None:
    return None if a is None else not a


def _and(a: bool | None, b: bool | None) -> bool | None:
    if a is False or b is False:
        return False
    return None if a is None or b is None else True


def _or(a: bool | None, b: bool | None) -> bool | None:
    if a or b:
        return True
    return None if a is None or b is None else False


def _compare(how: Callable[[Any, Any], bool]) -> Callable[[Value, Value], bool | None]:
    def compare(a: Value, b: Value) -> bool | None:
        if a is None or b is None or type(a) is not type(b):
            return None
        if isinstance(a, float) and isinstance(b, float) and (a != a or b != b):
            # Not a number is equal to itself, and greater than all others.
            return how(a != a, b != b)
        return how(a, b)

    return compare


_COMPARE: Final = {
    "=": _compare(operator.eq),
    "<>": _compare(operator.ne),
    "<": _compare(operator.lt),
    "<=": _compare(operator.le),
    ">": _compare(operator.gt),
    ">=": _compare(operator.ge),
}


def _like(a: Value, b: Value) -> bool | None:
    return like(a, b) if isinstance(a, str) and isinstance(b, str) else None


def _divided(a: float, b: float) -> float | None:
    return None if b == 0 else a / b


def _remainder(a: float, b: float) -> float | None:
    if b == 0:
        return None
    try:
        return math.fmod(a, b)
    except ValueError:
        return math.nan


_ARITHMETIC: Final[Mapping[str, Callable[[float, float], float | None]]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": _divided,
    "%": _remainder,
}
