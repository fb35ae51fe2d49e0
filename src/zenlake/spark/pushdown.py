"""What of a WHERE clause the journal can decide by itself.

Spark hands over the parts of a condition that are joined by AND. Those about `key`, `time`,
`offset`, `partition` and `hlc` narrow the read; whole segments are left out for them. What is
decided here exactly is not asked of Spark again; the rest stays with Spark.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.datasource import (
    EqualNullSafe,
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNotNull,
    LessThan,
    LessThanOrEqual,
    StringStartsWith,
)

from zenlake.errors import KeyExprError
from zenlake.keys import KeyExpr

__all__ = ["EVERYTHING", "NumberRange", "Wanted", "narrow"]

#: Columns of which no row is null.
NEVER_NULL = frozenset({"key", "value", "encoding", "kind", "time", "timestamp", "hlc", "offset"})
#: The columns of a sample's own time: `timestamp` is what 0.1 called it.
TIMES = frozenset({"time", "timestamp"})
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class NumberRange:
    """Numbers from `low` to before `high`; None is no bound."""

    low: int | None = None
    high: int | None = None

    def also(self, low: int | None, high: int | None) -> NumberRange:
        """The numbers that are in this span and between those as well."""
        if self.low is not None:
            low = self.low if low is None else max(low, self.low)
        if self.high is not None:
            high = self.high if high is None else min(high, self.high)
        return NumberRange(low, high)

    def meets(self, least: int, greatest: int) -> bool:
        """Whether a number from `least` to `greatest`, both included, may be in it."""
        return (self.low is None or greatest >= self.low) and (
            self.high is None or least < self.high
        )

    @property
    def pair(self) -> tuple[int | None, int | None] | None:
        """The bounds; None when there are none."""
        return None if self == NumberRange() else (self.low, self.high)


class Statistics(Protocol):
    """What a segment says about its rows."""

    @property
    def keys(self) -> frozenset[str] | None:
        """Its keys, unless there are too many."""

    @property
    def min_key(self) -> str:
        """Its least key."""

    @property
    def max_key(self) -> str:
        """Its greatest key."""

    @property
    def min_time(self) -> int:
        """Its least time."""

    @property
    def max_time(self) -> int:
        """Its greatest time."""

    @property
    def min_hlc(self) -> int:
        """Its least `hlc`."""

    @property
    def max_hlc(self) -> int:
        """Its greatest `hlc`."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which rows a read is about. All of it holds at once."""

    keys: frozenset[str] | None = None
    """Keys by name; None is all."""
    prefix: str = ""
    time: NumberRange = NumberRange()
    hlc: NumberRange = NumberRange()
    offset: NumberRange = NumberRange()
    partitions: frozenset[int] | None = None

    @property
    def by_key(self) -> bool:
        """Whether rows are told apart by their keys."""
        return bool(self.prefix) or self.keys is not None

    @property
    def nothing(self) -> bool:
        """Whether no row can fit."""
        return self.keys == frozenset() or self.partitions == frozenset()

    def meets(self, segment: Statistics) -> bool:
        """Whether a segment may hold a row that is wanted."""
        if not (
            self.time.meets(segment.min_time, segment.max_time)
            and self.hlc.meets(segment.min_hlc, segment.max_hlc)
        ):
            return False
        if segment.keys is not None:
            there = segment.keys if self.keys is None else segment.keys & self.keys
            return any(key.startswith(self.prefix) for key in there)
        least, greatest = segment.min_key, segment.max_key
        if self.keys is not None:
            return any(least <= key <= greatest for key in self.keys)
        # Between them, or the beginning of one that is.
        return greatest >= self.prefix and least[: len(self.prefix)] <= self.prefix

    def expressions(self, subscribed: Sequence[str] | None) -> list[str] | None:
        """What to ask the journal for, given what the read subscribes to."""
        if self.keys is None:
            return None if subscribed is None else list(subscribed)
        if subscribed is None:
            return sorted(self.keys)
        asked = [KeyExpr(expression) for expression in subscribed]
        return sorted(key for key in self.keys if any(one.intersects(key) for one in asked))

    def filter(self, batch: Any) -> Any:
        """The rows of a batch whose keys are the wanted ones; the journal decided all else.

        It was asked for what expressions meet, and a row may be of an expression itself.
        """
        if not self.by_key:
            return batch
        keys = batch.column("key")
        fits = np.asarray(pc.starts_with(keys.dictionary, self.prefix))
        if self.keys is not None:
            fits = fits & np.asarray(pc.is_in(keys.dictionary, pa.array(self.keys, pa.string())))
        fits = fits[np.asarray(keys.indices)]
        return batch if fits.all() else batch.filter(pa.array(fits))


EVERYTHING = Wanted()


def narrow(wanted: Wanted, filter: Filter) -> tuple[Wanted, bool]:
    """The rows that fit a filter as well, and whether Spark need not look at it again."""
    match filter:
        case IsNotNull(attribute=(name,)):
            return wanted, name in NEVER_NULL
        case (
            EqualTo(attribute=("key",), value=str(key))
            | EqualNullSafe(attribute=("key",), value=str(key))
        ):
            return _keys(wanted, [key])
        case In(attribute=("key",), value=values):
            return _keys(wanted, list(values))
        case StringStartsWith(attribute=("key",), value=str(prefix)):
            return _prefix(wanted, prefix)
        case EqualTo(attribute=("partition",), value=int(number)):
            return _partitions(wanted, [number]), True
        case In(attribute=("partition",), value=values):
            return _partitions(wanted, list(values)), True
        case (
            EqualTo(attribute=(name,), value=value)
            | GreaterThan(attribute=(name,), value=value)
            | GreaterThanOrEqual(attribute=(name,), value=value)
            | LessThan(attribute=(name,), value=value)
            | LessThanOrEqual(attribute=(name,), value=value)
        ):
            return _ordered(wanted, filter, name, value)
        case _:
            return wanted, False


def _ordered(wanted: Wanted, filter: Filter, name: str, value: object) -> tuple[Wanted, bool]:
    number = _micros(value) if name in TIMES else value
    if type(number) is not int:
        return wanted, False
    low: int | None = None
    high: int | None = None
    if isinstance(filter, EqualTo | GreaterThanOrEqual):
        low = number
    if isinstance(filter, EqualTo | LessThanOrEqual):
        high = number + 1
    if isinstance(filter, GreaterThan):
        low = number + 1
    if isinstance(filter, LessThan):
        high = number
    if name in TIMES:
        return replace(wanted, time=wanted.time.also(low, high)), True
    if name == "offset":
        return replace(wanted, offset=wanted.offset.also(low, high)), True
    if name == "hlc":
        # Segments are left out for it; row by row it is Spark's.
        return replace(wanted, hlc=wanted.hlc.also(low, high)), False
    return wanted, False


def _micros(value: object) -> int | None:
    if not isinstance(value, datetime) or value.tzinfo is None:
        return None
    since = value - EPOCH
    return (since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds


def _keys(wanted: Wanted, values: Sequence[object]) -> tuple[Wanted, bool]:
    named = [value for value in values if isinstance(value, str)]
    # What is no key expression is the key of no row.
    keys = frozenset(key for key in named if _is_key(key))
    both = keys if wanted.keys is None else keys & wanted.keys
    return replace(wanted, keys=both), True


def _is_key(text: str) -> bool:
    try:
        return str(KeyExpr(text)) == text
    except KeyExprError:
        return False


def _prefix(wanted: Wanted, prefix: str) -> tuple[Wanted, bool]:
    if prefix.startswith(wanted.prefix):
        return replace(wanted, prefix=prefix), True
    if wanted.prefix.startswith(prefix):
        return wanted, True
    return replace(wanted, keys=frozenset()), True


def _partitions(wanted: Wanted, values: Sequence[object]) -> Wanted:
    named = frozenset(value for value in values if isinstance(value, int))
    both = named if wanted.partitions is None else named & wanted.partitions
    return replace(wanted, partitions=both)
