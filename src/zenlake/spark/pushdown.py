"""What of a WHERE clause the journal can decide by itself.

Spark hands over the parts of a condition that are joined by AND. Those about `key`, `time`,
`offset`, `partition` and `hlc` become conditions of one tree (`expr/tree`), and all else follows
from the tree: which partitions and segments are left out (`expr/pruning`), what a scan asks the
journal for (`ScanRequest.of`), and which rows of a batch are given. A part that is applied to every
row here is not asked of Spark again; the rest stays with Spark.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import compress
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
from pyspark.sql.datasource import (
    DataSourceReader,
    Filter,
    In,
    IsNotNull,
    StringStartsWith,
)

from zenlake.errors import KeyExprError
from zenlake.expr import tree
from zenlake.expr.pruning import may_hold
from zenlake.expr.tree import And, Comparison, Field, Literal, Moment, Node, fields_of
from zenlake.keys import KeyExpr
from zenlake.spark.comparisons import comparison_of, moment_of

if TYPE_CHECKING:
    from zenlake.journal.disk.segment import Segment

__all__ = [
    "ALWAYS",
    "EVERYTHING",
    "NumberRange",
    "PushFilters",
    "ScanRequest",
    "condition_of",
    "is_applied",
    "partitions_meeting",
    "segments_meeting",
]

#: Columns of which no row is null.
NEVER_NULL: Final = frozenset(
    {"key", "value", "encoding", "kind", "time", "timestamp", "hlc", "offset"}
)
#: The columns that conditions are made of; `timestamp` is what 0.1 called the time.
FIELDS: Final = {
    **{name: Field(name) for name in ("key", "time", "offset", "partition", "hlc")},
    "timestamp": Field("time"),
}
#: What is true of every row.
ALWAYS: Final = And(())
_PAST_LONG: Final = 1 << 63
#: By operator: where the whole numbers begin and end (exclusive) that compare so with zero.
_ENDS: Final[dict[str, tuple[int | None, int | None]]] = {
    "=": (0, 1),
    ">": (1, None),
    ">=": (0, None),
    "<": (None, 0),
    "<=": (None, 1),
}


class PushFilters:
    """The method `pushFilters` of a reader that also works while Spark's switch for it is off.

    Spark refuses a reader that has such a method of its own while its switch for this
    (`spark.sql.python.filterPushdown.enabled`) is off, even if there is no clause at all. It
    recognises that by the function behind the method; this object shows it the one that every
    reader inherits. A session of the user's own then reads as well, and filters by itself.

    Filters are taken over only where the option `filterPushdown` says so. Spark 4.3 keeps a reader
    with the filters of one question, and gives it to the next question of the same DataFrame that
    has none: `frame.where("n > 7").count()` would decide what `frame.count()` counts.
    """

    __func__ = staticmethod(DataSourceReader.pushFilters)

    def __init__(self, take: Callable[[list[Filter]], list[Filter]], is_on: bool) -> None:
        """`take`: takes filters over, and returns those that Spark still has to apply.

        `is_on`: without it all are left to Spark.
        """
        self._take = take
        self._is_on = is_on

    def __call__(self, filters: list[Filter]) -> list[Filter]:
        """Those that Spark still has to apply."""
        return self._take(filters) if self._is_on else filters


# --- from Spark's filters to the tree -----------------------------------------------------------


def condition_of(filter: Filter) -> Node | None:
    """Return a filter of Spark as a condition; None if the journal knows nothing of it."""
    match filter:
        case IsNotNull(attribute=(name,)) if name in NEVER_NULL:
            return ALWAYS
        case StringStartsWith(attribute=("key",), value=str(prefix)):
            return tree.starts_with(FIELDS["key"], prefix)
        case In(attribute=(name,), value=values) if name in FIELDS:
            terms = [_term(FIELDS[name], value) for value in values if value is not None]
            known = tuple(term for term in terms if term is not None)
            return tree.In(FIELDS[name], known) if known and len(known) == len(terms) else None
    comparison = comparison_of(filter)
    if comparison is None or comparison.column not in FIELDS:
        return None
    field = FIELDS[comparison.column]
    term = _term(field, comparison.value)
    return None if term is None else Comparison(field, comparison.operator, term)


def _term(field: Field, value: object) -> Literal | Moment | None:
    """Return a value of Spark as the column has it; None if that is of another kind."""
    match field.name, value:
        case "key", str():
            return Literal(value)
        case "time", datetime() if value.tzinfo is not None:
            return moment_of(value)
        case "offset" | "partition" | "hlc", int() if (
            type(value) is int and -_PAST_LONG <= value < _PAST_LONG
        ):
            return Literal(value)
    return None


def is_applied(condition: Node) -> bool:
    """Return whether a read applies a condition to each of its rows, so that Spark need not."""
    match condition:
        case Comparison(left=Field(name="time" | "offset")):
            return True
    return fields_of(condition) <= {"key"} or fields_of(condition) <= {"partition"}


# --- from the tree to what is read --------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class NumberRange:
    """Numbers from `low` to before `high`; None is no bound."""

    low: int | None = None
    high: int | None = None

    @classmethod
    def of(cls, condition: Node, name: str) -> NumberRange:
        """Return the range of a column's values, outside of which a condition is not true.

        It is exact for comparisons of the column, and any number of them joined by AND.
        """
        match condition:
            case And():
                each = [cls.of(one, name) for one in condition.nodes]
                lows = [one.low for one in each if one.low is not None]
                highs = [one.high for one in each if one.high is not None]
                return cls(max(lows, default=None), min(highs, default=None))
            case Comparison(left=Field(name=found), right=Literal() | Moment() as term):
                number = term.micros if isinstance(term, Moment) else term.value
                if found == name and isinstance(number, int):
                    ends = (
                        None if end is None else number + end for end in _ENDS[condition.operator]
                    )
                    return cls(*ends)
        return cls()

    @property
    def pair(self) -> tuple[int | None, int | None] | None:
        """The bounds; None when there are none."""
        return None if self == NumberRange() else (self.low, self.high)


@dataclass(frozen=True, slots=True)
class ScanRequest:
    """What to ask a journal for so that no row is missing, and what its rows still have to meet."""

    #: Keys by name; None is all.
    keys: frozenset[str] | None = None
    #: In microseconds since 1970.
    time: NumberRange = NumberRange()
    offset: NumberRange = NumberRange()
    #: What is left to be decided key by key. A key that is asked for is an expression: a row with a
    #: wildcard in its key comes as well. Beginnings of keys are not asked for.
    key_condition: And = ALWAYS

    @classmethod
    def of(cls, condition: Node) -> ScanRequest:
        """Return the request of rows that a condition is true of."""
        parts = condition.nodes if isinstance(condition, And) else (condition,)
        of_key = tuple(one for one in parts if fields_of(one) == {"key"})
        return cls(
            _named(condition),
            NumberRange.of(condition, "time"),
            NumberRange.of(condition, "offset"),
            And(of_key),
        )

    def expressions(self, subscribed: Sequence[str] | None) -> list[str] | None:
        """Return what to ask the journal for, given what the read subscribes to."""
        if self.keys is None:
            return None if subscribed is None else list(subscribed)
        # What is no key expression is the key of no row.
        keys = sorted(filter(_is_key, self.keys))
        if subscribed is None:
            return keys
        asked = [KeyExpr(expression) for expression in subscribed]
        return [key for key in keys if any(one.intersects(key) for one in asked)]

    def filter(self, batch: Any) -> Any:
        """Return the rows of a batch whose keys are wanted; the journal has decided all else."""
        if not self.key_condition.nodes:
            return batch
        keys = batch.column("key")
        fits = np.asarray(may_hold(self.key_condition, {"key": (keys.dictionary,) * 2}))
        fits = fits[np.asarray(keys.indices)]
        return batch if fits.all() else batch.filter(pa.array(fits))

    def wanted_of(self, segments: Iterable[Segment]) -> set[str]:
        """Return the keys that are wanted, of those that segments list."""
        there = self.keys
        if there is None:
            there = frozenset().union(*(one.keys for one in segments if one.keys is not None))
        keys = pa.array(there, pa.string())
        return set(keys.filter(may_hold(self.key_condition, {"key": (keys, keys)})).to_pylist())


EVERYTHING: Final = ScanRequest()


def _named(condition: Node) -> frozenset[str] | None:
    """Return the keys by name that a row has one of if a condition is true of it; None is any."""
    match condition:
        case And():
            each = [keys for one in condition.nodes if (keys := _named(one)) is not None]
            return frozenset.intersection(*each) if each else None
        case Comparison(left=Field(name="key"), operator="=", right=Literal(value=str(key))):
            return frozenset({key})
        case tree.In(field=Field(name="key"), negated=False):
            return frozenset(
                one.value
                for one in condition.among
                if isinstance(one, Literal) and isinstance(one.value, str)
            )
    return None


def _is_key(text: str) -> bool:
    try:
        return str(KeyExpr(text)) == text
    except KeyExprError:
        return False


# --- which partitions and segments --------------------------------------------------------------


def partitions_meeting(condition: Node, count: int) -> list[int]:
    """Return the partitions, of so many, that may have a row that a condition is true of."""
    numbers = pa.array(range(count), pa.int64())
    may = may_hold(condition, {"partition": (numbers, numbers)})
    wanted: list[int] = (numbers if may is None else numbers.filter(may)).to_pylist()
    return wanted


def segments_meeting(condition: Node, segments: Sequence[Segment]) -> list[Segment]:
    """Return the segments that may have a row that a condition is true of."""
    request = ScanRequest.of(condition)
    if request.key_condition.nodes:
        wanted = request.wanted_of(segments)
        segments = [one for one in segments if one.keys is None or not one.keys.isdisjoint(wanted)]
    fields = fields_of(condition)
    bounds = {
        name: (
            pa.array([getattr(one, least) for one in segments], kind),
            pa.array([getattr(one, most) for one in segments], kind),
        )
        for name, least, most, kind in (
            ("key", "min_key", "max_key", pa.string()),
            ("time", "min_time", "max_time", pa.timestamp("us", tz="UTC")),
            ("hlc", "min_hlc", "max_hlc", pa.int64()),
        )
        if name in fields
    }
    may = may_hold(condition, bounds)
    return [*segments] if may is None else [*compress(segments, may.to_pylist())]
