"""What a file of SQL defines, read by Spark's own parser.

    CREATE STREAMING TABLE low AS SELECT id, percent FROM STREAM battery WHERE percent < 20;
    CREATE MATERIALIZED VIEW newest AS SELECT id, max(time) AS time FROM pose GROUP BY id;
    CREATE TEMPORARY VIEW moving AS SELECT …;
    CREATE STREAMING TABLE all_low;
    CREATE FLOW night AS INSERT INTO all_low BY NAME SELECT … FROM STREAM …
    CREATE FLOW moves AS AUTO CDC INTO places FROM STREAM seen KEYS (id) SEQUENCE BY time

Each statement becomes the output and the flow that `pyspark.pipelines` makes of a decorated
function.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from pyspark.errors import PySparkException
from pyspark.pipelines.flow import AutoCdcFlow, Flow
from pyspark.pipelines.output import MaterializedView, StreamingTable, TemporaryView
from pyspark.pipelines.source_code_location import SourceCodeLocation

from zenlake.lake.pipelines.definitions import PipelineDefinitions, PipelineError
from zenlake.lake.query.executor import one_line
from zenlake.spark import jvm

if TYPE_CHECKING:
    from pyspark.sql import Column, SparkSession

__all__ = ["read_sql"]

_STATEMENTS: Final = (
    "CREATE STREAMING TABLE, CREATE MATERIALIZED VIEW, CREATE TEMPORARY VIEW or CREATE FLOW"
)
_TABLES: Final[dict[str, tuple[type[StreamingTable | MaterializedView], bool]]] = {
    "CreateStreamingTable": (StreamingTable, False),
    "CreateStreamingTableAsSelect": (StreamingTable, True),
    "CreateMaterializedViewAsSelect": (MaterializedView, True),
    "CreateStreamingTableAutoCdc": (StreamingTable, False),
}


def read_sql(spark: SparkSession, definitions: PipelineDefinitions, text: str, file: Path) -> None:
    """Add what the statements of a file define; raises `PipelineError` with its line."""
    try:
        statements = jvm.pipeline_statements(spark, text, str(file))
    except PySparkException as error:
        raise PipelineError(one_line(str(error)), str(file)) from error
    for plan, line in statements:
        at = SourceCodeLocation(filename=str(file), line_number=line)
        kind = plan.getClass().getSimpleName()
        if kind in _TABLES:
            _table(spark, definitions, plan, kind, at)
        elif kind == "CreateViewCommand":
            _view(spark, definitions, plan, at)
        elif kind == "CreateFlowCommand":
            _flow(spark, definitions, plan, at)
        else:
            raise PipelineError(f"a pipeline has no such statement; write {_STATEMENTS}", at)


def _table(
    spark: SparkSession,
    definitions: PipelineDefinitions,
    plan: Any,
    kind: str,
    at: SourceCodeLocation,
) -> None:
    output, has_query = _TABLES[kind]
    name, told = _name(plan.name()), plan.tableSpec()
    columns, parts = plan.columns(), plan.partitioning()
    definitions.register_output(
        output(
            name=name,
            comment=_text(told.comment()),
            source_code_location=at,
            table_properties=jvm.java_map(told.properties()),
            partition_cols=[parts.apply(n).describe() for n in range(parts.size())] or None,
            cluster_by=None,
            schema=", ".join(columns.apply(n).toV1Column().toDDL() for n in range(columns.size()))
            or None,
            format=_text(told.provider()),
        )
    )
    if has_query:
        definitions.register_flow(_query(spark, name, name, plan.query(), at))
    elif kind == "CreateStreamingTableAutoCdc":
        definitions.register_auto_cdc_flow(_changes(spark, name, name, plan, at))


def _view(
    spark: SparkSession, definitions: PipelineDefinitions, plan: Any, at: SourceCodeLocation
) -> None:
    if plan.viewType().toString() != "LocalTempView":
        raise PipelineError(
            "a pipeline has views of its own and no others; write CREATE TEMPORARY VIEW", at
        )
    name = str(plan.name().table())
    definitions.register_output(TemporaryView(name, _text(plan.comment()), at))
    definitions.register_flow(_query(spark, name, name, plan.plan(), at))


def _flow(
    spark: SparkSession, definitions: PipelineDefinitions, plan: Any, at: SourceCodeLocation
) -> None:
    name, what = _name(plan.name()), plan.flowOperation()
    if what.getClass().getSimpleName() == "AutoCdcInto":
        target = _name(what.targetTable())
        definitions.register_auto_cdc_flow(_changes(spark, name, target, what, at))
        return
    if not what.byName():
        raise PipelineError("columns go by their names; write INSERT INTO … BY NAME SELECT …", at)
    target = _last(what.table().multipartIdentifier())
    definitions.register_flow(_query(spark, name, target, what.query(), at))


def _changes(
    spark: SparkSession, name: str, target: str, plan: Any, at: SourceCodeLocation
) -> AutoCdcFlow:
    """Return the flow that AUTO CDC describes."""
    source = plan.source()
    if source.getClass().getSimpleName() == "NamedStreamingRelation":
        source = source.child()
    # The parser takes streams and nothing else.
    if source.getClass().getSimpleName() != "UnresolvedRelation":
        raise PipelineError("changes come from a stream with a name; write FROM STREAM name", at)
    deletes = plan.deleteCondition()

    def columns(found: Any) -> list[Column] | None:
        return _columns(spark, found.get()) if found.isDefined() else None

    return AutoCdcFlow(
        name=name,
        target=target,
        source=_last(source.multipartIdentifier()),
        keys=_columns(spark, plan.keys()),
        sequence_by=jvm.column_of_expression(spark, plan.sequenceByExpr()),
        apply_as_deletes=jvm.column_of_expression(spark, deletes.get())
        if deletes.isDefined()
        else None,
        column_list=columns(plan.includeColumns()),
        except_column_list=columns(plan.excludeColumns()),
        stored_as_scd_type=2 if plan.storedAsScdType() == 2 else 1,
        track_history_column_list=columns(plan.trackHistoryColumns()),
        track_history_except_column_list=columns(plan.trackHistoryExceptColumns()),
        spark_conf={},
        source_code_location=at,
    )


def _columns(spark: SparkSession, found: Any) -> list[Column]:
    return [jvm.column_of_expression(spark, found.apply(n)) for n in range(found.size())]


def _query(spark: SparkSession, name: str, target: str, plan: Any, at: SourceCodeLocation) -> Flow:
    return Flow(
        name=name,
        target=target,
        spark_conf={},
        source_code_location=at,
        func=partial(jvm.frame_of_plan, spark, plan),
    )


def _name(identifier: Any) -> str:
    return _last(identifier.nameParts())


def _last(parts: Any) -> str:
    return str(parts.apply(parts.size() - 1))


def _text(option: Any) -> str | None:
    return str(option.get()) if option.isDefined() else None
