"""The table `rollups`: numbers of typed tables by minute and hour, for charts of long times.

A row is the count, sum, least and greatest of one field of one key in one minute or hour of the
samples' own time. It is made of parts: a fold adds parts for the rows that came since the last
one, wherever in time they belong, so late data needs no way of its own; parts add up in any order.
Merging files makes one row of the parts in them, and `zenlake sql` shows one row in any case.

How far it is stands in its own log, for each table and each partition of a journal, so a row
counts once. A table that was made again is counted again, and what it had before leaves in the
same commit.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, final

import pyarrow as pa
import pyarrow.compute as pc

from zenlake.journal.schema import INSTANT
from zenlake.lake.ingest.latest_overlay import tail_files
from zenlake.lake.ingest.quarantine import QuarantineRemoval
from zenlake.lake.ingest.spark_tasks import Tasks
from zenlake.lake.model.sample_rows import DAY
from zenlake.lake.model.typed_table import RESERVED, TypedTable
from zenlake.lake.table.data_files import DataFile, read_table, write_file
from zenlake.lake.table.delta import MADE, Table
from zenlake.lake.table.location import LakeLocation

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = [
    "IDENTITY",
    "ROLLUPS",
    "MergePartsTask",
    "RollUpTask",
    "RollupsTable",
    "added_up",
    "numbers_of",
]

ROLLUPS: Final = "rollups"
IDENTITY: Final = ("table", "key", "field", "width", "start")
WIDTHS: Final = ("minute", "hour")
MOST_FIELDS: Final = 100
"""Fields of one table that are counted."""
MOST_BYTES: Final = 64 * 1024 * 1024
"""Of files that one task reads."""

COLUMNS: Final = pa.schema(
    [
        ("table", pa.string()),
        ("key", pa.string()),
        ("field", pa.string()),
        ("width", pa.string()),
        ("start", INSTANT),
        ("count", pa.int64()),
        ("sum", pa.float64()),
        ("min", pa.float64()),
        ("max", pa.float64()),
        (DAY, pa.date32()),
    ]
)

_ADDED: Final = [("count", "sum"), ("sum", "sum"), ("min", "min"), ("max", "max")]


def numbers_of(schema: pa.Schema, own: frozenset[str]) -> dict[str, tuple[str, ...]]:
    """The fields of payloads that are numbers, inside of structs by `a.b`, and their paths."""
    paths: dict[str, tuple[str, ...]] = {}
    for field in schema:
        if field.name.lower() not in own and field.name != DAY:
            for path in _numbers((field.name,), field.type):
                if len(paths) < MOST_FIELDS:
                    paths[".".join(path)] = path
    return paths


def _numbers(path: tuple[str, ...], kind: pa.DataType) -> Iterator[tuple[str, ...]]:
    if pa.types.is_struct(kind):
        for inner in kind:
            yield from _numbers((*path, inner.name), inner.type)
    elif pa.types.is_integer(kind) or pa.types.is_floating(kind):
        yield path


@dataclass(frozen=True, slots=True)
class RollUpTask:
    """Files of a typed table, and which of their rows are new."""

    lake: str
    table: str
    paths: tuple[str, ...]
    fields: Mapping[str, tuple[str, ...]]
    ranges: Mapping[str, tuple[int, int]]
    """By journal and partition, `id/0`, from one offset up to another."""
    schema: pa.Schema
    """Of the files."""

    def run(self) -> list[DataFile]:
        """Count, and write the parts, a file for each day."""
        lake = LakeLocation(self.lake)
        place = lake / self.table
        parts = [
            part
            for path in self.paths
            for part in self._counted(self._new(read_table(place, path, self.schema)))
        ]
        if not parts:
            return []
        totals = added(pa.concat_tables(parts))
        return _written(lake / ROLLUPS, totals)

    def _new(self, rows: pa.Table) -> pa.Table:
        among = pa.chunked_array([pa.array([False] * rows.num_rows, pa.bool_())])
        for app, (start, end) in self.ranges.items():
            journal, _, partition = app.rpartition("/")
            in_range = pc.equal(rows["journal"], journal)
            in_range = pc.and_(in_range, pc.equal(rows["partition"], int(partition)))
            in_range = pc.and_(in_range, pc.greater_equal(rows["offset"], start))
            among = pc.or_(among, pc.and_(in_range, pc.less(rows["offset"], end)))
        return rows.filter(among)

    def _counted(self, rows: pa.Table) -> Iterator[pa.Table]:
        minutes = pc.floor_temporal(rows["time"], unit="minute")
        for field, path in self.fields.items():
            values = _at(rows, path)
            if values is None or not rows.num_rows:
                continue  # a file from before there was such a column
            # Times in nanoseconds and the like lose their last digits, and stop nobody.
            values = values.cast(pa.float64(), safe=False)
            is_number = pc.fill_null(pc.is_finite(values), False)
            grouped = pa.table({"key": rows["key"], "start": minutes, "value": values}).filter(
                is_number
            )
            done = grouped.group_by(["key", "start"]).aggregate(
                [("value", name) for name in ("count", "sum", "min", "max")]
            )
            made = {name: done[f"value_{name}"] for name in ("count", "sum", "min", "max")}
            for width in WIDTHS:
                start = pc.floor_temporal(done["start"], unit=width).cast(INSTANT)
                words = {"table": self.table, "field": field, "width": width}
                said = {
                    name: pa.repeat(pa.scalar(word), done.num_rows) for name, word in words.items()
                }
                columns = {**said, "key": done["key"].cast(pa.string()), "start": start, **made}
                yield pa.table({name: columns[name] for name in COLUMNS.names if name != DAY})


def _at(rows: pa.Table, path: tuple[str, ...]) -> Any:
    if path[0] not in rows.column_names:
        return None
    try:
        return rows[path[0]] if len(path) == 1 else pc.struct_field(rows[path[0]], list(path[1:]))
    except (pa.ArrowInvalid, KeyError):
        return None


def added(parts: pa.Table) -> pa.Table:
    """One row of all parts that are of the same, in order."""
    done = parts.group_by(list(IDENTITY)).aggregate(_ADDED)
    named = [*IDENTITY, *(name for name, _ in _ADDED)]
    totals = done.select([*IDENTITY, *(f"{name}_{how}" for name, how in _ADDED)])
    return totals.rename_columns(named).sort_by(
        [(name, "ascending") for name in ("table", "field", "key", "width", "start")]
    )


def _written(place: LakeLocation, rows: pa.Table) -> list[DataFile]:
    days = pc.cast(pc.floor_temporal(rows["start"], unit="day"), pa.date32())
    return [
        write_file(place, rows.filter(pc.equal(days, day)), {DAY: str(day)}, uuid.uuid4().hex)
        for day in sorted(pc.unique(days).to_pylist())
    ]


@dataclass(frozen=True, slots=True)
class MergePartsTask:
    """Files of `rollups`, of one day, that become one."""

    table: str
    partition: Mapping[str, str | None]
    paths: tuple[str, ...]
    schema: pa.Schema

    def run(self) -> DataFile:
        """Add up the parts."""
        place = LakeLocation(self.table)
        names = [name for name in COLUMNS.names if name != DAY]
        parts = pa.concat_tables(
            [read_table(place, path, self.schema, names) for path in self.paths]
        )
        return write_file(place, added(parts), self.partition, uuid.uuid4().hex)


def added_up(frame: DataFrame) -> DataFrame:
    """The table as a question sees it: one row of all parts that are of the same."""
    from pyspark.sql import functions

    return (
        frame.groupBy(*IDENTITY, DAY)
        .agg(*[getattr(functions, how)(name).alias(name) for name, how in _ADDED])
        .select(*COLUMNS.names)
    )


@final
class RollupsTable:
    """Keeps `rollups` as far as the typed tables are."""

    def __init__(self, lake: LakeLocation, tasks: Tasks, every: float) -> None:
        """The table is made if it is not there."""
        self._lake = lake
        self._tasks = tasks
        self._every = every
        self._done = float("-inf")
        self._specs: Mapping[str, tuple[TypedTable, Table]] = {}
        self._apps: tuple[str, ...] = ()
        self.table = Table.create(lake, ROLLUPS, COLUMNS, DAY)

    def of(self, specs: Mapping[str, tuple[TypedTable, Table]], apps: tuple[str, ...]) -> None:
        """Say which tables there are, and by which names their logs know the journal."""
        self._specs, self._apps = specs, apps

    def due(self, now: float) -> bool:
        """Whether it is time, and something is new."""
        return now - self._done >= self._every and any(
            self._is_behind(table) for _, table in self._specs.values()
        )

    def _is_behind(self, table: Table) -> bool:
        return self._is_new(table) or any(self._missing(table).values())

    def _is_new(self, table: Table) -> bool:
        """Whether the table was made again since."""
        return self.table.committed(f"{table.name}/{MADE}") != table.committed(MADE)

    def _missing(self, table: Table) -> dict[str, tuple[int, int]]:
        missing = {}
        for app in self._apps:
            start = self.table.committed(f"{table.name}/{app}") or 0
            end = table.committed(app) or 0
            if start < end:
                missing[app] = start, end
        return missing

    def fold(self, now: float) -> int | None:
        """Add what came; gives the version, None if there was nothing to do."""
        self.table.refresh()
        self._done = now
        files: list[DataFile] = []
        removed: list[DataFile] = []
        moved: dict[str, tuple[int | None, int]] = {}
        works: list[RollUpTask] = []
        for spec, table in self._specs.values():
            missing = self._missing(table)
            if self._is_new(table):
                if removed:
                    continue  # one table at a time: they share files
                note = table.last_note("append") or {}
                apps = {*self._apps, *note.get("moved", {})}
                missing = {app: (0, at) for app in apps if (at := table.committed(app))}
                files, removed = self._without(table.name)
                made = f"{table.name}/{MADE}"
                moved[made] = self.table.committed(made), table.committed(MADE) or 0
            for app, (_, end) in missing.items():
                name = f"{table.name}/{app}"
                moved[name] = self.table.committed(name), end
            works += self._works(spec, table, missing)
        if not moved:
            return None
        for part in self._tasks.run(works, "rollups") if works else ():
            files += part
        self.table.append(files, moved, {"kind": "append"}, removed)
        return self.table.version

    def _works(
        self, spec: TypedTable, table: Table, ranges: Mapping[str, tuple[int, int]]
    ) -> Iterator[RollUpTask]:
        own = frozenset(name.lower() for name in (*RESERVED, *spec.chunks))
        fields = numbers_of(table.schema, own)
        if not ranges or not fields:
            return
        held: list[str] = []
        size = 0
        schema = table.file_schema
        for file in tail_files(table, {app: start for app, (start, _) in ranges.items()}):
            if held and size + file.size > MOST_BYTES:
                yield RollUpTask(self._lake.uri, table.name, tuple(held), fields, ranges, schema)
                held, size = [], 0
            held.append(file.path)
            size += file.size
        if held:
            yield RollUpTask(self._lake.uri, table.name, tuple(held), fields, ranges, schema)

    def _without(self, name: str) -> tuple[list[DataFile], list[DataFile]]:
        """The files with rows of a table, and what they are without these."""
        there = self.table.files()
        schema = self.table.file_schema
        works = [QuarantineRemoval(self.table.place.uri, file, name, schema) for file in there]
        done = self._tasks.run(works, "rollups of before") if works else []
        changed = [(file, left) for file, (is_it, left) in zip(there, done, strict=True) if is_it]
        return [left for _, left in changed if left is not None], [file for file, _ in changed]
