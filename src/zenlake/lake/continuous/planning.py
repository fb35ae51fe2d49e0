"""Judges the definition of a view or an alert, and has Spark plan it over streams.

    planned = plan_definition(lake, definition, journals, aside)

All of that asks Spark, which nobody can break off while it plans: `SqlExecutor.judged` does it in
the turn of the owner and for so long as planning may take. What was planned starts at once
(`continuous/running_query`).
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from zenlake.errors import LocalError, ZError
from zenlake.lake.continuous.generation import (
    Generation,
    known_generation,
    next_generation,
    read_by,
)
from zenlake.lake.continuous.query_shape import (
    ResultShape,
    conditional,
    needed_columns,
    reads_every_column,
    shape_of,
)
from zenlake.lake.continuous.result_table import app_of, columns_of, flattened
from zenlake.lake.continuous.table_stream import TableRowsSource, stream_folder
from zenlake.lake.model.continuous_query import ContinuousQuery
from zenlake.lake.query.document_column import DOCUMENT, is_document_named
from zenlake.lake.query.executor import one_line
from zenlake.lake.query.planner import references
from zenlake.lake.query.row_filter import visible_rows
from zenlake.lake.query.table_frames import spark_type
from zenlake.lake.table.delta import Table
from zenlake.spark.jvm import active, is_append_possible
from zenlake.spark.session import session_conf

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from zenlake.journal import Journal
    from zenlake.lake.query.lake import Lake

__all__ = [
    "LATEST",
    "JudgedQuery",
    "PlannedQuery",
    "PlanningFailed",
    "judge_definition",
    "plan_definition",
    "refused_by",
]

LATEST: Final = "latest"
"""The table that is no stream: streams are joined with it."""
SAMPLE_COLUMNS: Final = frozenset({"journal", "partition", "offset", "received", "key"})
"""The columns that a table of samples has."""
CONF: Final = {
    # One task for each is plenty: what comes in a second is little.
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.streaming.minBatchesToRetain": "10",
    "spark.sql.streaming.noDataProgressEventInterval": "1000",
    # Without it `stop` waits for ever for a batch that does not answer.
    "spark.sql.streaming.stopTimeout": "30s",
}


@dataclass(frozen=True, slots=True)
class JudgedQuery:
    """A definition that may run: judged as every question is, over the tables as they are."""

    shape: ResultShape
    columns: pa.Schema
    """The columns of the rows that it finds."""
    tables: Mapping[str, pa.Schema]
    """The tables that it names, with the columns that it needs."""


@dataclass(frozen=True, slots=True)
class PlannedQuery:
    """A definition that Spark has planned over streams, and that only has to be started."""

    judged: JudgedQuery
    frame: DataFrame
    replaces_groups: bool
    """Whether groups never end, so that their newest values take the place of older ones."""
    generation: Generation
    tables: Mapping[str, pa.Schema]
    """The columns that are read of each table."""
    grows: bool = False
    """True if columns that a table gets later belong into the rows of the query."""


class PlanningFailed(ZError):
    """Spark could not plan a definition, for a reason that is not in its text."""


def judge_definition(lake: Lake, definition: ContinuousQuery) -> JudgedQuery:
    """Return what is known of a definition once it is judged; raises if it may not run.

    Nothing runs: the question is read and planned over the tables as they are.
    """
    from pyspark.errors import PySparkException

    shape = shape_of(definition.sql)
    # As it was written first: what is refused is named as its author knows it.
    try:
        frame = lake.judged(definition.sql, definition.access)
        tables = _named_tables(lake, definition.sql)
        columns = columns_of(flattened(frame))
        if definition.kind == "alert":
            flattened(lake.judged(conditional(definition.sql), definition.access))
    except PySparkException as error:
        raise refused_by(error) from error
    return JudgedQuery(shape, columns, tables)


def plan_definition(
    lake: Lake, definition: ContinuousQuery, journals: Sequence[Journal], aside: Path
) -> PlannedQuery:
    """Return a definition planned over streams, whose files are put into `aside`; raises if it
    may not run.

    Spark is asked for all of that: this is for `SqlExecutor.judged`.
    """
    from pyspark.errors import PySparkException

    judged = judge_definition(lake, definition)
    shape = judged.shape
    known = known_generation(aside)
    generation, tables, why = next_generation(known, judged.tables, stateful=shape.stateful)
    try:
        frame = _streaming_frame(lake, definition, shape, tables, journals, generation, aside)
        replaces = shape.grouped and not is_append_possible(frame)
    except PySparkException as error:
        raise refused_by(error) from error
    if known is not None and why and not replaces:
        generation = _after(lake, definition, known, generation, aside, why)
    grows = not shape.stateful and reads_every_column(definition.sql)
    return PlannedQuery(judged, frame, replaces, generation, tables, grows)


def refused_by(error: Exception) -> ZError:
    """Return the error for what Spark refuses: `LocalError` if the text of the query is why."""
    from pyspark.errors import (
        AnalysisException,
        ArithmeticException,
        IllegalArgumentException,
        NumberFormatException,
    )

    own = (AnalysisException, ArithmeticException, IllegalArgumentException, NumberFormatException)
    kind = LocalError if isinstance(error, own) else PlanningFailed
    return kind(one_line(str(error)))


def _after(
    lake: Lake,
    definition: ContinuousQuery,
    known: Generation,
    generation: Generation,
    aside: Path,
    why: str,
) -> Generation:
    """Return a generation that publishes what comes after the results of the known one."""
    results = Table.open(lake.place, definition.name)
    reached = None if results is None else results.committed(known.app(app_of(definition)))
    try:
        read = read_by(known, aside, reached, [name for name in known.tables if name != LATEST])
    except (LookupError, OSError, ValueError) as error:
        kind, name = definition.kind, definition.name
        raise LocalError(
            f"{why}, and it is not known which rows the {kind} had read ({error!r}); drop it and "
            f"create it again: zenlake lake {kind} drop {name}"
        ) from error
    return replace(generation, read=read)


def _named_tables(lake: Lake, sql: str) -> dict[str, pa.Schema]:
    """Return the tables that a question names, with the columns that it may read; raises if none
    of them grows."""
    question, named = references(lake.catalog, sql)
    own = {name: table.schema.names for name, table in named.items()}
    if is_document_named(sql, question.trees, own):
        raise LocalError(
            f"views and alerts have no column '{DOCUMENT}'; write "
            "get_json_object(cast(value AS string), '$.percent')"
        )
    for name, table in named.items():
        if name != LATEST and (
            table.is_continuous or not set(table.schema.names) >= SAMPLE_COLUMNS
        ):
            raise LocalError(
                f"'{name}' is no table of samples; views and alerts are about samples, the "
                "typed tables, and latest beside them"
            )
    tables = {name: _needed(sql, table.schema) for name, table in named.items()}
    if not tables.keys() - {LATEST}:
        raise LocalError(
            "the question is about nothing that grows: select from samples or a typed table; "
            "latest can only be joined with them"
        )
    return tables


def _needed(sql: str, schema: pa.Schema) -> pa.Schema:
    return pa.schema([schema.field(name) for name in needed_columns(sql, schema.names)])


def _streaming_frame(
    lake: Lake,
    definition: ContinuousQuery,
    shape: ResultShape,
    tables: Mapping[str, pa.Schema],
    journals: Sequence[Journal],
    generation: Generation,
    aside: Path,
) -> DataFrame:
    """Return the question over streams instead of tables, in a session of its own."""
    spark = lake.spark.newSession()
    for name, value in (session_conf() | CONF).items():
        spark.conf.set(name, value)
    with active(spark):
        spark.dataSource.register(TableRowsSource)
    folders = json.dumps([journal.path for journal in journals])
    for name, schema in tables.items():
        columns = ", ".join(f"`{f.name}` {spark_type(f.type)}" for f in schema)
        if name == LATEST:
            reader: Any = spark.read.format("zenlake-newest").schema(columns)
            options = {"lake": lake.place.uri, "journals": folders}
            newest = reader.options(**options).load()
            visible_rows(newest, definition.access).createOrReplaceTempView(name)
            continue
        # A file for each batch, so that the number of the one is that of the other.
        stream = spark.readStream.schema(columns).option("maxFilesPerTrigger", 1)
        stream = stream.option("cleanSource", "delete")
        rows = stream.parquet(str(stream_folder(generation.folder(aside), name)))
        # Beneath all else: not even a watermark is moved by rows that the owner may not see.
        frame = visible_rows(rows, definition.access)
        if shape.grouped or shape.joined:
            frame = frame.withWatermark("time", f"{definition.late} seconds")
        frame.createOrReplaceTempView(name)
    alert = definition.kind == "alert"
    return flattened(spark.sql(conditional(definition.sql) if alert else definition.sql))
