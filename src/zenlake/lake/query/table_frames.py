"""Tables of the lake as Spark sees them: exactly the files of one version, and of those only
the ones that a question can find something in.

Spark reads Parquet, not the Delta log, so the driver hands it the list of files: those whose
statistics in the log do not rule out what the question asks for (`lake/table/pruning`). So
what a pruned question costs does not grow with the table, and it is planned once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pyarrow as pa

from zenlake.lake.decode.document_text import BINARY_ENCODINGS, DOCUMENT_TEXT
from zenlake.lake.query.document_column import ENCODING_NAME
from zenlake.lake.table.table_version import TableVersion
from zenlake.spark import jvm

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["frame_of", "frame_with_documents", "spark_type"]

_SPARK_TYPES: Final = {
    pa.string(): "string",
    pa.large_string(): "string",
    pa.binary(): "binary",
    pa.bool_(): "boolean",
    pa.int8(): "tinyint",
    pa.int16(): "smallint",
    pa.int32(): "int",
    pa.int64(): "bigint",
    pa.float32(): "float",
    pa.float64(): "double",
    pa.date32(): "date",
}


def frame_of(spark: SparkSession, table: TableVersion, paths: list[str]) -> DataFrame:
    """These files of a table, with all its columns."""
    schema = _schema_of(table)
    if not paths:
        return jvm.make_frame(spark, [], schema)
    if table.place.remote:
        from zenlake.lake.query.object_source import objects_of

        return objects_of(spark, table, schema, paths)
    return (
        spark.read.schema(schema)
        .option("basePath", table.place.address(""))
        .parquet(*[table.place.address(path) for path in paths])
    )


def frame_with_documents(
    spark: SparkSession, table: TableVersion, paths: list[str], binary: list[str]
) -> DataFrame:
    """These files of a table of samples, with the column `document_text`.

    `binary`: those of the files that have rows of CBOR or MessagePack.
    """
    from pyspark.sql.functions import coalesce, expr, lit

    rows = frame_of(spark, table, paths)
    nothing = lit(None).cast("string").alias(DOCUMENT_TEXT)
    if not binary:
        return rows.select("*", nothing)
    from zenlake.lake.query.object_source import objects_of

    # Exactly the rows that the source leaves out (`is_binary`).
    others = ~coalesce(expr(ENCODING_NAME), lit("")).isin(*BINARY_ENCODINGS)
    return (
        rows.where(others)
        .select("*", nothing)
        .unionByName(objects_of(spark, table, _schema_of(table), binary, documents=True))
    )


def _schema_of(table: TableVersion) -> str:
    return ", ".join(f"`{f.name}` {spark_type(f.type)}" for f in table.schema)


def spark_type(kind: pa.DataType) -> str:
    """The type of a column in the words of Spark."""
    if pa.types.is_timestamp(kind):
        return "timestamp" if kind.tz else "timestamp_ntz"
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return f"array<{spark_type(kind.value_type)}>"
    if pa.types.is_map(kind):
        return f"map<{spark_type(kind.key_type)},{spark_type(kind.item_type)}>"
    if pa.types.is_struct(kind):
        return f"struct<{','.join(f'`{one.name}`:{spark_type(one.type)}' for one in kind)}>"
    if pa.types.is_decimal(kind):
        return f"decimal({kind.precision},{kind.scale})"
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or kind == pa.binary_view():
        return "binary"
    if kind == pa.string_view():
        return "string"
    return _SPARK_TYPES[kind]
