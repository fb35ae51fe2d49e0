"""What a task of a step does: a range of the journal into new files of all tables at once.

A task gets what it needs in its own fields and gives back facts about files. Its files have names
that nobody had before, so a task may be tried any number of times.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from zenlake.errors import JournalError
from zenlake.journal import Journal
from zenlake.journal.ledger.heartbeats import samples_in
from zenlake.lake.decode.arrow_rows import ArrowRows, rows_for
from zenlake.lake.decode.key_router import KeyRouter, RoutedKeys
from zenlake.lake.decode.typed_rows import TypedRows, is_readable
from zenlake.lake.ingest.crashes import SURVEY, Skips, without_crashed
from zenlake.lake.ingest.failure_reason import reason_of
from zenlake.lake.ingest.latest_tasks import newest_note
from zenlake.lake.ingest.plan import LEADER, JournalRange
from zenlake.lake.model.sample_rows import DAY, sample_rows, with_day
from zenlake.lake.model.typed_table import Columns, TypedTable
from zenlake.lake.table.data_files import DataFile, write_partitioned
from zenlake.lake.table.location import LakeLocation
from zenlake.ros2.names import parse_key

__all__ = [
    "QUARANTINED",
    "IngestResult",
    "IngestTask",
    "SampleFiles",
    "TypedFiles",
    "typed_files",
]

MOST_ROWS: Final = 500_000
MOST_BYTES: Final = 128 * 1024 * 1024
"""What a task holds in memory before it writes a file."""

QUARANTINED: Final = "quarantine"

MOST_TOPICS: Final = 1000
MOST_NEW_KEYS: Final = 2000
"""Keys without a table that a task looks at; the next step looks at more."""
MOST_KEYS: Final = 100_000


@dataclass(frozen=True, slots=True)
class TypedFiles:
    """What a task wrote for one typed table."""

    files: tuple[DataFile, ...] = ()
    refused: tuple[DataFile, ...] = ()
    """Files of the quarantine."""
    new: Mapping[str, str] = field(default_factory=dict)
    """The columns that were not known before, or were narrower."""
    failed: str = ""
    """Why nothing was written, if it could not be; the other tables have what is theirs."""


@dataclass(frozen=True, slots=True)
class IngestResult:
    """The files that a task wrote, table by table."""

    samples: tuple[DataFile, ...] = ()
    refused: tuple[DataFile, ...] = ()
    """Files of the quarantine, with rows that `samples` cannot have."""
    typed: Mapping[str, TypedFiles] = field(default_factory=dict)
    topics: frozenset[str] = frozenset()
    """The topics of ROS 2 that were met, if they were asked for."""
    keys: Mapping[str, bool] = field(default_factory=dict)
    """Keys that belong to no table, if they were asked for, and whether payloads can be read."""


@dataclass(frozen=True, slots=True)
class IngestTask:
    """Stretches of a journal, on their way into tables."""

    lake: str
    journal: str
    journal_id: str
    stretches: tuple[JournalRange, ...]
    typed: tuple[tuple[TypedTable, Columns], ...] = ()
    topics: bool = False
    """Whether to look for topics of ROS 2."""
    known: tuple[TypedTable, ...] | None = None
    """All tables that keys may belong to, to look for keys of none; None: they are not wanted."""
    skips: Mapping[str, Skips] = field(default_factory=dict)
    """By table: rows that go to quarantine undecoded."""

    @property
    def subject(self) -> str:
        """Which rows it reads, in words."""
        first, *others = self.stretches
        more = f" and {len(others)} more ranges" if others else ""
        return f"offsets {first.first} to {first.end - 1} of partition {first.partition}{more}"

    def run(self) -> IngestResult:
        """Read the rows once, and write what each table wants of them."""
        lake = LakeLocation(self.lake)
        attempt = uuid.uuid4().hex
        samples = SampleFiles(lake / "samples", attempt)
        wanted = {name for stretch in self.stretches for name in stretch.starts}
        tables = [rows_for(table, columns) for table, columns in self.typed if table.name in wanted]
        failed: dict[str, str] = {}
        crashed: dict[str, list[pa.Table]] = {}
        topics = Topics() if self.topics else None
        survey = None if self.known is None else KeySurvey()
        by_name = {typed.table.name: typed for typed in tables}
        others = () if self.known is None else self.known
        mine = [typed.table for typed in tables]
        router = KeyRouter([*mine, *(one for one in others if one.name not in by_name)])
        for stretch, batch in self._batches():
            rows = sample_rows(batch, self.journal_id, stretch.partition)
            if topics is not None:
                topics.look(rows)
            routed = RoutedKeys(rows, router)
            at = batch["offset"][0].as_py()
            app = f"{self.journal_id}/{stretch.partition}"
            for name, start in stretch.starts.items():
                skip = max(0, start - at)
                if skip >= batch.num_rows:
                    continue
                typed = name in by_name
                if name != LEADER and not (typed and routed.of_table(name) and name not in failed):
                    continue
                left, bad = without_crashed(name, rows.slice(skip), app, self.skips.get(name, {}))
                keys_left = routed.after(skip)
                if bad is not None:
                    crashed.setdefault(name, []).append(bad)
                    if not left.num_rows:
                        continue
                    keys_left = RoutedKeys(left, router)
                if name == LEADER:
                    samples.add(left)
                    if survey is not None:
                        skips = self.skips.get(SURVEY, {})
                        seen, unseen = without_crashed(name, left, app, skips)
                        survey.look(seen, keys_left if unseen is None else RoutedKeys(seen, router))
                else:
                    try:
                        by_name[name].add(left, keys_left)
                    except Exception as error:
                        failed[name] = reason_of(error)
        written = {
            typed.table.name: _tried(lake, typed, attempt, failed, crashed) for typed in tables
        }
        met = frozenset() if topics is None else frozenset(topics.met)
        keys = {} if survey is None else survey.met
        refused: list[DataFile] = []
        if LEADER in crashed:
            bad = pa.concat_tables(crashed[LEADER])
            refused = write_partitioned(lake / QUARANTINED, bad, DAY, f"{attempt}-{LEADER}")
        return IngestResult(tuple(samples.files()), tuple(refused), written, met, keys)

    def _batches(self) -> Iterator[tuple[JournalRange, pa.RecordBatch]]:
        """All rows of all stretches; none may be missing."""
        journal = Journal.open(self.journal)
        for stretch in self.stretches:
            due = stretch.rows
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


class Topics:
    """The topics of ROS 2 among rows of `samples`."""

    def __init__(self) -> None:
        """None yet."""
        self.met: set[str] = set()
        self._seen: set[str] = set()

    def look(self, rows: pa.Table) -> None:
        """Add those of these rows."""
        for key in pc.unique(rows["key"]).to_pylist():
            if key in self._seen or len(self.met) >= MOST_TOPICS:
                continue
            if len(self._seen) >= MOST_KEYS:
                self._seen.clear()
            self._seen.add(key)
            data = parse_key(key)
            if data is not None and "/msg/" in data.type:
                self.met.add(data.topic)


class KeySurvey:
    """The keys of rows of `samples` that belong to no table."""

    def __init__(self) -> None:
        """None yet."""
        self.met: dict[str, bool] = {}

    def look(self, rows: pa.Table, routed: RoutedKeys) -> None:
        """Add those of these rows; a key whose payload was read once is looked at no more."""
        wanted = [
            code
            for code in routed.unknown
            if not self.met.get(key := routed.keys[code])
            and (key in self.met or len(self.met) < MOST_NEW_KEYS)
        ]
        if not wanted:
            return
        first = np.full(len(routed.keys), -1, np.int64)
        puts = np.flatnonzero(pc.not_equal(rows["kind"], "delete").to_numpy())[::-1]
        first[routed.codes[puts]] = puts  # the last to be written is the first of the rows
        for code in wanted[:MOST_NEW_KEYS]:
            place = int(first[code])
            if place < 0:
                continue
            key = routed.keys[code]
            data = parse_key(key)
            if data is not None and "/msg/" in data.type:
                continue  # `Topics` has it
            payload, encoding = rows["value"][place].as_py(), rows["encoding"][place].as_py()
            self.met[key] = is_readable(payload, encoding)


class SampleFiles:
    """Rows of `samples` that become files as soon as they fill one."""

    def __init__(self, place: LakeLocation, attempt: str) -> None:
        """`place` is the table's; `attempt` is in the names of the files."""
        self._place = place
        self._attempt = attempt
        self._held: list[pa.Table] = []
        self._files: list[DataFile] = []
        self._rows = self._bytes = 0

    def add(self, rows: pa.Table) -> None:
        """Take rows, without their day."""
        rows_then, bytes_then = self._rows + rows.num_rows, self._bytes + rows.nbytes
        if self._held and (rows_then > MOST_ROWS or bytes_then > MOST_BYTES):
            self._write()
        self._held.append(rows)
        self._rows += rows.num_rows
        self._bytes += rows.nbytes

    def files(self) -> list[DataFile]:
        """Write what is left; all files."""
        if self._held:
            self._write()
        return self._files

    def _write(self) -> None:
        rows = pa.concat_tables(self._held).unify_dictionaries().combine_chunks()
        name = f"{self._attempt}-{len(self._files)}"
        self._files += write_partitioned(self._place, with_day(rows), DAY, name, notes=newest_note)
        self._held, self._rows, self._bytes = [], 0, 0


def _tried(
    lake: LakeLocation,
    typed: TypedRows | ArrowRows,
    attempt: str,
    failed: Mapping[str, str],
    crashed: Mapping[str, Sequence[pa.Table]],
) -> TypedFiles:
    """What one typed table gets, or why it gets nothing: no other table waits for it."""
    name = typed.table.name
    try:
        if name in failed:
            return TypedFiles(failed=failed[name])
        return typed_files(lake, typed, attempt, crashed.get(name, ()))
    except Exception as error:
        return TypedFiles(failed=reason_of(error))


def typed_files(
    lake: LakeLocation,
    typed: TypedRows | ArrowRows,
    attempt: str,
    crashed: Sequence[pa.Table] = (),
) -> TypedFiles:
    """Write what one typed table gets, and what it refuses; `crashed` is more for quarantine."""
    name = typed.table.name
    rows, refused = typed.rows(), pa.concat_tables([typed.quarantine(), *crashed])
    files = write_partitioned(lake / name, rows, DAY, attempt) if rows.num_rows else []
    bad = []
    if refused.num_rows:
        bad = write_partitioned(lake / QUARANTINED, refused, DAY, f"{attempt}-{name}")
    return TypedFiles(tuple(files), tuple(bad), dict(typed.new))
