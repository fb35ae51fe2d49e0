"""Tables on a store of objects as Spark sees them: a data source of ours, for Spark has none.

Spark as it comes from PyPI knows no `s3://`; what does would have to come from Maven. So its tasks
read the Parquet files through pyarrow, a task for each file. The options hold an address and the
names of files, never a credential: those are in the environment of each worker.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition

from zenlake.lake.decode.document_text import DOCUMENT_TEXT, document_text, is_binary
from zenlake.lake.query.plan_policy import FILES
from zenlake.lake.table.data_files import open_file, partition_texts
from zenlake.lake.table.location import LakeLocation
from zenlake.spark.jvm import active

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

    from zenlake.lake.table.table_version import TableVersion

__all__ = ["LakeFiles", "objects_of"]

BATCH: Final = 16 * 1024
"""Rows that a task hands to Spark at once."""


def objects_of(
    spark: SparkSession,
    table: TableVersion,
    schema: str,
    paths: Sequence[str],
    *,
    documents: bool = False,
) -> DataFrame:
    """These files of a table, with all its columns, read by tasks of Python.

    `documents`: only their rows of CBOR and MessagePack, with the column `document_text`.
    """
    # Spark looks for a source of that name in the active session: another one may have it.
    with active(spark):
        spark.dataSource.register(LakeFiles)
    return (
        spark.read.format(FILES)
        .schema(f"{schema}, `{DOCUMENT_TEXT}` string" if documents else schema)
        .option("documents", str(documents))
        .option("place", table.place.uri)
        .option("paths", json.dumps(list(paths)))
        .option("columns", base64.b64encode(table.schema.serialize().to_pybytes()).decode())
        .load()
    )


class LakeFiles(DataSource):
    """Files of one table, by name."""

    @classmethod
    def name(cls) -> str:
        """What stands in `format(…)`."""
        return FILES

    def reader(self, schema: StructType) -> DataSourceReader:
        """For `spark.read`; it always comes with the columns of the table."""
        options = self.options
        documents = options["documents"] == str(True)
        paths = json.loads(options["paths"])
        return _Reader(options["place"], paths, options["columns"], documents)


class _Reader(DataSourceReader):
    def __init__(self, place: str, paths: list[str], columns: str, documents: bool) -> None:
        self._place = place
        self._paths = paths
        self._columns = columns
        self._documents = documents

    def partitions(self) -> Sequence[InputPartition]:
        """A task for each file."""
        return [InputPartition(path) for path in self._paths]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        """The rows of a file, with the columns that it was written without."""
        place = LakeLocation(self._place)
        schema = pa.ipc.read_schema(pa.py_buffer(base64.b64decode(self._columns)))
        with open_file(place, partition.value, schema) as file:
            for rows in file.batches(BATCH):
                if self._documents:
                    rows = rows.take(pa.array(_binary_places(rows), pa.int64()))
                if rows.num_rows:
                    whole = completed(rows, schema, partition.value)
                    yield from (with_texts(whole) if self._documents else whole).to_batches()


def _binary_places(rows: pa.Table) -> list[int]:
    """Return the places of the rows whose payloads are CBOR or MessagePack."""
    return [n for n, encoding in enumerate(rows["encoding"].to_pylist()) if is_binary(encoding)]


def with_texts(rows: pa.Table) -> pa.Table:
    """Return rows of samples with the column `document_text`."""
    pairs = zip(rows["value"].to_pylist(), rows["encoding"].to_pylist(), strict=True)
    texts = [document_text(value, encoding) for value, encoding in pairs]
    return rows.append_column(DOCUMENT_TEXT, pa.array(texts, pa.string()))


def completed(rows: pa.Table, schema: pa.Schema, path: str) -> pa.Table:
    """Rows of a file as rows of its table: what the folder says, and nulls for newer columns."""
    partition_values = partition_texts(path)
    columns = []
    for field in schema:
        if field.name in rows.column_names:
            columns.append(rows[field.name])
        else:
            value = pa.scalar(partition_values.get(field.name), pa.string()).cast(field.type)
            columns.append(pa.repeat(value, rows.num_rows))
    return pa.Table.from_arrays(columns, schema=schema)
