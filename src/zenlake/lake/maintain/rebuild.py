"""A typed table made again from `samples`, as the configuration is now.

The new rows and columns take the place of the old ones in one commit, which also says how far the
table is: as far as the version of `samples` that was read. A pipeline that runs meanwhile goes on
from there. What the table refuses now takes the place of what it refused before.
"""

from __future__ import annotations

import logging
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from zenlake.config.nearest import nearest
from zenlake.errors import LocalError
from zenlake.lake.decode.arrow_rows import rows_for
from zenlake.lake.decode.ros2_tables import LearntTypes, Ros2Tables, configured_types
from zenlake.lake.decode.table_description import described_as
from zenlake.lake.decode.table_store import key_tables
from zenlake.lake.ingest.crashes import Crashes, Skips, without_crashed
from zenlake.lake.ingest.failure_reason import WorkFailed
from zenlake.lake.ingest.latest_overlay import Marks, tail_files
from zenlake.lake.ingest.quarantine import Quarantine
from zenlake.lake.ingest.schema_agreement import agreed
from zenlake.lake.ingest.spark_tasks import Tasks
from zenlake.lake.ingest.task import QUARANTINED, TypedFiles, typed_files
from zenlake.lake.model.config import LakeConfig
from zenlake.lake.model.sample_rows import DAY, QUARANTINE, SAMPLES
from zenlake.lake.model.typed_table import Columns, TypedTable, typed_schema
from zenlake.lake.table.data_files import DataFile, read_table
from zenlake.lake.table.delta import CommitConflict, Table
from zenlake.lake.table.location import LakeLocation

__all__ = ["Rebuilt", "known_table", "known_tables", "rebuild"]

log = logging.getLogger("zenlake.lake")

MOST_TRIES: Final = 20
READ: Final = 64 * 1024 * 1024
"""Bytes of files that one task reads."""

WANTED: Final = (
    "key", "kind", "value", "encoding", "attachment", "time", "hlc", "received", "journal",
    "partition", "offset",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Rebuilt:
    """What became of the samples of a table."""

    rows: int
    refused: int
    """Rows that are in quarantine now."""
    before: int
    refused_before: int


@dataclass(frozen=True, slots=True)
class RebuildResult:
    """What a task wrote, and which journals it met: `id/partition`."""

    written: TypedFiles
    apps: frozenset[str]


@dataclass(frozen=True, slots=True)
class RebuildTask:
    """Files of `samples` whose rows are decoded again."""

    lake: str
    paths: tuple[str, ...]
    spec: TypedTable
    columns: Columns
    marks: Marks
    """Rows below these were decoded before."""
    skips: Skips = field(default_factory=dict)
    """Rows that go to quarantine undecoded."""

    @property
    def subject(self) -> str:
        """Which files it reads, in words."""
        first, *others = self.paths
        return f"samples/{first}" + (f" and {len(others)} more files" if others else "")

    def run(self) -> RebuildResult:
        """Decode them, and write files of the table and of the quarantine."""
        lake = LakeLocation(self.lake)
        typed = rows_for(self.spec, self.columns)
        apps: set[str] = set()
        crashed: list[pa.Table] = []
        for path in self.paths:
            rows = read_table(lake / "samples", path, SAMPLES, WANTED)
            groups = rows.group_by(["journal", "partition"]).aggregate([])
            for one in groups.to_pylist():
                app = f"{one['journal']}/{one['partition']}"
                apps.add(app)
                done = self.marks.get(app)
                if done is not None:
                    mine = _of(rows, one)
                    rows = rows.filter(pc.invert(pc.and_(mine, pc.less(rows["offset"], done))))
                if app in self.skips:
                    mine = _of(rows, one)
                    others = rows.filter(pc.invert(mine))
                    left, bad = without_crashed(self.spec.name, rows.filter(mine), app, self.skips)
                    rows = pa.concat_tables([others, left])
                    crashed += [] if bad is None else [bad]
            if rows.num_rows:
                typed.add(rows)
        written = typed_files(lake, typed, uuid.uuid4().hex, crashed)
        return RebuildResult(written, frozenset(apps))


def _of(rows: pa.Table, source: Mapping[str, Any]) -> pa.ChunkedArray:
    """Return which rows are of a partition of a journal."""
    return pc.and_(
        pc.equal(rows["journal"], source["journal"]),
        pc.equal(rows["partition"], source["partition"]),
    )


def known_tables(place: LakeLocation, config: LakeConfig) -> dict[str, TypedTable]:
    """Return the typed tables by name: configured, found, made by command, and of topics."""
    topics = Ros2Tables(place, config.tables).found.values()
    return {spec.name: spec for spec in (*topics, *key_tables(place, config))}


def known_table(place: LakeLocation, config: LakeConfig, name: str) -> TypedTable:
    """The typed table of this name, as it is read now."""
    specs = known_tables(place, config)
    types = LearntTypes(place, configured_types(config.ros2))
    if name not in specs:
        near = nearest(name, specs)
        advice = f"did you mean '{near}'? " if near else ""
        raise LocalError(
            f"there is no typed table '{name}'; {advice}"
            f"There are {', '.join(specs) or 'none'}, and only these can be made again"
        )
    return types.with_types(specs[name])


def rebuild(lake: LakeLocation, spec: TypedTable, tasks: Tasks) -> Rebuilt:
    """Make a typed table again.

    Samples that crashed its decoder are decoded like all others; only if a worker dies do they go
    to quarantine again.
    """
    crashes = Crashes(lake)
    skips = crashes.of(spec.name)
    if skips:
        try:
            made = _rebuilt(lake, spec, tasks, {})
        except WorkFailed as error:
            if not error.died:
                raise
            log.info("%s; what crashed before goes to quarantine", error)
        else:
            crashes.forget(spec.name)
            return made
    return _rebuilt(lake, spec, tasks, skips)


def _rebuilt(lake: LakeLocation, spec: TypedTable, tasks: Tasks, skips: Skips) -> Rebuilt:
    samples = Table.open(lake, "samples")
    if samples is None:
        raise LocalError(f"{lake.uri} has no table 'samples' to make '{spec.name}' from")
    schema = typed_schema(spec, spec.columns)
    table = Table.create(lake, spec.name, schema, DAY, described=described_as(spec))
    before = table.totals().rows
    refused_before = _refused(lake, spec.name)
    quarantine = Quarantine(lake, {spec.name: table}, tasks)
    works: list[RebuildTask] = []
    parts: list[TypedFiles] = []
    apps: set[str] = set()
    marks: dict[str, int] = {}
    known = Columns(dict(spec.columns), frozenset(spec.columns))

    def again(places: list[int], columns: Columns) -> list[TypedFiles]:
        redo = [
            RebuildTask(lake.uri, works[n].paths, spec, columns, works[n].marks, skips)
            for n in places
        ]
        return [one.written for one in tasks.run(redo, "agree on columns")]

    for _ in range(MOST_TRIES):
        samples.refresh()
        new = [
            RebuildTask(lake.uri, tuple(f.path for f in group), spec, known, dict(marks), skips)
            for group in _grouped(tail_files(samples, marks))
        ]
        done = tasks.run(new, f"rebuild {spec.name}")
        works.extend(new)
        parts.extend(one.written for one in done)
        apps |= {app for one in done for app in one.apps}
        marks = {app: at for app in apps if (at := samples.committed(app)) is not None}
        columns, parts = agreed(known, parts, again)
        known = Columns(columns, known.fixed)
        table.refresh()
        if any((table.committed(app) or 0) > at for app, at in marks.items()):
            continue  # the pipeline was faster
        try:
            _replace(table, spec, columns, parts, marks, quarantine)
        except CommitConflict as error:
            log.info("%s; looking again", error)
            continue
        _describe(table, spec)
        return Rebuilt(table.totals().rows, _refused(lake, spec.name), before, refused_before)
    raise LocalError(
        f"'{spec.name}' changes faster than it can be made again; stop `zenlake lake run` for it"
    )


def _describe(table: Table, spec: TypedTable) -> None:
    """Let the table say of which keys its rows are, now that it has no others."""
    for _ in range(MOST_TRIES):
        try:
            table.comment(spec.comments, described_as(spec))
        except CommitConflict as error:
            log.info("%s; looking again", error)
            table.refresh()
        else:
            return


def _replace(
    table: Table,
    spec: TypedTable,
    columns: Mapping[str, str],
    parts: list[TypedFiles],
    marks: Marks,
    quarantine: Quarantine,
) -> None:
    quarantine.settle(table)
    refused = [file.plain() for part in parts for file in part.refused]
    table.replace(
        [file for part in parts for file in part.files],
        typed_schema(spec, columns),
        {app: (table.committed(app), at) for app, at in marks.items()},
        {
            "kind": "append",
            "quarantine": refused,
            "moved": dict(marks),
            "rebuilt": table.version + 1,
        },
        table.version,
    )
    try:
        quarantine.settle(table)
    except CommitConflict as error:  # the pipeline settles it
        log.info("%s", error)


def _refused(lake: LakeLocation, name: str) -> int:
    """Rows of a table that are in quarantine."""
    table = Table.open(lake, QUARANTINED)
    if table is None:
        return 0
    columns = [
        read_table(table.place, file.path, QUARANTINE, ["table"])["table"] for file in table.files()
    ]
    return sum(pc.sum(pc.equal(column, name)).as_py() or 0 for column in columns)


def _grouped(files: list[DataFile]) -> Iterator[list[DataFile]]:
    held: list[DataFile] = []
    for file in files:
        if held and sum(one.size for one in held) + file.size > READ:
            yield held
            held = []
        held.append(file)
    if held:
        yield held
