"""What a task does: all reading and writing of rows happens here, in Spark's executors.

    Ingest      a range of one partition of the journal into new files of all tables at once
    Merge       the newest rows of a batch into the buckets of `latest`
    Fold        ranges of a journal into the ledger, and the ledger into `gaps`

A task gets what it needs in its own fields and gives back facts about files, as JSON can write
them. Its files have names that nobody had before, so a task may be tried any number of times.
"""

from __future__ import annotations

import io
import json
import time
import uuid
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa

from zenlake.errors import JournalError
from zenlake.journal import Journal
from zenlake.journal.ledger.heartbeats import samples_in
from zenlake.journal.ledger.ledger import COLUMNS, Ledger
from zenlake.lake import latest
from zenlake.lake.files import DataFile, read_noted, write_file, write_partitioned
from zenlake.lake.place import Place
from zenlake.lake.rows import DAY, GAPS, sample_rows, with_day
from zenlake.lake.typed import TypedRows, TypedTable

__all__ = ["LEDGER", "QUARANTINED", "Fold", "Ingest", "Merge", "Stretch", "scratch_folder"]

MOST_ROWS: Final = 500_000
MOST_BYTES: Final = 128 * 1024 * 1024
"""What a task holds in memory before it writes a file."""

DELETED: Final = b"zenlake.deleted"
LEDGER: Final = b"zenlake.ledger"
"""Where footers keep what readers of the table do not need: no commit can part the two."""

QUARANTINED: Final = "quarantine"


@dataclass(frozen=True, slots=True)
class Stretch:
    """A range of one partition of a journal, up to `end`."""

    partition: int
    end: int
    starts: Mapping[str, int]
    """For each table, by name, the first offset that it has not."""

    @property
    def first(self) -> int:
        """The first offset that some table has not."""
        return min(self.starts.values())


@dataclass(frozen=True, slots=True)
class Ingest:
    """Stretches of a journal, on their way into tables."""

    lake: str
    journal: str
    journal_id: str
    stretches: tuple[Stretch, ...]
    typed: tuple[tuple[TypedTable, Mapping[str, str]], ...] = ()
    buckets: int = 16
    merge: Mapping[int, str] | None = None
    """The files of `latest`, when this task is alone and shall merge them itself."""
    remember: float = 86400.0

    def run(self) -> dict[str, Any]:
        """Read the rows once, and write what each table wants of them."""
        lake = Place(self.lake)
        attempt = uuid.uuid4().hex
        samples = _Samples(lake / "samples", attempt)
        state = _State()
        wanted = {name for stretch in self.stretches for name in stretch.starts}
        tables = [
            TypedRows(table, known, self.journal_id)
            for table, known in self.typed
            if table.name in wanted
        ]
        for stretch, batch in self._batches():
            rows = sample_rows(batch, self.journal_id, stretch.partition)
            at = batch["offset"][0].as_py()
            for name, start in stretch.starts.items():
                skip = max(0, start - at)
                if skip >= batch.num_rows:
                    continue
                if name == "samples":
                    samples.add(rows.slice(skip))
                elif name == "latest":
                    state.add(rows.slice(skip))
                for typed in tables:
                    if typed.table.name == name:
                        typed.add(batch.slice(skip), rows.slice(skip))
        told: dict[str, Any] = {
            "samples": [file.plain() for file in samples.files()],
            "typed": {typed.table.name: _typed_files(lake, typed, attempt) for typed in tables},
        }
        newest = state.newest()
        if newest is not None:
            told["latest"] = self._latest(lake, newest, attempt)
        return told

    def _batches(self) -> Iterator[tuple[Stretch, pa.RecordBatch]]:
        """All rows of all stretches; none may be missing."""
        journal = Journal.open(self.journal)
        for stretch in self.stretches:
            due = stretch.end - stretch.first
            for batch in journal.scan(
                stretch.first, stretch.end, partition=stretch.partition, heartbeats=True
            ):
                due -= batch.num_rows
                for samples in samples_in(batch):
                    yield stretch, samples
            if due:
                raise JournalError(
                    f"partition {stretch.partition} of {self.journal} lacks {due} rows before "
                    f"offset {stretch.end}; nothing was committed"
                )

    def _latest(self, lake: Place, state: pa.Table, attempt: str) -> dict[str, Any]:
        numbers = latest.buckets_of(state, self.buckets)
        parts = {
            int(bucket): state.filter(pa.array(numbers == bucket))
            for bucket in np.unique(numbers).tolist()
        }
        place = lake / "latest"
        if self.merge is None:
            return _write_scratch(place, parts, attempt)
        wild = parts.pop(-1, None)
        # A deletion with wildcards must be remembered where no key is yet, too.
        touched = set(parts) if wild is None else set(range(self.buckets))
        done = []
        for bucket in sorted(touched):
            states = [part for part in (parts.get(bucket), wild) if part is not None]
            had = self.merge.get(bucket)
            file = _merge_bucket(place, bucket, had, states, self.remember)
            done.append({"bucket": bucket, "file": file.plain(), "had": had})
        return {"merged": done}


@dataclass(frozen=True, slots=True)
class Merge:
    """Some buckets of `latest`, and the scratch files that have news for them."""

    lake: str
    buckets: Mapping[int, str | None]
    scratch: tuple[tuple[str, tuple[int, ...]], ...]
    remember: float = 86400.0

    def run(self) -> dict[str, Any]:
        """Write each bucket anew."""
        place = Place(self.lake) / "latest"
        done = []
        readers = [
            (pa.ipc.open_file(place.filesystem.open_input_file(place.path(path))), buckets)
            for path, buckets in self.scratch
        ]
        for bucket, had in self.buckets.items():
            states = [
                pa.Table.from_batches([reader.get_batch(n)])
                for reader, buckets in readers
                for n, of in enumerate(buckets)
                if of in (bucket, -1)
            ]
            file = _merge_bucket(place, bucket, had, states, self.remember)
            done.append({"bucket": bucket, "file": file.plain(), "had": had})
        return {"merged": done}


@dataclass(frozen=True, slots=True)
class Fold:
    """New rows of a journal for its ledger."""

    lake: str
    journal: str
    journal_id: str
    ranges: Mapping[int, tuple[int, int]]
    had: str | None

    def run(self) -> dict[str, Any]:
        """Enter the rows, and write the pages with the ledger's own state in the footer."""
        place = Place(self.lake) / "gaps"
        ledger = Ledger()
        if self.had is not None:
            _, notes = read_noted(place, self.had, ["rows"])
            ledger = Ledger.from_state(json.loads(zlib.decompress(notes[LEDGER])))
        journal = Journal.open(self.journal)
        for partition, (start, end) in self.ranges.items():
            if ledger.offsets.get(partition, 0) != start:
                ledger.begin(partition, start)
            for batch in journal.scan(
                start, end, partition=partition, columns=list(COLUMNS), heartbeats=True
            ):
                ledger.enter(partition, batch)
        state = zlib.compress(json.dumps(ledger.state()).encode(), 1)
        file = write_file(
            place,
            _pages(ledger),
            {"journal": self.journal_id},
            uuid.uuid4().hex,
            metadata={LEDGER: state},
        )
        return {"file": file.plain()}


def scratch_folder(path: str) -> str:
    """The folder of a scratch file."""
    return path.rpartition("/")[0]


# --- pieces -------------------------------------------------------------------------------------


class _Samples:
    """Rows of `samples` that become files as soon as they fill one."""

    def __init__(self, place: Place, attempt: str) -> None:
        self._place = place
        self._attempt = attempt
        self._held: list[pa.Table] = []
        self._files: list[DataFile] = []
        self._rows = self._bytes = 0

    def add(self, rows: pa.Table) -> None:
        rows_then, bytes_then = self._rows + rows.num_rows, self._bytes + rows.nbytes
        if self._held and (rows_then > MOST_ROWS or bytes_then > MOST_BYTES):
            self._write()
        self._held.append(rows)
        self._rows += rows.num_rows
        self._bytes += rows.nbytes

    def files(self) -> list[DataFile]:
        if self._held:
            self._write()
        return self._files

    def _write(self) -> None:
        rows = pa.concat_tables(self._held).unify_dictionaries().combine_chunks()
        name = f"{self._attempt}-{len(self._files)}"
        self._files += write_partitioned(self._place, with_day(rows), DAY, name)
        self._held, self._rows, self._bytes = [], 0, 0


class _State:
    """Rows that become the newest of each key as soon as there are many."""

    def __init__(self) -> None:
        self._held: list[pa.Table] = []
        self._rows = self._bytes = 0

    def add(self, rows: pa.Table) -> None:
        self._held.append(rows)
        self._rows += rows.num_rows
        self._bytes += rows.nbytes
        if self._rows > MOST_ROWS or self._bytes > MOST_BYTES:
            self._held = [latest.merged(self._held)]
            self._rows = self._bytes = 0

    def newest(self) -> pa.Table | None:
        found = latest.merged(self._held) if self._held else None
        return found if found is not None and found.num_rows else None


def _typed_files(lake: Place, typed: TypedRows, attempt: str) -> dict[str, Any]:
    name = typed.table.name
    rows, refused = typed.rows(), typed.quarantine()
    files = write_partitioned(lake / name, rows, DAY, attempt) if rows.num_rows else []
    bad = []
    if refused.num_rows:
        bad = write_partitioned(lake / QUARANTINED, refused, DAY, f"{attempt}-{name}")
    return {
        "files": [f.plain() for f in files],
        "refused": [f.plain() for f in bad],
        "new": typed.new,
    }


def _write_scratch(place: Place, parts: Mapping[int, pa.Table], attempt: str) -> dict[str, Any]:
    folder = f"_scratch/{attempt}"
    place.make(folder)
    path = f"{folder}/state.arrow"
    with (
        place.filesystem.open_output_stream(place.path(path)) as out,
        pa.ipc.new_file(out, latest.MERGED) as writer,
    ):
        for part in parts.values():
            writer.write_batch(part.combine_chunks().to_batches()[0])
    return {"scratch": path, "buckets": list(parts)}


def _merge_bucket(
    place: Place, bucket: int, had: str | None, states: list[pa.Table], remember: float
) -> DataFile:
    states = list(states)
    if had is not None:
        before, notes = read_noted(place, had)
        states.append(before.select(latest.MERGED.names))
        gone = notes.get(DELETED)
        if gone:
            states.append(latest.as_state(pa.ipc.open_stream(gone).read_all()))
    state = latest.merged(states)
    since = int((time.time() - remember) * 1_000_000)
    gone = latest.remembered(latest.dead(state), since)
    kept = latest.live(state)
    sink = io.BytesIO()
    with pa.ipc.new_stream(
        sink, latest.DEAD, options=pa.ipc.IpcWriteOptions(compression="zstd")
    ) as writer:
        writer.write_table(gone)
    return write_file(
        place,
        kept.sort_by("key"),
        {"bucket": str(bucket)},
        uuid.uuid4().hex,
        metadata={DELETED: sink.getvalue()} if gone.num_rows else None,
    )


def _pages(ledger: Ledger) -> pa.Table:
    columns: dict[str, list[Any]] = {name: [] for name in GAPS.names if name != "journal"}
    for page in ledger.pages():
        facts = page.facts()
        for name, values in columns.items():
            values.append(facts[name])
    for key, count in ledger.unprovable().items():
        for name, values in columns.items():
            values.append({"key": key, "rows": count}.get(name))
    schema = pa.schema([f for f in GAPS if f.name != "journal"])
    return pa.table(columns, schema=schema)
