"""Chosen files of a table, read by tasks of Spark and written anew.

paths = touched(actions, "id", ids)                # by the statistics in the log
old = rows_of(spark, table, paths, schema)
files = written(old.join(…), table.place)          # committed by the caller
"""

from __future__ import annotations

import json
import pickle
from base64 import b64decode, b64encode
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Final, final

import pyarrow as pa
from pyspark.sql.datasource import (
    DataSource,
    DataSourceArrowWriter,
    DataSourceReader,
    InputPartition,
    WriterCommitMessage,
)
from pyspark.sql.types import StructType

from zenlake.lake.spark_source.options import TableOptions
from zenlake.lake.spark_source.table_writer import TableWriter, WrittenFiles
from zenlake.lake.spark_source.tasks import FilePart, TableColumns, files_of, packed
from zenlake.lake.table.data_files import DataFile
from zenlake.spark import jvm
from zenlake.spark.options import WRITE

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from zenlake.lake.table.delta import Table
    from zenlake.lake.table.location import LakeLocation

__all__ = ["TableFilesSource", "rows_of", "small_files", "touched", "written"]

FORMAT: Final = "zenlake-files"

SMALL_BYTES: Final = 8 << 20
MOST_SMALL: Final = 32
"""So many small files are merged into few."""


def touched(actions: pa.Table, column: str, values: Sequence[Any]) -> set[str]:
    """Return the files that may have one of these values in a column.

    `values`: sorted. A file of whose column the log says nothing may have any.
    """
    paths = actions["path"].to_pylist()
    if f"partition.{column}" in actions.column_names:
        parts = actions[f"partition.{column}"].to_pylist()
        wanted = set(values)
        return {path for path, part in zip(paths, parts, strict=True) if part in wanted}
    low, high = f"min.{column}", f"max.{column}"
    if not {low, high} <= set(actions.column_names):
        return set(paths)
    bounds = zip(paths, actions[low].to_pylist(), actions[high].to_pylist(), strict=True)
    return {path for path, least, most in bounds if _may_have(least, most, values)}


def _may_have(least: Any, most: Any, values: Sequence[Any]) -> bool:
    if least is None or most is None:
        return True
    try:
        first = bisect_left(values, least)
        return first < len(values) and bool(values[first] <= most)
    except TypeError:  # a bound of another kind than the values
        return True


def small_files(actions: pa.Table) -> set[str]:
    """Return the small files of a table if there are many, so that the next rewrite merges them."""
    sizes = zip(actions["path"].to_pylist(), actions["size_bytes"].to_pylist(), strict=True)
    small = {path for path, size in sizes if size < SMALL_BYTES}
    return small if len(small) > MOST_SMALL else set()


def rows_of(spark: SparkSession, table: Table, paths: set[str], schema: StructType) -> DataFrame:
    """Return the rows of files of a table, which tasks read."""
    chosen = [one for one in files_of(table.actions()) if one.path in paths]
    if not chosen:
        return jvm.make_frame(spark, [], schema)
    tasks = b64encode(pickle.dumps(packed(chosen))).decode()
    reader = spark.read.format(FORMAT).schema(schema)
    return reader.options(place=table.place.uri, tasks=tasks).load()


def written(frame: DataFrame, place: LakeLocation) -> list[DataFile]:
    """Let tasks write the rows of a frame into files of a table; nobody sees them before a
    commit."""
    with TemporaryDirectory(prefix="zenlake-") as folder:
        page = Path(folder) / "files.json"
        writer = frame.write.format(FORMAT).mode("append")
        writer.options(place=place.uri, page=str(page)).save()
        return [DataFile.of(one) for one in json.loads(page.read_text("utf-8"))]


@final
class TableFilesSource(DataSource):
    """Files of a table as Spark reads and writes them: for the merges of this process alone."""

    @classmethod
    def name(cls) -> str:
        """What stands in `format(…)`."""
        return FORMAT

    def reader(self, schema: StructType) -> TableFilesReader:
        """For `spark.read`."""
        tasks = pickle.loads(b64decode(self.options["tasks"]))
        return TableFilesReader(self.options["place"], tasks, TableColumns(schema))

    def writer(self, schema: StructType, overwrite: bool) -> TableFilesWriter:
        """For `df.write`."""
        options = TableOptions({"path": self.options["place"]}, WRITE)
        return TableFilesWriter(TableWriter(options, schema, overwrite), self.options["page"])


@final
class TableFilesReader(DataSourceReader):
    """Reads chosen files of a table."""

    def __init__(self, place: str, tasks: list[list[FilePart]], columns: TableColumns) -> None:
        """`place`: the folder of the table."""
        self.place = place
        self.tasks = tasks
        self.columns = columns

    def partitions(self) -> Sequence[InputPartition]:
        """The files of each task."""
        return [InputPartition(parts) for parts in self.tasks]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        """The rows of one task."""
        return self.columns.rows(self.place, partition.value)


@final
class TableFilesWriter(DataSourceArrowWriter):
    """Writes files of a table, and says on a page in a folder of the driver which they are."""

    def __init__(self, table: TableWriter, page: str) -> None:
        """`page`: where the driver looks for them."""
        self.table = table
        self.page = page

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WrittenFiles:
        """Write the rows of a task."""
        return self.table.write(iterator)

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        """Tell the driver which files there are."""
        tasks = [one for one in messages if isinstance(one, WrittenFiles)]
        files = [file.plain() for one in tasks for file in one.files]
        Path(self.page).write_text(json.dumps(files), "utf-8")

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        """Remove what tasks wrote."""
        self.table.abort(messages)
