"""What a query asks of the history of keys, read from its parameters.

    _time=[now(-1h)..]         every sample in a range
    _asof=2026-01-31T12:00:00Z the newest value of each key as it was then
    _filter=battery<20         only what this is true of; without `_time`, of the newest values
    _project=battery,pose.x    a JSON object of these instead of the payload
    _agg=avg(temp),max(temp)/5m    for each key and window of time, in one reply
    _order=battery desc,time() rows in this order; else in the order of time
    _limit=10                  so many rows
    _as=json|arrow             the form of the one reply of an `_agg`
    _proof=true                a last reply tells what was read, and what is missing

Each may stand once. A query with none of them asks for nothing here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from zenlake.errors import SelectorError
from zenlake.expr.parse import parse as parse_condition
from zenlake.expr.parse import parse_term
from zenlake.expr.tree import NUMBER, ExprError, Node, Term
from zenlake.keys import Parameters, ResolvedRange
from zenlake.keys.query_parameters import LAKE
from zenlake.keys.time_range import UNITS, moment_of

__all__ = [
    "AGGREGATES",
    "AggregateCall",
    "Ordering",
    "Projected",
    "Selection",
    "form_of",
    "selection_of",
    "wants_proof",
]

AGGREGATES: Final = ("count", "sum", "avg", "min", "max")
MOST_PARTS: Final = 64
MICROS: Final = {name: nanos // 1000 for name, nanos in UNITS.items()}


@dataclass(frozen=True, slots=True)
class Projected:
    """A value of the answer and what it is called."""

    name: str
    term: Term


@dataclass(frozen=True, slots=True)
class AggregateCall:
    """A function over the rows of a window; without a term it counts them."""

    name: str
    function: str
    term: Term | None


@dataclass(frozen=True, slots=True)
class Ordering:
    """What rows are ordered by; what is unknown comes first, and last when it descends."""

    term: Term
    descending: bool = False


@dataclass(frozen=True, slots=True)
class Selection:
    """A question about the history of keys."""

    time: ResolvedRange | None = None
    #: The instant, in nanoseconds.
    asof: int | None = None
    filter: Node | None = None
    project: tuple[Projected, ...] = ()
    aggregates: tuple[AggregateCall, ...] = ()
    #: Microseconds of a window; None: one for all time.
    window: int | None = None
    order: tuple[Ordering, ...] = ()
    limit: int | None = None
    form: str = "json"
    proof: bool = False


def selection_of(parameters: Parameters, now_ns: int) -> Selection | None:
    """The question in the parameters of a query; None if there is none.

    Raises `SelectorError` with the text that is at fault.
    """
    given = {name: parameters.interpreted(name) for name in LAKE if name in parameters}
    if not given:
        return None
    for name, value in given.items():
        if not value and name != "_proof":
            raise SelectorError(f"'{name}' has no value; write one, or leave it out")
    range = parameters.time_range()
    asof = given.get("_asof")
    if range is not None and asof is not None:
        raise SelectorError("'_time' and '_asof' in one query: ask for a range or for an instant")
    aggregates, window = _aggregates(given.get("_agg"))
    project = _projected(given.get("_project"))
    if aggregates and (project or given.get("_order")):
        other = "_project" if project else "_order"
        raise SelectorError(f"'_agg' gives rows of its own: leave '{other}' out")
    form = form_of(given.get("_as"))
    if form != "json" and not aggregates:
        raise SelectorError(
            f"_as={form}: samples come as they were published; it is for '_agg', and for @lake/sql"
        )
    return Selection(
        time=None if range is None else range.resolve(now_ns),
        asof=None if asof is None else moment_of(asof).resolve(now_ns),
        filter=_filter(given.get("_filter")),
        project=project,
        aggregates=aggregates,
        window=window,
        order=_order(given.get("_order")),
        limit=parameters.limit(),
        form=form,
        proof=wants_proof(given.get("_proof")),
    )


def form_of(text: str | None) -> str:
    """The form that `_as` names."""
    if text not in (None, "json", "arrow"):
        raise SelectorError(f"_as={text}: write json or arrow")
    return text or "json"


def wants_proof(text: str | None) -> bool:
    """Whether `_proof` asks for one; its name alone does."""
    if text not in (None, "", "true", "false"):
        raise SelectorError(f"_proof={text}: write true or false")
    return text in ("", "true")


def _filter(text: str | None) -> Node | None:
    if text is None:
        return None
    try:
        return parse_condition(text)
    except ExprError as error:
        raise SelectorError(f"_filter: {error}") from error


def _term(text: str, where: str) -> Term:
    try:
        return parse_term(text)
    except ExprError as error:
        raise SelectorError(f"{where}: {error}") from error


def _parts(text: str) -> list[str]:
    """What stands between commas that are in no brackets and no quotes."""
    parts = [""]
    depth, quoted = 0, False
    for letter in text:
        quoted ^= letter == "'"
        if not quoted:
            depth += (letter == "(") - (letter == ")")
        if letter == "," and not quoted and depth == 0:
            parts.append("")
        else:
            parts[-1] += letter
    return [part.strip() for part in parts]


def _some(text: str, name: str) -> list[str]:
    parts = _parts(text)
    if len(parts) > MOST_PARTS:
        raise SelectorError(f"{name} has {len(parts)} parts; at most {MOST_PARTS}")
    for part in parts:
        if not part:
            raise SelectorError(f"{name}={text}: nothing stands between two commas")
    return parts


def _projected(text: str | None) -> tuple[Projected, ...]:
    if text is None:
        return ()
    return tuple(Projected(part, _term(part, "_project")) for part in _some(text, "_project"))


def _order(text: str | None) -> tuple[Ordering, ...]:
    if text is None:
        return ()
    orderings = []
    for part in _some(text, "_order"):
        words = part.rsplit(None, 1)
        descending = len(words) == 2 and words[1].lower() == "desc"
        if len(words) == 2 and words[1].lower() in ("asc", "desc"):
            part = words[0]
        orderings.append(Ordering(_term(part, "_order"), descending))
    return tuple(orderings)


def _aggregates(text: str | None) -> tuple[tuple[AggregateCall, ...], int | None]:
    if text is None:
        return (), None
    functions, slash, length = text.rpartition("/")
    if not slash or ")" in length:
        functions, length = text, ""
    calls = []
    for part in _some(functions, "_agg"):
        function, bracket, inner = part.partition("(")
        name = function.strip().lower()
        if name not in AGGREGATES or not bracket or not inner.endswith(")"):
            raise SelectorError(
                f"_agg: '{part}' is none of {', '.join(AGGREGATES)}; write avg(temp)/5m"
            )
        inner = inner[:-1].strip()
        if name == "count" and inner in ("*", ""):
            calls.append(AggregateCall(part, name, None))
            continue
        term = _term(inner, "_agg")
        if name != "count" and NUMBER not in term.kinds():
            raise SelectorError(f"_agg: {inner} is no number, and {name}() takes numbers")
        calls.append(AggregateCall(part, name, term))
    return tuple(calls), _window(length.strip(), text)


def _window(text: str, parameter: str) -> int | None:
    if not text:
        return None
    digits = text.rstrip("abcdefghijklmnopqrstuvwxyz")
    size = MICROS.get(text[len(digits) :])
    if not digits.isascii() or not digits.isdigit() or len(digits) > 9 or size is None:
        raise SelectorError(f"_agg={parameter}: '{text}' is no window; write /5m, /1h or /10s")
    if not int(digits):
        raise SelectorError(f"_agg={parameter}: a window of no length")
    return int(digits) * size
