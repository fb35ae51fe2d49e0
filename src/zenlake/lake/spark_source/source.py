"""What Spark calls to read a table of a lake with `format("zenlake")`.

Objects of these classes are pickled and sent to other processes, so they hold options, names of
files and nothing that is open.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, final

from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    Filter,
    InputPartition,
)
from pyspark.sql.types import StructType

from zenlake.lake.spark_source.filters import EVERY_ROW, PushedFilter, pushed_filter
from zenlake.lake.spark_source.options import TableOptions, use_of
from zenlake.lake.spark_source.stream import LakeTableStream
from zenlake.lake.spark_source.tasks import TableColumns, files_of, open_table, packed, table_schema
from zenlake.lake.table.delta import Table
from zenlake.lake.table.pruning import files_meeting
from zenlake.spark.options import READ, STREAM, OptionError
from zenlake.spark.pushdown import PushFilters

__all__ = ["LakeTableReader", "LakeTableSource"]


@final
class LakeTableSource(DataSource):
    """The data source itself: says the columns of a table, and makes readers."""

    @classmethod
    def name(cls) -> str:
        """What stands in `format(…)`."""
        return "zenlake"

    def schema(self) -> StructType:
        """The columns of the version that is read."""
        options = TableOptions(self.options, use_of(self.options))
        return table_schema(_version_of(options), options.names("columns"))

    def reader(self, schema: StructType) -> DataSourceReader:
        """For `spark.read`."""
        return LakeTableReader(TableOptions(self.options, READ), TableColumns(schema))

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        """For `spark.readStream`."""
        return LakeTableStream(TableOptions(self.options, STREAM), TableColumns(schema))


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
        """How Spark hands over the WHERE clause, if its configuration has that switched on."""
        return PushFilters(self.take_filters)

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
