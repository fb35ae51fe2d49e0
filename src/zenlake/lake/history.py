"""The samples of a lake, each once: what its tables have, and what the journal has since.

The tables are looked at first. How far they are is part of what is looked at, and the journal is
read from exactly there, so that a sample is found in one of the two whenever it was committed.
Files are read here, not by Spark: those whose statistics do not rule out the keys and the time
asked for, and of those only such row groups. Nothing that lies inside the journal's tail opens a
file of a table at all.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from zenlake.errors import JournalGap, LocalError
from zenlake.journal.ingest.rows import hlc_nanos
from zenlake.journal.schema import HLC_BIAS
from zenlake.keys import ResolvedRange, intersects, is_wild
from zenlake.lake.delta import Table
from zenlake.lake.latest import BASE, MERGED, as_state, live, merged
from zenlake.lake.newest import memory_of
from zenlake.lake.place import Place
from zenlake.lake.rows import sample_rows
from zenlake.lake.tail import marks_of, tail_of
from zenlake.lake.views import Condition, matching

if TYPE_CHECKING:
    from zenlake.journal import Journal

__all__ = ["COLUMNS", "History", "Looked"]

COLUMNS: Final = MERGED
"""What rows of the history have: the columns of `samples` without the day."""

BATCH: Final = 16 * 1024
SLIM: Final = ("key", "hlc", "stamp_id", "offset", "kind", "partition", "journal")
"""What it takes to know which row is the newest of its key."""
SLIM_BATCH: Final = 256 * 1024
_LAST: Final = (1 << 64) - 1
_KEYLESS: Final = COLUMNS.remove(COLUMNS.get_field_index("key"))
STARRED: Final = pc.match_substring(ds.field("key"), "*")
"""What the keys of updates with wildcards have."""
_FILES: Final = 100_000
"""Files of which it is known whether they have such keys."""
_HELD: Final = 200_000
"""Rows that are held before only the newest of each key are kept."""


@dataclass(frozen=True, slots=True)
class Looked:
    """The tables at one moment, and where the journal goes on."""

    version: int
    files: Any
    #: Up to where `samples` has each partition, and up to where the journal is durable.
    committed: tuple[int, ...]
    ends: tuple[int, ...]
    latest: tuple[Any, list[str], dict[str, int]] | None = None


@final
class History:
    """Reads samples by key and time; for any number of threads."""

    def __init__(self, place: Place, journal: Journal) -> None:
        """Of the lake in this place, fed by this journal."""
        self._place = place
        self.journal = journal
        self._lock = threading.Lock()
        self._samples: Table | None = None
        self._latest: Table | None = None
        self._known: tuple[int, Any] | None = None
        self._dead: dict[str, pa.Table | None] = {}
        #: Whether a file of `samples` has updates with wildcards.
        self._wide: dict[str, bool] = {}

    def look(self, *, latest: bool = False) -> Looked:
        """The tables as they are now, with the newest values if they are wanted."""
        with self._lock:
            samples = self._samples = self._fresh(self._samples, "samples")
            if samples is None:
                raise LocalError(f"the lake at {self._place.uri} has no samples yet; ask again")
            if self._known is None or self._known[0] != samples.version:
                self._known = samples.version, samples.actions()
            newest = None
            if latest:
                table = self._latest = self._fresh(self._latest, "latest")
                if table is not None:
                    paths = table.actions()["path"].to_pylist()
                    newest = (table.place, paths, marks_of(table))
            # The tables first, then the journal: what is in neither does not exist yet.
            committed = tuple(
                samples.committed(f"{self.journal.id}/{p}") or 0
                for p in range(self.journal.partitions)
            )
            version, files = self._known
        ends = tuple(self.journal.watermark().offsets)
        return Looked(version, files, committed, ends, newest)

    def _fresh(self, table: Table | None, name: str) -> Table | None:
        if table is None:
            return Table.open(self._place, name)
        table.refresh()
        return table

    # --- rows in a range of time ----------------------------------------------------------------

    def needed(self, looked: Looked, expr: str, range: ResolvedRange | None) -> list[str]:
        """The files of `samples` that may have rows of these keys in this range."""
        conditions: list[Condition] = list(_key_conditions(expr))
        low, high = _bounds(range)
        if low > -HLC_BIAS:
            conditions.append(("hlc", ">=", low))
        if high < HLC_BIAS - 1:
            conditions.append(("hlc", "<=", high))
        return matching(looked.files, conditions)

    def rows_in(self, looked: Looked, paths: list[str]) -> int:
        """How many rows files have, at most."""
        chosen = pc.is_in(looked.files["path"], pa.array(paths, pa.string()))
        return int(pc.sum(looked.files.filter(chosen)["num_records"]).as_py() or 0)

    def samples(self, looked: Looked, expr: str, range: ResolvedRange | None) -> Iterator[pa.Table]:
        """Every sample of the keys in the range, from tables and journal."""
        paths = self.needed(looked, expr, range)
        if paths:
            place = self._place / "samples"
            for batch in _scan(place, paths, _where(expr, range)):
                found = _chosen(pa.Table.from_batches([batch]), expr, range)
                if found.num_rows:
                    yield found
        if _start(expr):
            # Updates of many keys at once, among them some of these, lie elsewhere.
            for part in self._wild(looked, range):
                keys = part["key"].to_pylist()
                mine = [intersects(expr, key) and not _near(expr, key) for key in keys]
                if any(mine):
                    yield part.filter(pa.array(mine, pa.bool_()))
        yield from self.tail(looked, expr, range)

    def file(self, path: str, expr: str, range: ResolvedRange | None) -> Iterator[pa.Table]:
        """The samples of the keys in the range, of one file of `samples`."""
        for batch in _scan(self._place / "samples", [path], _where(expr, range)):
            found = _chosen(pa.Table.from_batches([batch]), expr, range)
            if found.num_rows:
                yield found

    def tail(self, looked: Looked, expr: str, range: ResolvedRange | None) -> Iterator[pa.Table]:
        """The part that only the journal has."""
        micros = None if range is None else _micros(range)
        for partition, (start, end) in enumerate(zip(looked.committed, looked.ends, strict=True)):
            if start >= end:
                continue
            try:
                for batch in self.journal.scan(
                    {partition: start}, {partition: end}, partition=partition, time=micros
                ):
                    yield from self._of_journal(batch, partition, expr, range)
            except JournalGap as gap:
                # Retention came between: the tables have what the journal let go.
                raise LocalError(
                    f"the journal let go of rows meanwhile; ask again ({gap})"
                ) from gap

    def _of_journal(
        self, batch: pa.RecordBatch, partition: int, expr: str, range: ResolvedRange | None
    ) -> Iterator[pa.Table]:
        names = batch.column("key").dictionary.to_pylist()
        fits = np.array([intersects(expr, name) for name in names], np.bool_)
        places = batch.column("key").indices.to_numpy(zero_copy_only=False)
        mask = fits[places]
        if not mask.any():
            return
        chosen = batch if mask.all() else batch.filter(pa.array(mask))
        rows = sample_rows(chosen, self.journal.id, partition).select(COLUMNS.names).cast(COLUMNS)
        rows = _inside(rows, range)
        if rows.num_rows:
            yield rows

    # --- newest values --------------------------------------------------------------------------

    def as_of(self, looked: Looked, expr: str, instant: int) -> pa.Table:
        """The newest value of each key at an instant (ns), as deletions had left it.

        First it is found out which rows those are, by few columns; then they are read.
        """
        until = ResolvedRange(None, instant)
        found = self._newest(self._slim(looked, expr, until), expr)
        if not found.num_rows:
            return found
        low, high = (int(one.as_py()) for one in pc.min_max(found["hlc"]).values())
        where = _where(expr, None)
        when = (ds.field("hlc") >= low) & (ds.field("hlc") <= high)
        when &= ds.field("offset").isin(pc.unique(found["offset"]))
        # A value may have come from a put with wildcards, whose row has another key.
        meant = when if where is None else (where | STARRED) & when
        paths = matching(
            looked.files, [*_key_conditions(expr), ("hlc", ">=", low), ("hlc", "<=", high)]
        )
        paths += [path for path in self._starred(looked, until) if path not in set(paths)]
        parts = [
            pa.Table.from_batches([batch]) for batch in _scan(self._place / "samples", paths, meant)
        ]
        parts += list(self.tail(looked, expr, until))
        same = ["journal", "partition", "offset"]
        rest = [name for name in COLUMNS.names if name != "key"]
        whole = pa.concat_tables([part.select(rest).cast(_KEYLESS) for part in parts])
        return (
            found.select(["key", *same])
            .join(whole, same, join_type="inner")
            .select(COLUMNS.names)
            .cast(COLUMNS)
        )

    def _slim(self, looked: Looked, expr: str, range: ResolvedRange) -> Iterator[pa.Table]:
        """What may be the newest of its key: of each file few columns, and of those few rows."""
        paths = self.needed(looked, expr, range)
        place = self._place / "samples"
        for batch in _scan(place, paths, _where(expr, range), SLIM) if paths else ():
            rows = _last_of_runs(_inside(pa.Table.from_batches([batch]), range))
            if rows.num_rows:
                yield _padded(_chosen(rows, expr, None))
        yield from self.tail(looked, expr, range)
        yield from map(_padded, self._wild(looked, range, SLIM))

    def newest(self, expr: str) -> tuple[Looked, pa.Table]:
        """The newest value of each key now."""
        looked = self.look(latest=True)
        if looked.latest is None:
            return looked, self._newest(self._with_wild(looked, expr, None), expr)
        place, paths, marks = looked.latest
        return looked, self._newest(self._from_latest(looked, place, paths, marks, expr), expr)

    def _from_latest(
        self, looked: Looked, place: Place, paths: list[str], marks: dict[str, int], expr: str
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
        for batch in _scan(place, paths, _where(expr, None)):
            yield as_state(_chosen(pa.Table.from_batches([batch]), expr, None), bases)
        since = tail_of(looked.files, marks)
        if since:
            yield from (
                pa.Table.from_batches([one]) for one in _scan(self._place / "samples", since, None)
            )
        yield from self.tail(looked, "**", None)

    def _with_wild(
        self, looked: Looked, expr: str, range: ResolvedRange | None
    ) -> Iterator[pa.Table]:
        """The samples of the keys, and updates with wildcards that may mean them."""
        yield from self.samples(looked, expr, range)
        yield from self._wild(looked, range)

    def _wild(
        self, looked: Looked, range: ResolvedRange | None, columns: Sequence[str] | None = None
    ) -> Iterator[pa.Table]:
        """Puts and deletions with wildcards."""
        paths = self._starred(looked, range)
        for batch in _scan(self._place / "samples", paths, STARRED, columns) if paths else ():
            found = _inside(pa.Table.from_batches([batch]), range)
            if found.num_rows:
                yield found

    def _starred(self, looked: Looked, range: ResolvedRange | None) -> list[str]:
        """The files that have updates with wildcards, which hardly any has.

        Their keys sort anywhere, so that statistics do not tell; the keys of a file are read once.
        """
        paths = self.needed(looked, "**", range)
        with self._lock:
            unread = [path for path in paths if path not in self._wide]
        if unread:
            place = self._place / "samples"
            found = ds.dataset(
                [place.path(path) for path in unread],
                schema=COLUMNS,
                format="parquet",
                filesystem=place.filesystem,
            ).scanner(columns=["key"], filter=STARRED, batch_size=SLIM_BATCH)
            wide = {one.fragment.path for one in found.scan_batches() if one.record_batch.num_rows}
            with self._lock:
                if len(self._wide) > _FILES:
                    self._wide.clear()
                self._wide.update((path, place.path(path) in wide) for path in unread)
                return [path for path in paths if self._wide.get(path, True)]
        with self._lock:
            return [path for path in paths if self._wide.get(path, True)]

    def _newest(self, parts: Iterator[pa.Table], expr: str) -> pa.Table:
        held: list[pa.Table] = []
        count = 0
        for part in parts:
            held.append(part)
            count += part.num_rows
            if count > _HELD:
                held, count = [merged(held)], 0
        if not held:
            return COLUMNS.empty_table()
        return _chosen(live(merged(held)), expr, None)


def _scan(
    place: Place, paths: list[str], where: Any, columns: Sequence[str] | None = None
) -> Iterator[pa.RecordBatch]:
    """Rows of data files that a condition does not rule out, batch by batch."""
    found = ds.dataset(
        [place.path(path) for path in paths],
        schema=COLUMNS,
        format="parquet",
        filesystem=place.filesystem,
    )
    yield from found.scanner(
        columns=list(COLUMNS.names if columns is None else columns),
        filter=where,
        batch_size=BATCH if columns is None else SLIM_BATCH,
    ).to_batches()


def _last_of_runs(rows: pa.Table) -> pa.Table:
    """The rows without those that a newer one of the same key follows or precedes at once.

    Files are sorted by key and time, so that hardly more than one for each key is left.
    """
    if rows.num_rows < 2:
        return rows
    codes = rows["key"].combine_chunks().dictionary_encode()
    if isinstance(codes, pa.ChunkedArray):
        codes = codes.unify_dictionaries().combine_chunks()
    numbers = codes.indices.to_numpy(zero_copy_only=False)
    starts = np.concatenate(([0], np.nonzero(numbers[1:] != numbers[:-1])[0] + 1))
    hlc = rows["hlc"].to_numpy()
    best = np.maximum.reduceat(hlc, starts)
    lengths = np.diff(np.concatenate((starts, [len(hlc)])))
    return rows.take(pa.array(np.nonzero(hlc == np.repeat(best, lengths))[0]))


def _padded(rows: pa.Table) -> pa.Table:
    """Rows of few columns with all of them; the others are null."""
    columns = {
        field.name: rows[field.name]
        if field.name in rows.column_names
        else pa.nulls(rows.num_rows, field.type)
        for field in COLUMNS
    }
    return pa.table(columns, schema=COLUMNS)


def _key_conditions(expr: str) -> Iterator[Condition]:
    if not is_wild(expr):
        yield "key", "=", expr
        return
    start = _start(expr)
    if start:
        yield "key", "starts", start


def _start(expr: str) -> str:
    """What every key begins with that an expression means."""
    found = []
    for chunk in expr.split("/"):
        if "*" in chunk:
            break
        found.append(chunk)
    # Without the slash: `a/**` means `a`, too.
    return "/".join(found)


def _near(expr: str, key: str) -> bool:
    """Whether a key lies where those of an expression do: it may have wildcards itself."""
    return key.startswith(_start(expr)) if is_wild(expr) else key == expr


def _where(expr: str, range: ResolvedRange | None) -> Any:
    where = None
    if not is_wild(expr):
        where = ds.field("key") == expr
    elif _start(expr):
        start = _start(expr)
        where = (ds.field("key") >= start) & (ds.field("key") <= start + "\U0010ffff" * 4)
    low, high = _bounds(range)
    if low > -HLC_BIAS:
        later = ds.field("hlc") >= low
        where = later if where is None else where & later
    if high < HLC_BIAS - 1:
        before = ds.field("hlc") <= high
        where = before if where is None else where & before
    return where


def _bounds(range: ResolvedRange | None) -> tuple[int, int]:
    """The least and the greatest `hlc` that may lie in a range."""
    low, high = 0, _LAST
    if range is not None and range.start_ns is not None:
        low = min(_LAST, max(0, ((range.start_ns - 1) << 32) // 1_000_000_000))
    if range is not None and range.end_ns is not None:
        high = max(0, min(_LAST, ((range.end_ns + 1) << 32) // 1_000_000_000 + 1))
    return low - HLC_BIAS, high - HLC_BIAS


def _micros(range: ResolvedRange) -> tuple[int | None, int | None]:
    start, end = range.start_ns, range.end_ns
    return (
        None if start is None else start // 1000 - 1,
        None if end is None else end // 1000 + 2,
    )


def _chosen(rows: pa.Table, expr: str, range: ResolvedRange | None) -> pa.Table:
    """The rows of keys that an expression means, in a range; no expression is a key."""
    keys = rows["key"]
    distinct = pc.unique(keys).to_pylist()
    fits = [key for key in distinct if intersects(expr, key)]
    if len(fits) < len(distinct):
        rows = rows.filter(pc.is_in(keys, pa.array(fits, pa.string())))
    return _inside(rows, range)


def _inside(rows: pa.Table, range: ResolvedRange | None) -> pa.Table:
    """The rows whose time lies in the range, to the nanosecond."""
    if range is None or not rows.num_rows:
        return rows
    nanos = hlc_nanos(rows["hlc"].to_numpy())
    chosen = np.ones(len(nanos), np.bool_)
    start, end = range.start_ns, range.end_ns
    if start is not None:
        low = np.uint64(max(0, start))
        chosen &= nanos >= low if range.start_inclusive or start < 0 else nanos > low
    if end is not None:
        if end < 0:
            return rows.slice(0, 0)
        high = np.uint64(end)
        chosen &= nanos <= high if range.end_inclusive else nanos < high
    return rows if chosen.all() else rows.filter(pa.array(chosen))
