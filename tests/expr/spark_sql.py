"""A predicate as Spark SQL over rows of `samples`.

Each term is written once for every kind that it may be of, null where it is of another: Spark's
own casts, which make numbers of texts and texts of numbers, never take part.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

from zenlake.expr.tree import (
    INSTANT,
    NUMBER,
    TEXT,
    TRUTH,
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
)

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Names:
    """How the parts of a sample are called in the table that is asked."""

    payload: str
    key: str = "key"
    time: str = "time"
    kind: str = "kind"
    encoding: str = "encoding"
    #: What `now()` is, in microseconds since 1970.
    now: int = 0
    #: A column for a field of the payload, where the table has one of its own.
    column: Callable[[str], str | None] = lambda name: None


PAYLOAD: Final = "try_parse_json(try_validate_utf8(CAST(value AS STRING)))"
"""The payload of a row as a variant; null if it is no JSON."""


def spark_sql(node: Node, names: Names) -> str:
    """The condition in Spark's words; raises `ExprError` for what it has none for."""
    match node:
        case Comparison():
            if node.operator == "LIKE":
                if not isinstance(node.right, Literal) or not isinstance(node.right.value, str):
                    raise ExprError(f"'{node.sql()}': the pattern of LIKE is written as a text")
                # Spark's patterns have an escape, and ours have none.
                pattern = node.right.value.replace("\\", "\\\\")
                return f"({spark_term(node.left, TEXT, names)} LIKE {quoted(pattern)})"
            return _compared(node.left, node.operator, node.right, names)
        case Between():
            low = _compared(node.field, ">=", node.low, names)
            high = _compared(node.field, "<=", node.high, names)
            return f"{'NOT ' if node.negated else ''}({low} AND {high})"
        case In():
            each = [_compared(node.field, "=", one, names) for one in node.among]
            return f"{'NOT ' if node.negated else ''}({' OR '.join(each)})"
        case IsNull():
            kinds = [spark_term(node.field, kind, names) for kind in node.field.kinds()]
            missing = " AND ".join(f"{one} IS NULL" for one in kinds)
            return f"{'NOT ' if node.negated else ''}({missing})"
        case Not():
            return f"(NOT {spark_sql(node.node, names)})"
        case And():
            return "(" + " AND ".join(spark_sql(one, names) for one in node.nodes) + ")"
        case Or():
            return "(" + " OR ".join(spark_sql(one, names) for one in node.nodes) + ")"


def _compared(left: Term, operator: str, right: Term, names: Names) -> str:
    kinds = [kind for kind in left.kinds() if kind in right.kinds()]
    each = [
        f"({spark_term(left, kind, names)} {operator} {spark_term(right, kind, names)})"
        for kind in kinds
    ]
    if not each:
        return "CAST(NULL AS BOOLEAN)"
    return each[0] if len(each) == 1 else f"coalesce({', '.join(each)})"


def spark_term(term: Term, kind: str, names: Names) -> str:
    """The value of a term if it is of this kind, else null."""
    if kind not in term.kinds():
        return f"CAST(NULL AS {_TYPES[kind]})"
    match term:
        case Field():
            column = names.column(term.name)
            return column if column is not None else _field(f"$.{term.name}", kind, names)
        case Literal():
            if isinstance(term.value, bool):
                return "TRUE" if term.value else "FALSE"
            return quoted(term.value) if isinstance(term.value, str) else _double(term.value)
        case Moment():
            return _instant(term.micros)
        case Parameter():
            raise ExprError(f"'{term.sql()}': parameters are given with 2018's predicates only")
        case Function():
            return _call(term, kind, names)
        case Arithmetic():
            a, b = (spark_term(one, NUMBER, names) for one in (term.left, term.right))
            if term.operator in "/%":
                return f"{'try_divide' if term.operator == '/' else 'try_mod'}({a}, {b})"
            return f"({a} {term.operator} {b})"


_TYPES: Final = {NUMBER: "DOUBLE", TEXT: "STRING", TRUTH: "BOOLEAN", INSTANT: "TIMESTAMP"}
_KIND_TESTS: Final = {
    NUMBER: "RLIKE '^(BIGINT|DECIMAL|DOUBLE|FLOAT)'",
    TEXT: "= 'STRING'",
    TRUTH: "= 'BOOLEAN'",
}


def _field(path: str, kind: str, names: Names) -> str:
    member = f"try_variant_get({names.payload}, '{path}', 'variant')"
    value = f"try_variant_get({names.payload}, '{path}', '{_TYPES[kind].lower()}')"
    return f"(CASE WHEN schema_of_variant({member}) {_KIND_TESTS[kind]} THEN {value} END)"


def _call(term: Function, kind: str, names: Names) -> str:
    match term.name:
        case "key":
            return names.key
        case "kind":
            return names.kind
        case "encoding":
            return names.encoding
        case "time":
            return names.time
        case "value":
            return _field("$", kind, names)
        case "chunk":
            (place,) = term.arguments
            number = int(place.value) if isinstance(place, Literal) else 0
            # Counted from one, and from the end below zero.
            return f"try_element_at(split({names.key}, '/'), {number + (number >= 0)})"
        case "now":
            from zenlake.expr.parse import offset_of

            return _instant(names.now + offset_of(term))
        case "length":
            return f"CAST(length({spark_term(term.arguments[0], TEXT, names)}) AS DOUBLE)"
        case "abs":
            return f"abs({spark_term(term.arguments[0], NUMBER, names)})"
        case part:
            return f"CAST({part}({spark_term(term.arguments[0], INSTANT, names)}) AS DOUBLE)"


def _instant(micros: int) -> str:
    moment = _EPOCH + timedelta(microseconds=micros)
    return f"TIMESTAMP'{moment:%Y-%m-%d %H:%M:%S.%f}+00:00'"


def _double(value: int | float) -> str:
    return f"CAST('{float(value)!r}' AS DOUBLE)"


def quoted(text: str) -> str:
    """A text as a literal of Spark."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
