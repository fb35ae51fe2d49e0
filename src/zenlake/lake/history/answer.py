"""Rows of the history as a question wants them: filtered, ordered, cut, projected, aggregated.

What is done to a row is the same wherever it comes from, so an answer does not depend on how far
the tables are.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, final

import numpy as np
import pyarrow as pa

from zenlake.clock.unix_time import datetime_at
from zenlake.errors import LocalError
from zenlake.expr.closure import Microseconds, Predicate, SampleFields, Value, compiled, computed
from zenlake.expr.payload import seen_payload
from zenlake.expr.tree import reads_payload
from zenlake.journal.reading.lists import holds_of_each
from zenlake.journal.serving.parts import ARROW
from zenlake.journal.serving.past import MOST_BYTES, MOST_ROWS, in_time
from zenlake.keys import is_wild
from zenlake.lake.history.file_reader import CODED, COLUMNS
from zenlake.lake.history.parameters import AggregateCall, Selection
from zenlake.recorded.encoding import without_custom_id

__all__ = [
    "ARROW",
    "NEWEST",
    "SAMPLES",
    "SHOWN",
    "AnswerLimits",
    "Answered",
    "Groups",
    "Rows",
    "aggregated",
    "arrow_bytes",
    "as_json",
    "encoded",
    "projected",
]

SHOWN: Final = [
    *("key", "value", "encoding", "kind", "time", "hlc", "stamp_id", "attachment"),
    *("source_zid", "source_eid", "source_sn", "offset"),
]
"""The columns that answers are made of."""
SAMPLES: Final = pa.schema([CODED.field(name) for name in SHOWN])
"""Those columns of every sample; the newest values have them as plain texts."""
NEWEST: Final = pa.schema([COLUMNS.field(name) for name in SHOWN])


@dataclass(frozen=True, slots=True)
class AnswerLimits:
    """How much one answer may be."""

    rows: int = MOST_ROWS
    bytes: int = MOST_BYTES
    groups: int = 200_000


@dataclass(frozen=True, slots=True)
class Answered:
    """Rows of an answer, and what expressions see of each, if some want to."""

    rows: pa.Table
    subjects: list[SampleFields] | None = None

    def take(self, places: Sequence[int]) -> Answered:
        """Some of the rows, in this order."""
        seen = self.subjects
        if np.array_equal(places, np.arange(len(places))):
            first = None if seen is None else seen[: len(places)]
            return Answered(self.rows.slice(0, len(places)), first)
        chosen = self.rows.take(pa.array(places, pa.int64()))
        return Answered(chosen, None if seen is None else [seen[place] for place in places])


@final
class Rows:
    """The rows of an answer: those that pass the filter, in the order that was asked for."""

    def __init__(self, selection: Selection, now_us: int, caps: AnswerLimits) -> None:
        """`now_us` is what `now()` means in the expressions."""
        self._selection = selection
        self._now = now_us
        self._caps = caps
        self._passes: Predicate | None = None
        terms: list[Any] = [one.term for one in selection.project]
        terms += [one.term for one in selection.order]
        terms += [one.term for one in selection.aggregates if one.term is not None]
        #: Whether anything looks at a row that has passed.
        self._looked_at = bool(terms) or bool(selection.aggregates)
        if selection.filter is not None:
            self._passes = compiled(selection.filter)
            terms.append(selection.filter)
        self._payloads = any(reads_payload(term) for term in terms)

    def passing(self, tables: Iterable[pa.Table]) -> Iterator[Answered]:
        """The rows that pass, table by table."""
        passes = self._passes
        for table in tables:
            rows = _without_expressions(table.select(SHOWN))
            if passes is None and not self._looked_at:
                yield Answered(rows)
                continue
            subjects = list(self._subjects(rows))
            if passes is not None:
                chosen = [n for n, subject in enumerate(subjects) if passes(subject) is True]
                if len(chosen) < len(subjects):
                    rows = rows.take(pa.array(chosen, pa.int64()))
                    subjects = [subjects[n] for n in chosen]
            yield Answered(rows, subjects if self._looked_at else None)

    def _subjects(self, rows: pa.Table) -> Iterator[SampleFields]:
        """What expressions see of each row."""
        # Numbers: making dates of them takes longer than all the rest.
        times = rows["time"].cast(pa.int64()).to_pylist()
        columns = [rows[name].to_pylist() for name in ("key", "kind", "encoding")]
        values = rows["value"].to_pylist() if self._payloads else [None] * rows.num_rows
        for key, kind, encoding, at, value in zip(*columns, times, values, strict=True):
            shown = without_custom_id(encoding)
            record, plain = None, None
            if self._payloads and value is not None and kind == "put":
                record, plain = seen_payload(value, shown)
            yield SampleFields(record, key, at, kind, shown, plain, self._now)

    def chosen(self, tables: Iterable[pa.Table]) -> Answered:
        """The rows of the answer. Raises `LocalError` when they are more than is allowed."""
        limit = self._selection.limit
        if limit == 0:
            return Answered(_NONE)
        held: list[Answered] = []
        rows = size = 0
        for part in self.passing(tables):
            held.append(part)
            rows += part.rows.num_rows
            size += part.rows["value"].nbytes + 200 * part.rows.num_rows
            if limit is not None and rows > 4 * limit + 10_000:
                # Only the first ones count; the others need not be held.
                held = [self._ordered(held, limit)]
                rows = held[0].rows.num_rows
                size = held[0].rows["value"].nbytes + 200 * rows
            if rows > self._caps.rows or size > self._caps.bytes:
                raise LocalError(
                    f"the answer has more than {self._caps.rows:,} rows or "
                    f"{self._caps.bytes >> 20:,} MB; add _limit, or ask for fewer keys or less time"
                )
        return self._ordered(held, limit)

    def _ordered(self, held: list[Answered], limit: int | None) -> Answered:
        """One table of all: in the order of time, unless another is wanted."""
        if not held:
            return Answered(_NONE)
        seen = [subject for part in held for subject in part.subjects or ()]
        answered = Answered(
            pa.concat_tables([part.rows for part in held]), seen if self._looked_at else None
        )
        places: Any = in_time(answered.rows)
        if self._selection.order:
            places = places.tolist()
            for one in reversed(self._selection.order):
                ranks = [rank(value) for value in map(computed(one.term), seen)]
                places.sort(key=ranks.__getitem__, reverse=one.descending)
        return answered.take(places if limit is None else places[:limit])


_NONE: Final = NEWEST.empty_table()


def _without_expressions(rows: pa.Table) -> pa.Table:
    """The rows of keys: an expression is none, and deletions of many are asked for as such."""
    plain = holds_of_each(rows["key"], lambda key: not is_wild(key))
    return rows if plain.all() else rows.filter(pa.array(plain))


def rank(value: Value) -> tuple[int, Any]:
    """What values are ordered by: the unknown first, then each kind for itself."""
    if value is None:
        return 0, 0
    if isinstance(value, bool):
        return 1, value
    if isinstance(value, Microseconds):
        return 4, int(value)
    if isinstance(value, float):
        return (2, value) if value == value else (2, float("inf"))
    return 3, value


def projected(selection: Selection, subject: SampleFields) -> dict[str, Any]:
    """The values that were asked for, by the words they were asked with."""
    return {one.name: as_json(computed(one.term)(subject)) for one in selection.project}


def as_json(value: Any) -> Any:
    """A value as JSON has it."""
    if isinstance(value, Microseconds):
        return datetime_at(int(value)).isoformat().replace("+00:00", "Z")
    if isinstance(value, float):
        if value != value or value in (float("inf"), float("-inf")):
            return None
        return int(value) if value.is_integer() and abs(value) < 1 << 53 else value
    return value


# --- aggregates ---------------------------------------------------------------------------------


class _Sum:
    """What all aggregates of one term can be made of."""

    __slots__ = ("count", "high", "low", "numbers", "total")

    def __init__(self) -> None:
        self.count = 0
        self.numbers = 0
        self.total = 0.0
        self.low: float | None = None
        self.high: float | None = None

    def take(self, value: Value) -> None:
        if value is None:
            return
        self.count += 1
        if isinstance(value, float):
            self.numbers += 1
            self.total += value
            self.low = value if self.low is None or value < self.low else self.low
            self.high = value if self.high is None or value > self.high else self.high

    def told(self, function: str) -> float | int | None:
        match function:
            case "count":
                return self.count
            case "sum":
                return self.total if self.numbers else None
            case "avg":
                return self.total / self.numbers if self.numbers else None
            case "min":
                return self.low
            case _:
                return self.high


@final
class Groups:
    """The aggregates of an answer, by key and window; rows may come in any order."""

    def __init__(self, selection: Selection, caps: AnswerLimits) -> None:
        """Nothing yet."""
        self._window = selection.window
        self._aggregates = selection.aggregates
        self._caps = caps
        self._of: list[Callable[[SampleFields], Value]] = [
            _value_of(one) for one in self._aggregates
        ]
        self._groups: dict[tuple[str, int], list[_Sum]] = {}

    def take(self, subject: SampleFields) -> None:
        """Count a row."""
        start = 0 if self._window is None else subject.time // self._window * self._window
        group = self._groups.get((subject.key, start))
        if group is None:
            if len(self._groups) >= self._caps.groups:
                raise LocalError(
                    f"more than {self._caps.groups:,} keys and windows; ask for longer windows"
                )
            group = self._groups[subject.key, start] = [_Sum() for _ in self._aggregates]
        for one, of in zip(group, self._of, strict=True):
            one.take(of(subject))

    def rows(self) -> list[dict[str, Any]]:
        """A row for each key and window, in this order."""
        rows = []
        for (key, start), group in sorted(self._groups.items(), key=lambda item: item[0]):
            row: dict[str, Any] = {"key": key}
            if self._window is not None:
                row["window"] = as_json(Microseconds(start))
            for one, aggregate in zip(group, self._aggregates, strict=True):
                row[aggregate.name] = as_json(one.told(aggregate.function))
            rows.append(row)
        return rows


def _value_of(one: AggregateCall) -> Callable[[SampleFields], Value]:
    return (lambda s: 1.0) if one.term is None else computed(one.term)


def aggregated(
    selection: Selection, rows: Rows, tables: Iterable[pa.Table], caps: AnswerLimits
) -> Any:
    """The rows of an `_agg` question."""
    groups = Groups(selection, caps)
    for part in rows.passing(tables):
        for subject in part.subjects or ():
            groups.take(subject)
    return groups.rows()[: selection.limit]


def encoded(rows: list[dict[str, Any]], form: str) -> tuple[bytes, str]:
    """Rows as one payload, and its encoding."""
    if form == "json":
        return json.dumps(rows, ensure_ascii=False).encode(), "application/json"
    names = list(dict.fromkeys(name for row in rows for name in row))
    columns: dict[str, Any] = {}
    for name in names:
        values = [row.get(name) for row in rows]
        if any(isinstance(value, float) for value in values):
            values = [float(v) if isinstance(v, int) and v is not True else v for v in values]
        columns[name] = values
    return arrow_bytes(pa.table(columns)), ARROW


def arrow_bytes(table: pa.Table) -> bytes:
    """A table as an Arrow IPC stream."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue())
