"""The samples of a lake, each once: what its tables have, and what the journal has since.

The tables are looked at first. How far they are is part of what is looked at, and the journal is
read from exactly there, so that a sample is found in one of the two whenever it was committed; so
is every other journal that feeds the lake.
Files are read here, not by Spark: those whose statistics do not rule out the keys and the time
asked for, and of those only such row groups (`lake/history/file_reader`). Nothing that lies inside
the journal's tail opens a file of a table at all.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from zenlake.errors import JournalGap, LocalError
from zenlake.expr.tree import Comparison, Field, Literal, Node, starts_with
from zenlake.keys import ResolvedRange, intersects, is_wild
from zenlake.keys.pattern import prefix_of
from zenlake.lake.history.file_reader import (
    COLUMNS,
    EARLIEST,
    LATEST,
    DataFiles,
    RowPositions,
    RowRange,
)
from zenlake.lake.ingest.latest import BASE, MERGED, as_state, live, merged
from zenlake.lake.ingest.latest_overlay import marks_of, tail_of
from zenlake.lake.ingest.latest_tasks import memory_of
from zenlake.lake.model.sample_rows import sample_rows
from zenlake.lake.query.catalog import Catalog
from zenlake.lake.table.location import LakeLocation
from zenlake.lake.table.pruning import matching
from zenlake.recorded.newest_rows import newest_rows
from zenlake.recorded.time_bounds import TimeBounds

if TYPE_CHECKING:
    from zenlake.journal import Journal

__all__ = ["COLUMNS", "History", "JournalTail", "LakeSnapshot"]

_HELD: Final = 200_000
"""Rows that are held before only the newest of each key are kept."""


@dataclass(frozen=True, slots=True)
class JournalTail:
    """What a journal has and the tables have not, at one moment."""

    journal: Journal
    #: Up to where `samples` has each partition, and up to where the journal is durable.
    committed: tuple[int, ...]
    ends: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class LakeSnapshot:
    """The tables at one moment, and where each journal goes on."""

    version: int
    files: Any
    tails: tuple[JournalTail, ...]
    latest: tuple[Any, list[str], dict[str, int]] | None = None


@final
class History:
    """Reads samples by key and time; for any number of threads."""

    def __init__(self, catalog: Catalog, journals: Sequence[Journal]) -> None:
        """Of the lake with these tables, fed by these journals."""
        self._catalog = catalog
        self._journals = tuple(journals)
        self._lock = threading.Lock()
        self._dead: dict[str, pa.Table | None] = {}
        self._files = DataFiles(catalog.place / "samples")
        self._buckets = DataFiles(catalog.place / "latest")

    def look(self, *, latest: bool = False) -> LakeSnapshot:
        """The tables as they are now, with the newest values if they are wanted."""
        # The tables first, then the journals: what is in neither does not exist yet.
        apps = [f"{one.id}/{p}" for one in self._journals for p in range(one.partitions)]
        found = self._catalog.table_with_offsets("samples", apps)
        if found is None:
            place = self._catalog.place.uri
            raise LocalError(f"the lake at {place} has no samples yet; ask again")
        samples, offsets = found
        table = self._catalog.table("latest") if latest else None
        newest = None if table is None else (table.place, table.paths, marks_of(table))
        tails = tuple(
            JournalTail(
                journal,
                tuple(offsets[f"{journal.id}/{p}"] for p in range(journal.partitions)),
                tuple(journal.watermark().offsets),
            )
            for journal in self._journals
        )
        return LakeSnapshot(samples.version, samples.actions, tails, newest)

    # --- rows in a range of time ----------------------------------------------------------------

    def needed(self, snapshot: LakeSnapshot, expr: str, range: ResolvedRange | None) -> list[str]:
        """The files of `samples` that may have rows of these keys in this range."""
        return self._needed(snapshot, RowRange.within(expr, range))

    def _needed(self, snapshot: LakeSnapshot, sought: RowRange) -> list[str]:
        if sought.empty:
            return []
        return matching(snapshot.files, _conditions(sought))

    def _with_wild(self, snapshot: LakeSnapshot, sought: RowRange) -> list[str]:
        """The same, and the files with updates of many keys at once, which lie anywhere."""
        within = self._needed(snapshot, RowRange("**", sought.low, sought.high))
        if not within or not prefix_of(sought.expr):
            return within
        near = set(self._needed(snapshot, sought))
        return [path for path in within if path in near or self._files.is_wild(path)]

    def samples(
        self,
        snapshot: LakeSnapshot,
        expr: str,
        range: ResolvedRange | None,
        columns: pa.Schema = COLUMNS,
    ) -> Iterator[pa.Table]:
        """Every sample of the keys in the range, from tables and journals."""
        sought = RowRange.within(expr, range)
        for path in self._with_wild(snapshot, sought):
            yield from self._files.rows(path, sought, columns)
        yield from self.tail(snapshot, expr, range, columns)

    def file(self, path: str, expr: str, range: ResolvedRange | None) -> Iterator[pa.Table]:
        """The samples of the keys in the range, of one file of `samples`."""
        yield from self._files.rows(path, RowRange.within(expr, range))

    def tail(
        self,
        snapshot: LakeSnapshot,
        expr: str,
        range: ResolvedRange | None,
        columns: pa.Schema = COLUMNS,
    ) -> Iterator[pa.Table]:
        """The part that only the journals have."""
        time = TimeBounds.of(range)
        for tail in snapshot.tails:
            for partition, (start, end) in enumerate(zip(tail.committed, tail.ends, strict=True)):
                if start < end:
                    yield from _between(tail.journal, partition, start, end, expr, time, columns)

    # --- newest values --------------------------------------------------------------------------

    def as_of(
        self, snapshot: LakeSnapshot, expr: str, instant: int, columns: pa.Schema = COLUMNS
    ) -> pa.Table:
        """The newest value of each key at an instant (ns), as deletions had left it.

        `columns`: those that are read, the others are null; key, kind and time among them.
        """
        until = ResolvedRange(None, instant)
        sought = RowRange.within(expr, until)
        paths = self._with_wild(snapshot, sought)
        parts = list(self._newest_in(snapshot, paths, sought, columns))
        return _newest([*parts, *self.tail(snapshot, expr, until)], expr)

    def _newest_in(
        self,
        snapshot: LakeSnapshot,
        paths: Iterable[str],
        sought: RowRange,
        columns: pa.Schema = COLUMNS,
    ) -> Iterator[pa.Table]:
        """Rows of files, among them the newest of each key and all updates of many at once.

        By keys and times alone it is found out which rows those are; then they are read.
        """
        last = _last_times(snapshot)
        by_path: dict[str, RowPositions] = {}
        best = EARLIEST
        single = not is_wild(sought.expr)
        for path in sorted(paths, key=lambda path: last.get(path, LATEST), reverse=True):
            if single and last.get(path, LATEST) < best:
                break  # what is older than the key's own newest row means nothing any more
            places = self._files.newest(path, sought)
            if len(places.rows):
                by_path[path] = places
                if single:
                    own = _own(places)
                    best = max(best, int(own.max())) if len(own) else best
        for path, places in _without_older(by_path).items():
            yield self._files.take(path, places.rows, columns)

    def newest(self, expr: str) -> tuple[LakeSnapshot, pa.Table]:
        """The newest value of each key now."""
        snapshot = self.look(latest=True)
        sought = RowRange(expr)
        if snapshot.latest is None:
            parts = self._newest_in(snapshot, self._with_wild(snapshot, sought), sought)
        else:
            place, paths, marks = snapshot.latest
            parts = self._from_latest(snapshot, place, paths, marks, sought)
        return snapshot, _newest([*parts, *self.tail(snapshot, expr, None)], expr)

    def _from_latest(
        self,
        snapshot: LakeSnapshot,
        place: LakeLocation,
        paths: list[str],
        marks: dict[str, int],
        sought: RowRange,
    ) -> Iterator[pa.Table]:
        notes: list[pa.Table] = []
        for path in paths:
            with self._lock:
                if path not in self._dead:
                    if len(self._dead) > 4096:
                        self._dead.clear()
                    self._dead[path] = memory_of(place, path)
                aside = self._dead[path]
            if aside is None:
                continue
            if "kind" in aside.column_names:
                is_base = pc.equal(aside["kind"], BASE)
                notes.append(aside.filter(is_base))
                aside = aside.filter(pc.invert(is_base))
            yield as_state(MERGED.empty_table(), aside)
        # When keys were themselves put whose values came from a put with wildcards.
        bases = pa.concat_tables(notes) if notes else None
        for path in paths:
            for rows in self._buckets.rows(path, sought):
                yield as_state(rows, bases)
        yield from self._newest_in(snapshot, tail_of(snapshot.files, marks), sought)


def _between(
    journal: Journal,
    partition: int,
    start: int,
    end: int,
    expr: str,
    time: TimeBounds,
    columns: pa.Schema,
) -> Iterator[pa.Table]:
    """The rows of keys within some time, between two offsets of a journal."""
    try:
        for batch in journal.scan(
            {partition: start}, {partition: end}, partition=partition, time=time
        ):
            chosen = _chosen(batch, expr)
            if chosen.num_rows:
                yield sample_rows(chosen, journal.id, partition, columns.names).cast(columns)
    except JournalGap as gap:
        # Retention came between: the tables have what the journal let go.
        raise LocalError(f"the journal let go of rows meanwhile; ask again ({gap})") from gap


def _chosen(batch: pa.RecordBatch, expr: str) -> pa.RecordBatch:
    """The rows of a journal's batch whose keys an expression means."""
    keys = batch.column("key")
    places = keys.indices.to_numpy(zero_copy_only=False)
    # The dictionary has all keys of the journal, and a batch may be of a few.
    used = np.flatnonzero(np.bincount(places))
    names = keys.dictionary.take(pa.array(used)).to_pylist()
    fits = np.zeros(len(keys.dictionary), np.bool_)
    fits[used] = [intersects(expr, name) for name in names]
    mask = fits[places]
    fewer = np.zeros(len(keys.dictionary), np.int32)
    fewer[used] = np.arange(len(used), dtype=np.int32)
    own = pa.DictionaryArray.from_arrays(fewer[places], pa.array(names, pa.string()))
    batch = batch.set_column(batch.schema.get_field_index("key"), "key", own)
    return batch if mask.all() else batch.filter(pa.array(mask))


def _newest(parts: Iterable[pa.Table], expr: str) -> pa.Table:
    """The values of keys after all updates among these rows."""
    held: list[pa.Table] = []
    count = 0
    for part in parts:
        held.append(part)
        count += part.num_rows
        if count > _HELD:
            held, count = [merged(held)], 0
    if not held:
        return COLUMNS.empty_table()
    rows = live(merged(held))
    distinct = pc.unique(rows["key"]).to_pylist()
    fits = [key for key in distinct if intersects(expr, key)]
    if len(fits) < len(distinct):
        rows = rows.filter(pc.is_in(rows["key"], pa.array(fits, pa.string())))
    return rows


def _last_times(snapshot: LakeSnapshot) -> dict[str, int]:
    """The greatest `hlc` of each file, where that is known."""
    if "max.hlc" not in snapshot.files.column_names:
        return {}
    columns = (snapshot.files[name].to_pylist() for name in ("path", "max.hlc"))
    return {path: int(last) for path, last in zip(*columns, strict=True) if last is not None}


def _own(places: RowPositions) -> Any:
    """The times of rows that are of one key, and of no others."""
    wild = pc.match_substring(places.keys.dictionary, "*").to_numpy(zero_copy_only=False)
    return places.hlc[~wild[places.keys.indices.to_numpy(zero_copy_only=False)]]


def _without_older(by_path: dict[str, RowPositions]) -> dict[str, RowPositions]:
    """The rows without those of keys that have a newer one in another file."""
    if len(by_path) < 2:
        return by_path
    keys = pa.chunked_array([places.keys for places in by_path.values()]).unify_dictionaries()
    names = keys.chunk(0).dictionary
    codes = [chunk.indices.to_numpy(zero_copy_only=False) for chunk in keys.chunks]
    hlc = np.concatenate([places.hlc for places in by_path.values()])
    newest = newest_rows(np.concatenate(codes), hlc, len(names))
    wild = pc.match_substring(names, "*").to_numpy(zero_copy_only=False)
    left: dict[str, RowPositions] = {}
    ends = np.cumsum([len(code) for code in codes])[:-1]
    for code, mine, (path, places) in zip(
        codes, np.split(newest, ends), by_path.items(), strict=True
    ):
        keep = np.nonzero(mine | wild[code])[0]
        if len(keep):
            left[path] = places.at(keep)
    return left


def _conditions(sought: RowRange) -> Iterator[Node]:
    key, hlc = Field("key"), Field("hlc")
    if is_wild(sought.expr):
        yield starts_with(key, prefix_of(sought.expr))
    else:
        yield Comparison(key, "=", Literal(sought.expr))
    if sought.low > EARLIEST:
        yield Comparison(hlc, ">=", Literal(sought.low))
    if sought.high < LATEST:
        yield Comparison(hlc, "<=", Literal(sought.high))
