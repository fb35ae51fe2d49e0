"""Keeping tables in shape while the pipeline runs: compaction, retention, vacuum.

Small files are merged by size: as soon as some number of files of about one size has come
together in a partition they become one file of the next size, sorted by key and time. So the
number of files grows with the logarithm of the rows, and each row is rewritten that often.

Every change here replaces files in one version. If another one was faster it is refused, and
planned anew; appends of the pipeline never stand in the way.
"""

from __future__ import annotations

import json
import logging
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import unquote

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from zenlake.keys.matching import intersects
from zenlake.lake.ingest.rollups import ROLLUPS, MergePartsTask
from zenlake.lake.ingest.spark_tasks import Tasks
from zenlake.lake.ingest.task import QUARANTINED
from zenlake.lake.model.config import LakeConfig, Retention
from zenlake.lake.model.sample_rows import DAY, order_of
from zenlake.lake.table.data_files import DataFile, read_table, write_file
from zenlake.lake.table.delta import CommitConflict, Table
from zenlake.lake.table.iceberg import FOLDER
from zenlake.lake.table.location import LakeLocation
from zenlake.recorded.columns import coded

__all__ = [
    "CompactTask",
    "RetainTask",
    "compact",
    "groups",
    "promised",
    "retain",
    "retains_more",
    "vacuum",
]

log = logging.getLogger("zenlake.lake")

SMALLEST: Final = 64 * 1024
LARGE: Final = 4
"""Files of a fourth of the largest size are left alone: merging them would win little."""

MOST_ROWS: Final = 2_000_000
"""Rows of a file that others are merged into. A question about a moment looks into the file that it
lies in, row by row; of older files it is known which row of each key is the newest."""

MOST_TRIES: Final = 8
REPLACED: Final = ("latest", "gaps")
"""Tables whose files are replaced by the pipeline itself; there is nothing to merge in them."""

LOG: Final = "_delta_log/"
SCRATCH: Final = "_scratch/"

Progress = Callable[[str, int, int], None]
"""Told: what is done, how many pieces of how many."""


@dataclass(frozen=True, slots=True)
class CompactTask:
    """Files of one partition that become one."""

    table: str
    partition: Mapping[str, str | None]
    paths: tuple[str, ...]
    schema: pa.Schema

    def run(self) -> DataFile:
        """Read them, sort the rows by key and time if they have both, write one file."""
        place = LakeLocation(self.table)
        parts = [read_table(place, path, self.schema) for path in self.paths]
        rows = pa.concat_tables(parts, promote_options="default").combine_chunks()
        names = set(rows.column_names)
        if {"key", "hlc", "journal"} <= names:
            rows = rows.take(pa.array(order_of(rows)))
        elif "time" in names and pa.types.is_timestamp(rows.schema.field("time").type):
            rows = rows.sort_by("time")
        return write_file(place, rows, self.partition, uuid.uuid4().hex)


@dataclass(frozen=True, slots=True)
class RetainResult:
    """How many rows of a file were dropped, and the file that is left, if one is."""

    dropped: int
    file: DataFile | None


@dataclass(frozen=True, slots=True)
class RetainTask:
    """A file that may have rows which are too old."""

    table: str
    partition: Mapping[str, str | None]
    path: str
    schema: pa.Schema
    rules: tuple[Retention, ...]
    now: float

    def run(self) -> RetainResult:
        """Write the file anew without them; the first rule that names a key decides."""
        place = LakeLocation(self.table)
        facts = read_table(place, self.path, self.schema, ["key", "received"])
        keys = coded(facts["key"])
        cutoffs = np.array([self._cutoff(key) for key in keys.dictionary.to_pylist()], np.int64)
        received = facts["received"].cast(pa.int64()).to_numpy()
        keep = received >= cutoffs[keys.indices.to_numpy(zero_copy_only=False)]
        dropped = int(len(keep) - keep.sum())
        file = None
        if dropped and keep.any():
            rows = read_table(place, self.path, self.schema).filter(pa.array(keep))
            file = write_file(place, rows, self.partition, uuid.uuid4().hex)
        return RetainResult(dropped, file)

    def _cutoff(self, key: str) -> int:
        for rule in self.rules:
            if intersects(rule.keys, key):
                return int((self.now - rule.age) * 1_000_000)
        return -(1 << 63)


def groups(files: Sequence[DataFile], config: LakeConfig, full: bool) -> list[list[DataFile]]:
    """Which files to merge: those of one partition and about one size, when there are enough.

    With `full`, all small files of a partition, however few; so also those of a day that is over,
    when a later one has begun.
    """
    by_partition: dict[tuple[Any, ...], list[DataFile]] = {}
    newest = max((str(file.partition.get(DAY)) for file in files), default="")
    for file in files:
        if file.size >= config.compact_bytes // LARGE or file.rows >= MOST_ROWS // LARGE:
            continue
        over = full or str(file.partition.get(DAY)) < newest
        size = 0 if over else _tier(file.size, config.compact_files)
        by_partition.setdefault((over, *file.partition.items(), size), []).append(file)
    chosen: list[list[DataFile]] = []
    for (over, *_), group in by_partition.items():
        if len(group) < (2 if over else max(2, config.compact_files)):
            continue
        group.sort(key=lambda file: file.modified)
        chosen += [part for part in _bins(group, config.compact_bytes) if len(part) > 1]
    return chosen


def _tier(size: int, factor: int) -> int:
    tier = 0
    edge = SMALLEST * factor
    while size > edge:
        tier += 1
        edge *= max(2, factor)
    return tier


def _bins(files: list[DataFile], most: int) -> Iterator[list[DataFile]]:
    held: list[DataFile] = []
    size = rows = 0
    for file in files:
        if held and (size + file.size > most or rows + file.rows > MOST_ROWS):
            yield held
            held, size, rows = [], 0, 0
        held.append(file)
        size += file.size
        rows += file.rows
    if held:
        yield held


def compact(
    table: Table,
    tasks: Tasks,
    config: LakeConfig,
    *,
    full: bool = False,
    progress: Progress | None = None,
) -> int:
    """Merge small files; gives how many files are fewer."""
    if table.name in REPLACED or table.is_continuous:
        return 0
    fewer = 0
    tries = 0
    table.refresh()
    planned = groups(table.files(), config, full)
    total = len(planned)
    while planned:
        some = planned[: max(1, tasks.parallel)]
        merge = MergePartsTask if table.name == ROLLUPS else CompactTask
        schema = table.file_schema
        merged = tasks.run(
            [
                merge(table.place.uri, group[0].partition, tuple(f.path for f in group), schema)
                for group in some
            ],
            f"compact {table.name}",
        )
        try:
            table.rewrite(merged, [f for g in some for f in g], table.name == ROLLUPS)
        except CommitConflict as error:
            tries += 1
            if tries >= MOST_TRIES:
                raise
            log.info("%s; planning anew", error)
            table.refresh()
            planned = groups(table.files(), config, full)
            continue
        fewer += sum(len(group) - 1 for group in some)
        planned = planned[len(some) :]
        if progress is not None:
            progress(f"compact {table.name}", total - len(planned), total)
    return fewer


def retain(
    table: Table,
    tasks: Tasks,
    rules: tuple[Retention, ...],
    *,
    now: float | None = None,
    progress: Progress | None = None,
) -> int:
    """Drop the rows that the rules no longer keep; gives how many."""
    if not _has_ages(table, rules):
        return 0
    when = time.time() if now is None else now
    dropped = tries = 0
    table.refresh()
    planned = _old(table, rules, when)
    total = len(planned)
    while planned:
        some = planned[: max(1, tasks.parallel)]
        schema = table.file_schema
        kept = tasks.run(
            [RetainTask(table.place.uri, f.partition, f.path, schema, rules, when) for f in some],
            f"retain {table.name}",
        )
        changed = [(f, one) for f, one in zip(some, kept, strict=True) if one.dropped]
        try:
            if changed:
                files = [one.file for _, one in changed if one.file is not None]
                table.rewrite(files, [f for f, _ in changed], True)
        except CommitConflict as error:
            tries += 1
            if tries >= MOST_TRIES:
                raise
            log.info("%s; planning anew", error)
            table.refresh()
            planned = _old(table, rules, when)
            continue
        dropped += sum(one.dropped for _, one in changed)
        planned = planned[len(some) :]
        if progress is not None:
            progress(f"retain {table.name}", total - len(planned), total)
    return dropped


def retains_more(table: Table, rules: tuple[Retention, ...], judged: float, wall: float) -> bool:
    """Return True if `retain` looks at fewer files by the time `judged` than by `wall`."""
    if not _has_ages(table, rules):
        return False
    return len(_old(table, rules, judged)) < len(_old(table, rules, wall))


def _has_ages(table: Table, rules: tuple[Retention, ...]) -> bool:
    """Return True if rules of retention concern a table."""
    if table.name in REPLACED or table.is_continuous or table.is_by_programs or not rules:
        return False
    return {"key", "received"} <= set(table.schema.names)


def _old(table: Table, rules: tuple[Retention, ...], now: float) -> list[DataFile]:
    """The files that have rows from before the newest moment of any rule."""
    newest = pa.scalar(int((now - min(rule.age for rule in rules)) * 1_000_000), pa.int64())
    actions = table.actions()
    files = table.files()
    if "min.received" not in actions.column_names:
        return files
    first = actions["min.received"].cast(pa.int64())
    old = pc.fill_null(pc.less(first, newest), True).to_pylist()
    return [file for file, is_old in zip(files, old, strict=True) if is_old]


def vacuum(table: Table, age: float, keep: Sequence[str] = (), *, dry: bool = False) -> list[str]:
    """Delete the files that no present version needs, and none needed for `age` seconds.

    Attempts that failed leave such files, and so do compaction and `latest`. One that was written
    since may belong to a task that is about to be committed; one that was removed from the table
    since may be in the hands of a reader.
    """
    # The files first: what is committed while we look was written before, or is young.
    there = list(table.place.files())
    table.refresh()
    needed = {*table.actions()["path"].to_pylist(), *keep}
    needed |= _removed_since(table, [name for name, _, old in there if old < age])
    gone = []
    for name, _, old in there:
        if name.startswith((LOG, f"{FOLDER}/")) or name in needed or old < age:
            continue
        gone.append(name)
        if not dry:
            table.place.remove(name)
            if name.startswith(SCRATCH):
                table.place.remove_folder(name.rpartition("/")[0])
    return gone


def _removed_since(table: Table, young: list[str]) -> set[str]:
    """The files that young versions took out of the table, as the log tells it."""
    removed: set[str] = set()
    for name in young:
        if not name.startswith(LOG) or not name.endswith(".json"):
            continue
        with table.place.filesystem.open_input_stream(table.place.path(name)) as page:
            lines = page.read().splitlines()
        for line in lines:
            if b'"remove"' in line:
                removed.add(unquote(json.loads(line)["remove"]["path"]))
    return removed


def promised(tables: Mapping[str, Table]) -> list[str]:
    """Files that typed tables have left to the quarantine, committed there or not yet."""
    paths: list[str] = []
    for name, table in tables.items():
        if name == QUARANTINED:
            continue
        note = table.last_note("append") or {}
        paths += [plain["path"] for plain in note.get("quarantine", ())]
    return paths
