"""Rows that tasks wrote as files, committed to a table in one version.

Tasks write files into the table's folder; nobody sees them before the driver commits them. A commit
of a stream moves an application of the Delta log on (`txn`), whose id is the id of the query and
whose version is the number of the batch. A batch that comes again, after a death between this
commit and Spark's own note of it, is found there, and its files are removed. The id of a query lies
in its checkpoint: a new checkpoint is a new query, whose batches count from zero and are all
committed.
"""

from __future__ import annotations

import logging
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final, final

import pyarrow as pa
import pyarrow.compute as pc
from deltalake.exceptions import DeltaError
from pyspark.sql.datasource import WriterCommitMessage

from zenlake.errors import ZError
from zenlake.lake.ingest.spark_tasks import R, Work
from zenlake.lake.ingest.widening import inexact_columns, widen
from zenlake.lake.model.column_comments import ABOUT
from zenlake.lake.model.column_types import kind_name
from zenlake.lake.spark_source.columns import (
    PARTITION_KINDS,
    Growth,
    column_named,
    fitted,
    growth,
    table_columns,
)
from zenlake.lake.spark_source.merge import is_comparable, rows_replaced
from zenlake.lake.spark_source.options import TableOptions
from zenlake.lake.table.data_files import DataFile, write_file
from zenlake.lake.table.delta import LOG, CommitConflict, Table
from zenlake.lake.table.location import LakeLocation
from zenlake.spark.options import OptionError

__all__ = ["CheckpointLost", "TableWriter", "WrittenFiles"]

log = logging.getLogger("zenlake.spark")

FILE_BYTES: Final = 64 << 20
"""Bytes of rows, as Arrow has them, after which a task writes files."""
MOST_FILES: Final = 10_000
"""Files that a task may write."""
OLD_SECONDS: Final = 600.0
"""Age of a file from which on a commit looks whether it is there."""
MOST_TRIES: Final = 8
"""Times that a commit tries again behind others."""

NO_COUNTS: Final[Mapping[str, int]] = MappingProxyType({})

QUERY: Final = "sql.streaming.queryId"
"""The local property in which Spark tells tasks whose batch they work on."""

OF_SAMPLES: Final = frozenset({"journal", "partition", "offset", "received"})
"""Columns of each table that the pipeline fills with samples."""


class CheckpointLost(ZError):
    """A batch whose number the table has had already, with other rows."""


@dataclass
class WrittenFiles(WriterCommitMessage):
    """What a task wrote: files, and the columns of the table that they were written for."""

    files: list[DataFile]
    columns: pa.Schema
    #: The id of the query, if the task was of a stream.
    query: str


@final
class TableWriter:
    """Writes the rows of one DataFrame, or of one stream; can be pickled."""

    def __init__(self, options: TableOptions, schema: Any, overwrite: bool) -> None:
        """Look at the table. Raises `OptionError` if it cannot have such rows.

        `schema`: of the DataFrame; `overwrite`: the rows replace all others.
        """
        self.options = options
        self.overwrite = overwrite
        self.columns = table_columns(schema)
        lake, self.name = options.place()
        self.lake = LakeLocation(lake)
        self.place = self.lake / self.name
        self.partitions = tuple(
            column_named(name, self.columns) for name in options.names("partitionBy")
        )
        table = Table.open(self.lake, self.name)
        if table is None:
            self._demand_free_name()
        else:
            self._demand_fitting(table)
            self.partitions = table.partitions
        self._demand_partitions()
        self.keys = self._merge_keys()
        self.kept = self.columns if table is None else self._kept(table)

    def _demand_free_name(self) -> None:
        """Raise `OptionError` if the pipeline of the lake may make a table of this name."""
        if self.name in ABOUT and (self.lake / "samples").exists(LOG):
            raise OptionError(f"table '{self.name}' is the pipeline's; choose another name")
        inside = [one for one in self.place.folders() if (self.place / one).exists(LOG)]
        if inside:
            raise OptionError(
                f"{self.place.uri} is a lake with the tables {', '.join(inside)}; write into a "
                f"folder of its own: {self.place.uri}/NAME"
            )

    def _demand_fitting(self, table: Table) -> Growth:
        """Raise `OptionError` if a table does not take rows of programs, or not these."""
        filler = _filler_of(table)
        if filler:
            raise OptionError(
                f"table '{self.name}' is filled by {filler}, which would not know of these rows; "
                "write into a table of your own"
            )
        by = self.options.names("partitionBy")
        if by and tuple(name.lower() for name in by) != tuple(
            name.lower() for name in table.partitions
        ):
            said = ", ".join(table.partitions) or "nothing"
            raise OptionError(
                f"partitionBy={self.options.text('partitionBy')!r}: table '{self.name}' is there, "
                f"and is partitioned by {said}; leave the option out"
            )
        for name in table.partitions:
            column_named(name, self.columns)
        may_grow = self.options.flag("mergeSchema", False)
        return growth(self.name, table.schema, self.columns, may_grow)

    def _demand_partitions(self) -> None:
        for name in self.partitions:
            kind = self.columns.field(column_named(name, self.columns)).type
            if kind not in PARTITION_KINDS:
                raise OptionError(
                    f"column '{name}' is {kind}, and files are partitioned by text, whole numbers, "
                    f"days and truth values; cast it, such as CAST({name} AS date)"
                )
        if self.partitions and len(self.partitions) == len(self.columns):
            raise OptionError("a table needs a column beside those that it is partitioned by")

    def _merge_keys(self) -> list[str]:
        names = self.options.names("mergeKeys")
        if names and self.overwrite:
            raise OptionError(
                "mergeKeys is for mode append: overwrite replaces all rows, whatever their keys"
            )
        keys = [column_named(name, self.columns) for name in names]
        for name in keys:
            kind = self.columns.field(name).type
            if not is_comparable(kind):
                raise OptionError(
                    f"mergeKeys: column '{name}' is {kind}, whose values are not compared; choose "
                    "columns of text, whole numbers, times, days or decimals"
                )
        return keys

    def _kept(self, table: Table) -> pa.Schema:
        """Return the columns of the files: those of the rows, as the table has or will have."""
        lacks = self._demand_fitting(table)
        has = table.schema
        kinds = {**{f.name: f.type for f in has}, **lacks.widened, **lacks.added}
        names = {name.lower(): name for name in kinds}
        return pa.schema(
            [pa.field(names[f.name.lower()], kinds[names[f.name.lower()]]) for f in self.columns]
        )

    # --- tasks ----------------------------------------------------------------------------------

    def write(self, batches: Iterator[Any]) -> WrittenFiles:
        """Write the rows of a task, some files at a time."""
        from pyspark import TaskContext

        files: list[DataFile] = []
        held: list[Any] = []
        size = 0
        try:
            for batch in batches:
                held.append(batch)
                size += batch.nbytes
                if size >= FILE_BYTES:
                    self._write_files(held, files)
                    held, size = [], 0
            self._write_files(held, files)
        except BaseException:
            self._remove(files)
            raise
        context = TaskContext.get()
        query = None if context is None else context.getLocalProperty(QUERY)
        return WrittenFiles(files, self.kept, query or "")

    def _write_files(self, batches: list[Any], files: list[DataFile]) -> None:
        """Write batches into a file for each value of the partition columns."""
        rows = fitted(pa.Table.from_batches(batches), self.kept) if batches else None
        if rows is None or not rows.num_rows:
            return
        by = [one.name for one in self.kept if one.name in self.partitions]
        for values, part in _parts(rows, list(self.partitions)) if by else [({}, rows)]:
            if len(files) >= MOST_FILES:
                raise OptionError(
                    f"a task has written {MOST_FILES:,} files: {', '.join(by)} has too many values "
                    "to partition by; choose a column with few, or sort the rows by it first"
                )
            files.append(write_file(self.place, part, values, uuid.uuid4().hex))

    # --- the driver -----------------------------------------------------------------------------

    def has_batch(self, batch: int, query: str) -> bool:
        """Return True if the table has a batch of a stream."""
        return self._moves(self._opened(), batch, query) is None

    def commit(
        self, messages: Sequence[Any], batch: int | None, counts: Mapping[str, int] = NO_COUNTS
    ) -> None:
        """Commit what all tasks wrote; `batch`: the number of a stream's batch.

        `counts`: by how much applications of the log that count something move on; where all rows
        are replaced, where they are then.
        """
        written = [one for one in messages if isinstance(one, WrittenFiles)]
        files = [file for one in written for file in one.files]
        self._demand_there(files)
        query = next((one.query for one in written if one.query), "")
        for left in reversed(range(MOST_TRIES)):
            try:
                table = self._opened()
            except CommitConflict as error:  # such as where another writer makes it, too
                if not left:
                    raise
                log.info("%s; looking again", error)
                continue
            moved = self._moves(table, batch, query)
            if moved is None:
                self._remove(files)
                return
            self._demand_as_written(table, written)
            for app, count in counts.items():
                at = table.committed(app)
                moved[app] = (at, count if self.overwrite else (at or 0) + count)
            try:
                self._commit(table, files, moved, query, batch, bool(counts))
            except CommitConflict as error:
                if not left:
                    raise
                log.info("%s; looking again", error)
            else:
                return

    def _demand_there(self, files: Sequence[DataFile]) -> None:
        """Raise `OSError` if a file is gone: vacuum takes old ones that no version has."""
        for file in files:
            if time.time() - file.modified / 1000 > OLD_SECONDS and not self.place.exists(
                file.path
            ):
                raise FileNotFoundError(
                    f"the file {file.path} of table '{self.name}' was written "
                    f"{(time.time() - file.modified / 1000) / 60:.0f} minutes ago, and vacuum has "
                    "taken it as a file that nobody needs; write fewer rows at once, or let "
                    "`history` in lake.json5 be longer than a write takes"
                )

    def abort(self, messages: Sequence[Any]) -> None:
        """Remove what tasks wrote, unless the table has it."""
        files = [file for one in messages if isinstance(one, WrittenFiles) for file in one.files]
        if not files:
            return
        # A commit that was cut off after it was made is aborted, too.
        table = Table.open(self.lake, self.name)
        there = set() if table is None else set(table.actions()["path"].to_pylist())
        self._remove([file for file in files if file.path not in there])

    def _remove(self, files: Sequence[DataFile]) -> None:
        for file in files:
            self.place.remove(file.path)

    def _opened(self) -> Table:
        """Open the table with all columns that the rows have; made if it is not there."""
        table = Table.open(self.lake, self.name)
        if table is None:
            try:
                table = Table.create(
                    self.lake,
                    self.name,
                    self.columns,
                    self.partitions,
                    self.options.text("description"),
                    by_programs=True,
                )
            except DeltaError as error:  # somebody else makes it
                raise CommitConflict(f"table '{self.name}': {error}") from error
        lacks = self._demand_fitting(table)
        if lacks.widened:
            self._widen(table, lacks.widened)
        if table.partitions != self.partitions:
            raise CommitConflict(
                f"table '{self.name}' was made meanwhile, partitioned by "
                f"{', '.join(table.partitions) or 'nothing'}; write again"
            )
        if lacks.added:
            table.grow(lacks.added)
        return table

    def _widen(self, table: Table, columns: Mapping[str, pa.DataType]) -> None:
        """Write all files of the table anew, with wider columns, in a version of its own."""
        kinds = {name: kind_name(kind) or "" for name, kind in columns.items()}
        kept = inexact_columns(table, kinds, _Here())
        if kept:
            name = min(kept)
            raise OptionError(
                f"column '{name}' of table '{self.name}' has whole numbers that no "
                f"{columns[name]} holds; cast yours to {table.schema.field(name).type}"
            )
        widen(table, kinds, _Here(), {})

    def _demand_as_written(self, table: Table, written: Sequence[WrittenFiles]) -> None:
        """Raise `CommitConflict` if the table has other types than the files were written with."""
        has = {field.name: field.type for field in table.schema}
        for one in written:
            for field in one.columns:
                now = has.get(field.name)
                if now is None or (
                    now != field.type and growth(self.name, table.schema, one.columns, True)
                ):
                    raise CommitConflict(
                        f"column '{field.name}' of table '{self.name}' is {now} now, and was "
                        f"{field.type} when the rows were written; write them again"
                    )

    def _moves(
        self, table: Table, batch: int | None, query: str
    ) -> dict[str, tuple[int | None, int]] | None:
        """Return how the commit moves applications on; None if the table has the rows."""
        app = self.options.text("txnAppId")
        if batch is None:
            number = self.options.version("txnVersion")
            if not app or number is None:
                return {}
            at = table.committed(app)
            return None if at is not None and at >= number else {app: (at, number)}
        if not query:
            raise OptionError(
                f"Spark did not tell tasks the id of the query ({QUERY}), so that a repeated batch "
                "would be there twice; write with foreachBatch, and the options txnAppId and "
                "txnVersion"
            )
        mine = f"{app}/{query}" if app else query
        at = table.committed(mine)
        if at == batch:
            log.info("batch %d of query %s is in table '%s' already", batch, query, self.name)
            return None
        if at is not None and at > batch:
            raise CheckpointLost(
                f"table '{self.name}' has batch {at} of query {query}, and this is batch {batch}: "
                "the checkpoint is an older copy, and its rows cannot be told from those that are "
                "there. Begin with a new checkpoint, from where the table ends"
            )
        moved = {mine: (at, batch)}
        if app:
            others = table.committed(app)
            if at is None and others is not None and others >= batch:
                raise CheckpointLost(
                    f"table '{self.name}' has batch {others} of '{app}', and this is batch {batch} "
                    f"of a new query: the checkpoint was lost. With another txnAppId the rows are "
                    "written, those that are there once more"
                )
            moved[app] = (others, batch)
        return moved

    def _commit(
        self,
        table: Table,
        files: list[DataFile],
        moved: dict[str, tuple[int | None, int]],
        query: str,
        batch: int | None,
        has_counts: bool,
    ) -> None:
        note: dict[str, Any] = {} if batch is None else {"query": query, "batch": batch}
        if self.overwrite:
            note["kind"] = "overwrite"
            table.replace(files, table.schema, moved, note, table.version)
            return
        note["kind"] = "append"
        # A batch without rows leaves no trace: if it comes again, it has none again.
        if not (files or has_counts or (moved and batch is None)):
            return
        if not self.keys:
            table.append(files, moved, note)
            return
        merged = rows_replaced(table, files, self.keys)
        try:
            table.append(
                [*files, *merged.files], moved, note, merged.removed, version=table.version
            )
        except CommitConflict:
            self._remove(merged.files)
            raise


@final
class _Here:
    """Runs work in this process, one item after another."""

    parallel = 1
    alive = True

    def run(self, items: Sequence[Work[R]], what: str) -> list[R]:
        """Do all of the work."""
        return [item.run() for item in items]


def _filler_of(table: Table) -> str:
    """Return what fills a table, if that is a part of the lake; empty for those of programs."""
    if table.is_by_programs:
        return ""
    if table.is_continuous:
        return f"the {table.described}"
    own = frozenset(table.schema.names) >= OF_SAMPLES
    named = table.name in ABOUT and table.described.startswith(ABOUT[table.name])
    if own or named or (table.name == "latest" and table.described.endswith(" buckets")):
        return "the pipeline of the lake"
    return ""


def _parts(rows: pa.Table, by: list[str]) -> Iterator[tuple[dict[str, str | None], pa.Table]]:
    """Give the rows of each combination of values of columns, without these columns."""
    numbered = rows.append_column("", pa.array(range(rows.num_rows), pa.int64()))
    groups = numbered.group_by(by, use_threads=False).aggregate([("", "list")])
    rest = rows.drop_columns(by)
    for n in range(groups.num_rows):
        values = {name: _text(groups[name][n].as_py()) for name in by}
        yield values, rest.take(pc.list_flatten(groups["_list"].slice(n, 1)))


def _text(value: object) -> str | None:
    """Return a value of a partition column as the log writes it; an empty text is null there."""
    if value is None or value == "":
        return None
    return str(value).lower() if isinstance(value, bool) else str(value)
