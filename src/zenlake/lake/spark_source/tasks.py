"""What the tasks of a read do: files of a table, or parts of them, as batches of Arrow.

A task is pickled and sent to another process. It names files; whoever runs it opens them.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import compress, pairwise
from math import inf
from typing import Any, Final, final

import pyarrow as pa
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema
from pyspark.sql.types import StructType

from zenlake.config.nearest import nearest
from zenlake.expr.pruning import may_hold
from zenlake.expr.tree import And, fields_of
from zenlake.lake.spark_source.filters import EVERY_ROW, PushedFilter
from zenlake.lake.spark_source.options import TableOptions
from zenlake.lake.table.data_files import DataFileReader, open_file
from zenlake.lake.table.delta import LOG, Table
from zenlake.lake.table.location import LakeLocation
from zenlake.spark.offsets import DataLoss
from zenlake.spark.options import OptionError

__all__ = [
    "FilePart",
    "TableColumns",
    "TableFile",
    "files_of",
    "open_table",
    "packed",
    "spark_columns",
    "table_schema",
]

BATCH_ROWS: Final = 16 * 1024
"""Rows that a task hands to Spark at once."""
TASK_BYTES: Final = 64 << 20
SMALLEST_TASK_BYTES: Final = 1 << 20
"""A task gets up to so many bytes of files; fewer, if there are cores with nothing to do."""


@dataclass(frozen=True, slots=True)
class TableFile:
    """A data file of a table, as the log knows it."""

    path: str
    size: int
    #: None where its writer did not count them.
    rows: int | None
    #: The values that its folder says, as text or as the columns have them.
    partition: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class FilePart:
    """The row groups of a file that begin at one of these bytes, as one task reads them."""

    file: TableFile
    start: int
    end: int


def files_of(actions: pa.Table) -> Iterator[TableFile]:
    """Give the files of actions in the order of their paths."""
    prefix = "partition."
    columns = [name for name in actions.column_names if name.startswith(prefix)]
    wanted = actions.select(["path", "size_bytes", "num_records", *columns])
    for row in wanted.sort_by("path").to_pylist():
        partition = {name.removeprefix(prefix): row[name] for name in columns}
        yield TableFile(row["path"], row["size_bytes"], row["num_records"], partition)


def open_table(options: TableOptions) -> Table:
    """Open the table that the options name. Raises `OptionError` if there is none."""
    lake, name = options.place()
    place = LakeLocation(lake)
    table = Table.open(place, name)
    if table is not None:
        return table
    inside = place if not options.text("table") else place / name
    names = place.folders() if options.text("table") else []
    meant = nearest(name, names)
    hint = f"; did you mean '{meant}'?" if meant else ""
    if not hint and not options.text("table"):
        below = (inside / name).folders()
        tables = [one for one in below if (inside / name / one).exists(LOG)]
        if tables:
            hint = f"; it is a lake: say which table, with option table: {', '.join(tables)}"
    raise OptionError(f"there is no table '{name}' in {lake}: no {LOG} there{hint}")


def table_schema(table: Table, names: Sequence[str]) -> StructType:
    """Return these columns of a table, or all of them, as Spark has them."""
    schema = table.schema
    for name in names:
        if name not in schema.names:
            raise _no_column(table, name)
    return spark_columns(pa.schema([schema.field(name) for name in names or schema.names]))


def spark_columns(schema: pa.Schema) -> StructType:
    """Return columns of a table as Spark has them, with their comments."""
    found = from_arrow_schema(pa.schema([field.remove_metadata() for field in schema]))
    for one, field in zip(found.fields, schema, strict=True):
        comment = (field.metadata or {}).get(b"comment")
        if comment:
            one.metadata = {"comment": comment.decode()}
    return found


def _no_column(table: Table, name: str) -> OptionError:
    names = table.schema.names
    meant = nearest(name, names)
    hint = f"; did you mean '{meant}'?" if meant else "."
    return OptionError(
        f"table '{table.name}' has no column '{name}'{hint} It has {', '.join(names)}"
    )


def packed(files: Iterable[TableFile]) -> list[list[FilePart]]:
    """Return the files of each task, in order: small ones together, large ones in parts."""
    every = list(files)
    share = sum(file.size for file in every) // (os.cpu_count() or 1)
    most = max(SMALLEST_TASK_BYTES, min(TASK_BYTES, share))
    tasks: list[list[FilePart]] = []
    room = 0
    for part in (part for file in every for part in _parts(file, most)):
        size = part.end - part.start
        if not tasks or size > room:
            tasks.append([])
            room = most
        tasks[-1].append(part)
        room -= size
    return tasks


def _parts(file: TableFile, most: int) -> Iterator[FilePart]:
    count = max(1, -(-file.size // most))
    bounds = [file.size * n // count for n in range(count + 1)]
    for start, end in pairwise(bounds):
        yield FilePart(file, start, end)


@final
class TableColumns:
    """Reads the columns of a schema from files of a table; it and its parts can be pickled."""

    def __init__(self, schema: StructType) -> None:
        """`schema`: the columns that Spark expects."""
        self.spark_schema = schema
        self.schema: pa.Schema = to_arrow_schema(schema, timezone="UTC")
        """The same, as the batches have to have them."""

    def demand_of(self, table: Table) -> None:
        """Raise `OptionError` unless the table has these columns, with these types."""
        for field in self.spark_schema.fields:
            there = table_schema(table, [field.name])[0]
            if there.dataType != field.dataType:
                raise OptionError(
                    f"column '{field.name}' of table '{table.name}' is "
                    f"{there.dataType.simpleString()}, not {field.dataType.simpleString()}; "
                    "cast it after the read, or start the query again if the column has changed"
                )
            if not field.nullable:
                raise OptionError(f"column '{field.name}' may be null here; leave out NOT NULL")

    def rows(
        self, place: str, parts: Iterable[FilePart], filter: PushedFilter = EVERY_ROW
    ) -> Iterator[pa.RecordBatch]:
        """Read the rows of files that meet a filter.

        `place`: the folder of the table. Raises `DataLoss` if a file is gone.
        """
        location = LakeLocation(place)
        for part in parts:
            with ExitStack() as stack:
                path = part.file.path
                try:
                    opened = stack.enter_context(open_file(location, path, self.schema))
                except FileNotFoundError as error:
                    raise DataLoss(
                        f"the file {path} of {place} is gone: no such file is kept for the version "
                        "that is read; read a newer version, or begin a stream with a new "
                        "checkpoint"
                    ) from error
                groups = _groups_meeting(opened, part, filter)
                for rows in self._pieces(opened, part.file, groups):
                    kept = filter.rows(self._completed(rows, part.file))
                    if kept.num_rows:
                        yield from kept.to_batches()

    def _pieces(
        self, opened: DataFileReader, file: TableFile, groups: list[int]
    ) -> Iterator[pa.Table]:
        """Read the columns that a file has, or, if it has none of them, rows without columns."""
        there = set(opened.names)
        names = [name for name in self.schema.names if name in there and name not in file.partition]
        if names:
            if groups:
                yield from opened.batches(BATCH_ROWS, names, groups)
            return
        for group in groups:
            left = opened.metadata.row_group(group).num_rows
            while left:
                count = min(left, BATCH_ROWS)
                yield pa.table({"": pa.nulls(count)})
                left -= count

    def _completed(self, rows: pa.Table, file: TableFile) -> pa.Table:
        """Add what the folder of a file says, and nulls for columns that it was written without."""
        columns = [
            rows[field.name]
            if field.name in rows.column_names
            else pa.repeat(_partition_value(file, field), rows.num_rows)
            for field in self.schema
        ]
        return pa.Table.from_arrays(columns, schema=self.schema)


def _partition_value(file: TableFile, field: pa.Field) -> pa.Scalar:
    value = file.partition.get(field.name)
    if isinstance(value, str) and not pa.types.is_string(field.type):
        # The log has text; none is written for null.
        return pa.scalar(value or None, pa.string()).cast(field.type)
    return pa.scalar(value, field.type)


def _groups_meeting(opened: DataFileReader, part: FilePart, filter: PushedFilter) -> list[int]:
    """Return the row groups of a part that may have a row that meets a filter."""
    node = And(filter.nodes)
    may = may_hold(node, opened.group_bounds(fields_of(node) - part.file.partition.keys()))
    every = range(opened.metadata.num_row_groups)
    found = every if may is None else compress(every, may.to_pylist())
    # A file may be longer than the log says: its last part has all that is left.
    end = inf if part.end >= part.file.size else part.end
    return [n for n in found if part.start <= _first_byte(opened.metadata, n) < end]


def _first_byte(metadata: Any, group: int) -> int:
    return int(metadata.row_group(group).column(0).data_page_offset)
