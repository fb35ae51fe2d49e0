"""The order of a pipeline: its flows analysed one after the other, each after those that it reads.

A function of a user's may read by name what another one defines, in any file and in any order. So
each is called until Spark finds every name: a function that reads a table or view which is not
analysed yet is called again later. What the tables of the pipeline were before is not seen
meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Protocol, final

from pyspark.errors import AnalysisException, ParseException
from pyspark.pipelines.flow import AutoCdcFlow, Flow
from pyspark.pipelines.output import MaterializedView, Sink, StreamingTable, TemporaryView
from pyspark.sql.types import StructField, StructType

from zenlake.config.nearest import nearest
from zenlake.lake.pipelines.changes import ChangeRules, changes_of
from zenlake.lake.pipelines.definitions import AnyFlow, PipelineDefinitions, PipelineError
from zenlake.lake.pipelines.project import raised_in
from zenlake.lake.pipelines.publication import TablePublication, publication_of
from zenlake.lake.query.executor import one_line
from zenlake.pipelines import Expectation, ExpectingQuery
from zenlake.spark import jvm

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

__all__ = ["Graph", "KnownTables", "PlannedFlow", "PlannedTable", "analyse", "planned_anew"]

_MISSING: Final = "TABLE_OR_VIEW_NOT_FOUND"


class KnownTables(Protocol):
    """The names that Spark knows while a pipeline is analysed."""

    def hide(self, names: set[str]) -> None:
        """Let Spark know no tables of these names."""

    def show(self, name: str, schema: StructType) -> None:
        """Let Spark know a table of the pipeline with these columns."""

    def names(self) -> set[str]:
        """Return the names that Spark knows."""


@final
@dataclass(frozen=True, slots=True)
class PlannedFlow:
    """A flow that Spark has analysed."""

    flow: AnyFlow
    frame: DataFrame
    #: The names of the tables that it reads.
    inputs: frozenset[str]
    #: What is done with the events of a flow of changes.
    changes: ChangeRules | None = None
    #: Of the rows of a table; rows of views and sinks are checked by the frame itself.
    expectations: tuple[Expectation, ...] = ()

    @property
    def columns(self) -> StructType:
        """The columns that the flow gives its table."""
        return self.frame.schema if self.changes is None else self.changes.table_schema


@final
@dataclass(frozen=True, slots=True)
class PlannedTable:
    """A table of the pipeline with the columns that its flows give it."""

    output: StreamingTable | MaterializedView
    schema: StructType
    #: How its rows are put on the bus.
    publication: TablePublication | None = None


@final
@dataclass(slots=True)
class Graph:
    """A pipeline that can run: flows in an order in which each comes after those that it reads."""

    definitions: PipelineDefinitions
    flows: list[PlannedFlow] = field(default_factory=list)
    tables: dict[str, PlannedTable] = field(default_factory=dict)


def analyse(
    definitions: PipelineDefinitions, spark: SparkSession, catalog: KnownTables, folder: Path
) -> Graph:
    """Let Spark analyse every flow. Raises `PipelineError`, with file and line, if one is wrong."""
    graph = Graph(definitions)
    catalog.hide(set(definitions.tables()))
    for name, output in definitions.tables().items():
        # A table whose columns are written down can be read by its own flows, in a circle.
        if output.schema is not None:
            _add_table(graph, catalog, name, output, _declared(output))
    waiting = dict(definitions.flows)
    while waiting:
        before, late = len(waiting), dict[str, str]()
        for name, flow in tuple(waiting.items()):
            try:
                planned = _planned(flow, definitions, spark, folder)
            except AnalysisException as error:
                missing = _missing_name(error)
                if missing is None or not _may_come(missing, definitions, graph, waiting):
                    raise _refused(error, flow, folder, catalog, missing) from error
                late[name] = missing
                continue
            del waiting[name]
            graph.flows.append(planned)
            _finish_output(planned, graph, waiting, catalog)
        if len(waiting) == before and waiting:
            name, missing = next(iter(late.items()))
            raise PipelineError(
                f"the flows {', '.join(sorted(waiting))} wait for each other: '{name}' reads "
                f"'{missing}'",
                definitions.flows[name].source_code_location,
            )
    return graph


def planned_anew(graph: Graph, flow: AnyFlow, spark: SparkSession, folder: Path) -> PlannedFlow:
    """Analyse a materialized view again, with the temporary views that it may read.

    A frame of Spark that was run finds the same files of a Python data source when it is run again.
    """
    for one in graph.flows:
        is_view = isinstance(graph.definitions.outputs[one.flow.target], TemporaryView)
        if is_view and not one.frame.isStreaming:
            _planned(one.flow, graph.definitions, spark, folder)
    return _planned(flow, graph.definitions, spark, folder)


def _planned(
    flow: AnyFlow, definitions: PipelineDefinitions, spark: SparkSession, folder: Path
) -> PlannedFlow:
    target = definitions.outputs[flow.target]
    checked = (
        flow.func
        if isinstance(flow, Flow)
        and isinstance(flow.func, ExpectingQuery)
        and isinstance(target, StreamingTable | MaterializedView)
        else None
    )
    frame = _frame(flow, spark, folder, None if checked is None else checked.query)
    at = flow.source_code_location
    if isinstance(target, MaterializedView) and frame.isStreaming:
        raise PipelineError(
            f"'{flow.name}' is a materialized view of a stream; read its tables with "
            "spark.read, or make it a @dp.table",
            at,
        )
    if isinstance(target, StreamingTable | Sink) and not frame.isStreaming:
        raise PipelineError(
            f"'{flow.name}' is a flow and its query no stream; read one of its tables with "
            "spark.readStream.table(…) (STREAM … in SQL), or make it a @dp.materialized_view",
            at,
        )
    if isinstance(target, TemporaryView):
        frame.createOrReplaceTempView(flow.target)
    changes = changes_of(flow, frame) if isinstance(flow, AutoCdcFlow) else None
    expectations = () if checked is None else checked.expectations
    for one in expectations:
        _demand_condition(one, frame, flow)
    inputs = frozenset(jvm.relation_names(frame))
    return PlannedFlow(flow, frame, inputs, changes, expectations)


def _demand_condition(expectation: Expectation, frame: DataFrame, flow: AnyFlow) -> None:
    """Raise `PipelineError` if an expectation is no condition on the rows of a frame."""
    from pyspark.sql import functions as f

    try:
        frame.where(f.expr(f"({expectation.condition}\n)"))
    except (AnalysisException, ParseException) as error:
        raise PipelineError(
            f"the expectation '{expectation.name}' of '{flow.name}' ({expectation.condition}) is "
            f"no condition on its rows: {one_line(str(error))}",
            flow.source_code_location,
        ) from error


def _frame(
    flow: AnyFlow, spark: SparkSession, folder: Path, query: Callable[[], DataFrame] | None
) -> DataFrame:
    if isinstance(flow, AutoCdcFlow):
        return spark.readStream.table(flow.source)
    from pyspark.sql import DataFrame

    try:
        with jvm.current(spark):
            frame = flow.func() if query is None else query()
    except (AnalysisException, PipelineError):
        raise
    except Exception as error:
        raise raised_in(error, folder, _place(flow)) from error
    if not isinstance(frame, DataFrame):
        raise PipelineError(
            f"'{flow.name}' returned {type(frame).__name__}; return a DataFrame",
            flow.source_code_location,
        )
    return frame


def _finish_output(
    planned: PlannedFlow, graph: Graph, waiting: Mapping[str, AnyFlow], catalog: KnownTables
) -> None:
    """Show a table to those that read it, once all flows into it are analysed."""
    name = planned.flow.target
    output = graph.definitions.outputs[name]
    if not isinstance(output, StreamingTable | MaterializedView) or name in graph.tables:
        return
    if any(flow.target == name for flow in waiting.values()):
        return
    columns: dict[str, StructField] = {}
    for one in graph.flows:
        if one.flow.target != name:
            continue
        for column in one.columns.fields:
            before = columns.setdefault(column.name.lower(), column)
            if before.dataType != column.dataType:
                raise PipelineError(
                    f"flows into '{name}' have the column '{column.name}' once as "
                    f"{before.dataType.simpleString()} and once as "
                    f"{column.dataType.simpleString()}; cast one of them",
                    one.flow.source_code_location,
                )
    _add_table(graph, catalog, name, output, StructType(list(columns.values())))


def _add_table(
    graph: Graph,
    catalog: KnownTables,
    name: str,
    output: StreamingTable | MaterializedView,
    schema: StructType,
) -> None:
    graph.tables[name] = PlannedTable(output, schema, publication_of(output, schema))
    catalog.show(name, schema)


def _declared(output: StreamingTable | MaterializedView) -> StructType:
    told = output.schema
    found = StructType.fromDDL(told) if isinstance(told, str) else told
    if not isinstance(found, StructType):
        raise PipelineError(
            f"the schema of '{output.name}' has no columns", output.source_code_location
        )
    return found


def _may_come(
    missing: str, definitions: PipelineDefinitions, graph: Graph, waiting: Mapping[str, AnyFlow]
) -> bool:
    return missing in definitions.outputs and any(
        flow.target == missing for flow in waiting.values()
    )


def _missing_name(error: AnalysisException) -> str | None:
    """Return the table that Spark did not find, without its database; None: it misses none."""
    if error.getCondition() != _MISSING:
        return None
    found = (error.getMessageParameters() or {}).get("relationName", "")
    return found.replace("`", "").split(".")[-1]


def _refused(
    error: AnalysisException, flow: AnyFlow, folder: Path, catalog: KnownTables, missing: str | None
) -> PipelineError:
    told = raised_in(error, folder, _place(flow))
    if missing is None:
        return told
    meant = nearest(missing, sorted(catalog.names()))
    hint = f"; did you mean '{meant}'?" if meant else ""
    place = str(told).partition(": ")[0]
    return PipelineError(
        f"there is no table '{missing}', in the lake or in this pipeline{hint}", place
    )


def _place(flow: AnyFlow) -> str:
    at = flow.source_code_location
    return f"{at.filename}:{at.line_number}" if at.line_number else at.filename
