"""Rows of data files by key and time, as few of them read as their statistics allow.

Of a row group that may have what is sought, the two columns that tell (`key`, `hlc`) are read
first, the others only where rows were found. Files never change, so what is known of one is kept:
its footer, and which row of each key is the newest in it.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Final, final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from zenlake.keys import ResolvedRange, intersects, is_wild
from zenlake.keys.pattern import prefix_of
from zenlake.lake.ingest.latest import MERGED
from zenlake.lake.table.data_files import WILD, DataFileReader, open_file
from zenlake.lake.table.location import LakeLocation
from zenlake.recorded.columns import coded
from zenlake.recorded.time_bounds import ALL_TIME, TimeBounds

__all__ = [
    "CODED",
    "COLUMNS",
    "EARLIEST",
    "LATEST",
    "DataFiles",
    "RowPositions",
    "RowRange",
]

COLUMNS: Final = MERGED
"""What rows of the history have: the columns of `samples` without the day."""

EARLIEST, LATEST = ALL_TIME.hlc
"""The least and the greatest `hlc` that there is."""

Numbers = npt.NDArray[np.int64]
_REPEATING: Final = [
    *("key", "encoding", "kind", "stamp_id", "source_id", "source_zid", "journal"),
]
"""Columns of few different texts, which are read once each."""
CODED: Final = pa.schema(
    [
        field.with_type(pa.dictionary(pa.int32(), pa.string()))
        if field.name in _REPEATING
        else field
        for field in COLUMNS
    ]
)
"""The same columns, each of the different texts once."""
_MOST_GROUPS: Final = 20_000
"""Row groups whose statistics are kept in memory."""
_MOST_NEWEST: Final = 2_000_000
"""Newest rows of files that are kept in memory, 30 bytes each."""


@dataclass(frozen=True, slots=True)
class RowRange:
    """The keys that an expression means, between two `hlc`, both included."""

    expr: str
    low: int = EARLIEST
    high: int = LATEST

    @classmethod
    def within(cls, expr: str, range: ResolvedRange | None) -> RowRange:
        """These keys in a range of time, to the nanosecond."""
        return cls(expr, *TimeBounds.of(range).hlc)

    @property
    def empty(self) -> bool:
        """Whether no time lies between the two."""
        return self.low > self.high


@dataclass(frozen=True, slots=True)
class RowPositions:
    """Rows of one file: their keys and times, and where in the file they are."""

    keys: Any
    hlc: Numbers
    rows: Numbers

    def of(self, sought: RowRange) -> RowPositions:
        """The places of the rows that are sought."""
        chosen = _fits(self.keys, sought.expr)[_codes(self.keys)]
        chosen &= (self.hlc >= sought.low) & (self.hlc <= sought.high)
        return self if chosen.all() else self.at(np.nonzero(chosen)[0])

    def at(self, chosen: Numbers) -> RowPositions:
        """Some of them."""
        return RowPositions(self.keys.take(pa.array(chosen)), self.hlc[chosen], self.rows[chosen])


@dataclass(frozen=True, slots=True)
class _Group:
    """A row group: where it begins, and what its columns lie between; None is unknown."""

    first: int
    rows: int
    key: tuple[str, str] | None
    hlc: tuple[int, int] | None

    def may_have(self, sought: RowRange, wild: bool) -> bool:
        if self.hlc is not None and (self.hlc[0] > sought.high or self.hlc[1] < sought.low):
            return False
        # Updates of many keys at once sort anywhere.
        if wild or self.key is None:
            return True
        least, greatest = self.key
        if not is_wild(sought.expr):
            return least <= sought.expr <= greatest
        start = prefix_of(sought.expr)
        return greatest >= start and (least < start or least.startswith(start))

    def lies_in(self, sought: RowRange) -> bool:
        return self.hlc is not None and sought.low <= self.hlc[0] and self.hlc[1] <= sought.high


@dataclass(frozen=True, slots=True)
class _Footer:
    metadata: Any
    groups: list[_Group]
    wild: bool
    """Whether it has updates of many keys at once."""


@final
class DataFiles:
    """The data files of a table with keys and times; for any number of threads."""

    def __init__(self, place: LakeLocation) -> None:
        """The folder of the table."""
        self._place = place
        self._lock = threading.Lock()
        self._footers: OrderedDict[str, _Footer] = OrderedDict()
        self._groups = 0
        self._newest: OrderedDict[str, RowPositions] = OrderedDict()
        self._places = 0

    def rows(self, path: str, sought: RowRange, columns: pa.Schema = COLUMNS) -> Iterator[pa.Table]:
        """The rows of a file that are sought, a row group at a time."""
        if sought.empty:
            return
        footer = self._footer(path)
        chosen = [n for n, group in enumerate(footer.groups) if group.may_have(sought, footer.wild)]
        if not chosen:
            return
        with self._open(path, footer) as file:
            for number in chosen:
                places = self._places_in(file, footer, number, sought)
                if len(places.rows):
                    yield _read(file, number, places.rows - footer.groups[number].first, columns)

    def newest(self, path: str, sought: RowRange) -> RowPositions:
        """The newest rows of each key that is sought, and all updates of many keys at once."""
        footer = self._footer(path)
        chosen = [n for n, group in enumerate(footer.groups) if group.may_have(sought, footer.wild)]
        if all(group.lies_in(sought) for group in footer.groups):
            with self._lock:
                known = self._newest.get(path)
                if known is not None:
                    self._newest.move_to_end(path)
            if known is not None or len(chosen) * 2 > len(footer.groups):
                return (known or self._learn(path, footer)).of(sought)
        return self._find(path, footer, chosen, sought)

    def take(self, path: str, rows: Numbers, columns: pa.Schema = COLUMNS) -> pa.Table:
        """These rows of a file."""
        footer = self._footer(path)
        wanted = np.sort(rows)
        parts = []
        with self._open(path, footer) as file:
            for number, group in enumerate(footer.groups):
                low, high = np.searchsorted(wanted, (group.first, group.first + group.rows))
                if low < high:
                    parts.append(_read(file, number, wanted[low:high] - group.first, columns))
        return pa.concat_tables(parts) if parts else columns.empty_table()

    def is_wild(self, path: str) -> bool:
        """Whether a file has updates of many keys at once."""
        return self._footer(path).wild

    # --- what is known of a file ----------------------------------------------------------------

    def _footer(self, path: str) -> _Footer:
        with self._lock:
            known = self._footers.get(path)
            if known is not None:
                self._footers.move_to_end(path)
                return known
        with open_file(self._place, path, COLUMNS, coded=_REPEATING) as file:
            metadata = file.metadata
            groups = _groups(metadata)
            # Files of earlier releases and of other programs do not note this.
            note = file.notes.get(WILD)
            if note is None:
                keys = coded(file.read(["key"])["key"]).dictionary
                wild = bool(pc.any(pc.match_substring(keys, "*")).as_py())
            else:
                wild = note != b"0"
        footer = _Footer(metadata, groups, wild)
        with self._lock:
            if path not in self._footers:
                self._footers[path] = footer
                self._groups += len(groups)
            while self._groups > _MOST_GROUPS and len(self._footers) > 1:
                self._groups -= len(self._footers.popitem(last=False)[1].groups)
        return footer

    def _learn(self, path: str, footer: _Footer) -> RowPositions:
        places = self._find(path, footer, list(range(len(footer.groups))), None)
        with self._lock:
            if path not in self._newest and len(places.rows) <= _MOST_NEWEST // 4:
                self._newest[path] = places
                self._places += len(places.rows)
            while self._places > _MOST_NEWEST:
                self._places -= len(self._newest.popitem(last=False)[1].rows)
        return places

    def _find(
        self, path: str, footer: _Footer, groups: list[int], sought: RowRange | None
    ) -> RowPositions:
        parts: list[RowPositions] = []
        if groups and (sought is None or not sought.empty):
            with self._open(path, footer) as file:
                for number in groups:
                    places = self._places_in(file, footer, number, sought)
                    if len(places.rows):
                        parts.append(_last_of_runs(places))
        if not parts:
            none = np.empty(0, np.int64)
            return RowPositions(pa.array([], pa.string()).dictionary_encode(), none, none)
        return RowPositions(
            coded(pa.chunked_array([part.keys for part in parts])),
            np.concatenate([part.hlc for part in parts]),
            np.concatenate([part.rows for part in parts]),
        )

    # --- reading --------------------------------------------------------------------------------

    def _open(self, path: str, footer: _Footer) -> AbstractContextManager[DataFileReader]:
        return open_file(self._place, path, COLUMNS, coded=_REPEATING, metadata=footer.metadata)

    def _places_in(
        self, file: DataFileReader, footer: _Footer, number: int, sought: RowRange | None
    ) -> RowPositions:
        """The rows of a group that are sought; all, if nothing is said."""
        group = footer.groups[number]
        # One key, wherever it is found first, needs no other column in most groups.
        columns = file.read_row_group(number, ["key", "hlc"])
        keys = coded(columns["key"])
        rows = np.arange(group.first, group.first + group.rows)
        places = RowPositions(keys, columns["hlc"].to_numpy(), rows)
        return places if sought is None else places.of(sought)


def _groups(metadata: Any) -> list[_Group]:
    names = [metadata.schema.column(n).path for n in range(metadata.num_columns)]
    key, hlc = names.index("key"), names.index("hlc")
    groups, first = [], 0
    for number in range(metadata.num_row_groups):
        group = metadata.row_group(number)
        groups.append(
            _Group(first, group.num_rows, _between(group.column(key)), _between(group.column(hlc)))
        )
        first += group.num_rows
    return groups


def _between(column: Any) -> Any:
    measured = column.statistics
    return (measured.min, measured.max) if measured is not None and measured.has_min_max else None


def _read(file: DataFileReader, number: int, rows: Numbers, columns: pa.Schema) -> pa.Table:
    """These rows of a row group; columns that a file has not are null."""
    told = _told(file, number, columns.names)
    table = file.read_row_group(number, [name for name in columns.names if name not in told])
    if rows[-1] - rows[0] == len(rows) - 1:
        table = table.slice(int(rows[0]), len(rows))
    else:
        table = table.take(pa.array(rows))
    return pa.table(
        {
            field.name: _repeated(told[field.name], field.type, len(rows))
            if field.name in told
            else table[field.name]
            for field in columns
        }
    ).cast(columns)


def _repeated(word: str | None, kind: pa.DataType, count: int) -> pa.Array:
    if word is None or not pa.types.is_dictionary(kind):
        return pa.repeat(pa.scalar(word, kind), count)
    return pa.DictionaryArray.from_arrays(np.zeros(count, np.int32), pa.array([word], pa.string()))


def _told(file: DataFileReader, number: int, columns: Sequence[str]) -> dict[str, str | None]:
    """The columns of a row group that have one text in all rows, or null, by what is said of them.

    They need not be read; of most groups it is half of the columns.
    """
    names = file.names
    told: dict[str, str | None] = dict.fromkeys(set(columns) - set(names))
    group = file.metadata.row_group(number)
    for place, name in enumerate(names):
        if name not in columns:
            continue
        measured = group.column(place).statistics
        if measured is None or not measured.has_null_count:
            continue
        if measured.null_count == group.num_rows:
            told[name] = None
        elif not measured.null_count and measured.has_min_max:
            # Bounds that were cut off are never the same.
            low, high = measured.min, measured.max
            if isinstance(low, str) and low == high:
                told[name] = low
    return told


def _codes(keys: Any) -> npt.NDArray[np.int32]:
    codes: npt.NDArray[np.int32] = keys.indices.to_numpy(zero_copy_only=False)
    return codes


def _fits(keys: Any, expr: str) -> npt.NDArray[np.bool_]:
    return np.array([intersects(expr, key) for key in keys.dictionary.to_pylist()], np.bool_)


def _last_of_runs(places: RowPositions) -> RowPositions:
    """The rows without those that a newer one of the same key follows or precedes at once.

    Files are sorted by key and time, so that hardly more than one for each key is left.
    """
    codes = _codes(places.keys)
    starts = np.concatenate(([0], np.nonzero(codes[1:] != codes[:-1])[0] + 1))
    best = np.maximum.reduceat(places.hlc, starts)
    lengths = np.diff(np.concatenate((starts, [len(codes)])))
    keep = places.hlc == np.repeat(best, lengths)
    wild = pc.match_substring(places.keys.dictionary, "*").to_numpy(zero_copy_only=False)
    if wild.any():
        keep |= wild[codes]
    return places.at(np.nonzero(keep)[0])
