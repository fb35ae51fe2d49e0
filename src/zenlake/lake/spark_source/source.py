"""What Spark calls to read and write a table of a lake with `format("zenlake")`.

Objects of these classes are pickled and sent to other processes, so they hold options, names of
files and nothing that is open.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Protocol, final

from pyspark.sql.datasource import (
    DataSource,
    DataSourceArrowWriter,
    DataSourceReader,
    DataSourceStreamArrowWriter,
    DataSourceStreamReader,
    Filter,
    InputPartition,
    WriterCommitMessage,
)
from pyspark.sql.types import StructType

from zenlake.lake.spark_source.filters import EVERY_ROW, PushedFilter, pushed_filter
from zenlake.lake.spark_source.options import TableOptions, use_of
from zenlake.lake.spark_source.stream import LakeTableStream
from zenlake.lake.spark_source.table_writer import TableWriter
from zenlake.lake.spark_source.tasks import TableColumns, files_of, open_table, packed, table_schema
from zenlake.lake.table.delta import Table
from zenlake.lake.table.pruning import files_meeting
from zenlake.spark.options import FILTER_PUSHDOWN, READ, STREAM, WRITE, WRITE_STREAM, OptionError
from zenlake.spark.pushdown import PushFilters

__all__ = ["LakeTableReader", "LakeTableSource", "LakeTableStreamWriter", "LakeTableWriter"]


class LakeTableSource(DataSource):
    """The data source itself: says the columns of a table, and makes readers and writers."""

    format_name = "zenlake"
    path = ""
    """The path of the table that this source is of; empty where an option says so."""

    @classmethod
    def name(cls) -> str:
        """What stands in `format(…)`."""
        return cls.format_name

    def schema(self) -> StructType:
        """The columns of the version that is read."""
        if "provider" in self.options:
            raise OptionError(
                "Spark forgets the options of a table in its catalog; let the session know the "
                "tables of a lake by zenlake.lake.register_tables(spark, 'path/of/lake')"
            )
        options = self._options(use_of(self.options))
        return table_schema(_version_of(options), options.names("columns"))

    def reader(self, schema: StructType) -> DataSourceReader:
        """For `spark.read`."""
        return LakeTableReader(self._options(READ), TableColumns(schema))

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        """For `spark.readStream`."""
        return LakeTableStream(self._options(STREAM), TableColumns(schema))

    def writer(self, schema: StructType, overwrite: bool) -> LakeTableWriter:
        """For `df.write`."""
        return LakeTableWriter(TableWriter(self._options(WRITE), schema, overwrite))

    def streamWriter(self, schema: StructType, overwrite: bool) -> LakeTableStreamWriter:
        """For `df.writeStream`."""
        return LakeTableStreamWriter(TableWriter(self._options(WRITE_STREAM), schema, overwrite))

    def _options(self, use: str) -> TableOptions:
        given = dict(self.options)
        if self.path:
            if "path" in self.options or "table" in self.options:
                raise OptionError(f"'{self.format_name}' is a table; leave the option path out")
            given["path"] = self.path
        return TableOptions(given, use)


@final
class LakeTableReader(DataSourceReader):
    """Reads one version of a table."""

    def __init__(self, options: TableOptions, columns: TableColumns) -> None:
        """`columns`: those that Spark expects."""
        self.options = options
        self.columns = columns
        self.filter = EVERY_ROW
        """What is decided here of the WHERE clause."""

    @property
    def pushFilters(self) -> Callable[[list[Filter]], Iterable[Filter]]:
        """How Spark hands over the WHERE clause, if that is switched on."""
        return PushFilters(self.take_filters, self.options.flag(FILTER_PUSHDOWN.name, False))

    def take_filters(self, filters: list[Filter]) -> list[Filter]:
        """Take over what files decide. Return the filters that Spark still applies."""
        found = [(one, pushed_filter(one, self.columns.schema)) for one in filters]
        taken = [mine for _, mine in found if mine is not None]
        self.filter = PushedFilter.joined([self.filter, *taken])
        return [one for one, mine in found if mine is None]

    def partitions(self) -> Sequence[InputPartition]:
        """The tasks: of files whose statistics do not rule out a wanted row."""
        table = _version_of(self.options)
        self.columns.demand_of(table)
        files = files_of(files_meeting(table.actions(), self.filter.nodes))
        return [InputPartition((table.place.uri, parts)) for parts in packed(files)]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        """The rows of one task."""
        # Spark makes one task of an empty list.
        if partition.value is None:
            return iter(())
        place, parts = partition.value
        return self.columns.rows(place, parts, self.filter)


class BatchWriter(Protocol):
    """Writes what one DataFrame, or one micro-batch after another, adds to a table."""

    def write(self, batches: Iterator[Any], /) -> WriterCommitMessage:
        """Write the rows of a task."""

    def commit(self, messages: Sequence[Any], batch: int | None, /) -> None:
        """Commit what all tasks wrote; `batch`: the number of a stream's batch."""

    def abort(self, messages: Sequence[Any], /) -> None:
        """Remove what tasks wrote."""


@final
class LakeTableWriter(DataSourceArrowWriter):
    """Writes a DataFrame: tasks write files, the driver commits them in one version."""

    def __init__(self, table: BatchWriter) -> None:
        """`table`: which has been looked at."""
        self.table = table

    def write(self, iterator: Iterator[Any]) -> WriterCommitMessage:
        """Write the rows of a task."""
        return self.table.write(iterator)

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        """Commit what all tasks wrote."""
        self.table.commit(messages, None)

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        """Remove what tasks wrote."""
        self.table.abort(messages)


@final
class LakeTableStreamWriter(DataSourceStreamArrowWriter):
    """Writes a stream: each micro-batch is one version of the table."""

    def __init__(self, table: BatchWriter) -> None:
        """`table`: which has been looked at."""
        self.table = table

    def write(self, iterator: Iterator[Any]) -> WriterCommitMessage:
        """Write the rows of a task."""
        return self.table.write(iterator)

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        """Commit what all tasks of a micro-batch wrote, unless the table has it."""
        self.table.commit(messages, batchId)

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        """Remove what tasks wrote."""
        self.table.abort(messages)


def _version_of(options: TableOptions) -> Table:
    """Open a table at the version that the options say."""
    table = open_table(options)
    if options.use != READ:
        return table
    version, instant = options.version("version"), options.time("timestamp")
    if version is not None:
        table.at(version)
    elif instant is not None and not table.at_time(instant):
        raise OptionError(f"timestamp={options.text('timestamp')!r}: there was no table yet")
    return table
