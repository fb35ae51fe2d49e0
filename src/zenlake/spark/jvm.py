"""The private parts of pyspark, and of Spark's Java, that zenlake uses.

pyspark has no public way to read a plan, to cancel jobs that begin later, or to wait until its Java
has ended. Only this module touches the private names (`tests/build/test_private_names.py`), and the
extra `spark` bounds pyspark to the versions that the suite runs on. To support a new version, begin
here.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark import SparkConf, SparkContext
    from pyspark.sql import Column, DataFrame, SparkSession

__all__ = [
    "active",
    "active_context",
    "analysed_plan",
    "arrow_stream",
    "classic_column",
    "column_name",
    "column_of_expression",
    "copy_view",
    "current",
    "finish_planning",
    "forget_gateway",
    "frame_of_plan",
    "gateway",
    "gateway_client",
    "is_append_possible",
    "is_stopped",
    "java_map",
    "java_packages",
    "java_process",
    "java_stacks",
    "make_frame",
    "parsed_plan",
    "pipeline_statements",
    "read_stream",
    "relation_names",
    "spark_home",
    "start_java",
    "task_pool",
    "thread_connection",
]

# --- the Java process -------------------------------------------------------------------------


def active_context() -> SparkContext | None:
    """Return the context that runs in this process, or None."""
    from pyspark import SparkContext

    return SparkContext._active_spark_context


def gateway() -> Any:
    """Return py4j's connection to the Java of this process's Spark, or None."""
    from pyspark import SparkContext

    return SparkContext._gateway


def java_process() -> subprocess.Popen[bytes] | None:
    """Return the Java process that this process started, or None."""
    process: subprocess.Popen[bytes] | None = getattr(gateway(), "proc", None)
    return process


def start_java(conf: SparkConf, popen_options: dict[str, Any] | None) -> None:
    """Start Spark's Java unless it runs. `popen_options` go to `subprocess.Popen`."""
    from pyspark import SparkContext
    from pyspark.java_gateway import launch_gateway

    if SparkContext._gateway is None:
        launch: Any = launch_gateway
        SparkContext._ensure_initialized(gateway=launch(conf, popen_options), conf=conf)


def forget_gateway() -> None:
    """Forget the connection to Java: the next session starts a Java of its own."""
    from pyspark import SparkContext

    SparkContext._gateway = SparkContext._jvm = None


def spark_home() -> str:
    """Return the folder that Spark is installed in."""
    from pyspark.find_spark_home import _find_spark_home

    return _find_spark_home()


def gateway_client(context: SparkContext) -> Any:
    """Return the client that py4j sends commands to Java by."""
    own: Any = context._gateway
    return own._gateway_client


def thread_connection(context: SparkContext) -> Any:
    """Return the connection over which Java calls the current thread."""
    return gateway_client(context).get_thread_connection()


def java_packages(context: SparkContext) -> Any:
    """Return the root of Java's packages: `java_packages(context).java.lang.Thread`."""
    return context._jvm


def java_stacks(context: SparkContext, named: str) -> Iterator[str]:
    """Yield the stacks of Java's threads with `named` in their names, line by line."""
    every = java_packages(context).java.lang.Thread.getAllStackTraces()
    for thread in every.keySet().toArray():
        if named in thread.getName():
            yield f"  {thread}"
            for at in every.get(thread):
                yield f"    at {at}"


# --- jobs and tasks ---------------------------------------------------------------------------


def is_stopped(context: SparkContext) -> bool:
    """Return True if Spark was stopped. Raises if its Java is gone."""
    return bool(context._jsc.sc().isStopped())


def task_pool(context: SparkContext) -> Any:
    """Return the scheduler's root pool, which holds every set of running tasks."""
    return context._jsc.sc().taskScheduler().rootPool()


# --- plans and frames -------------------------------------------------------------------------


def parsed_plan(session: SparkSession, query: str) -> Any:
    """Return the plan of a text of SQL as Spark's parser reads it: nothing is looked up yet.

    A parser takes the settings of the session that is active on its thread, not those of its own.
    """
    with active(session):
        return session._jsparkSession.sessionState().sqlParser().parsePlan(query)


def pipeline_statements(session: SparkSession, text: str, file: str) -> list[tuple[Any, int]]:
    """Return the parsed statements of a file of SQL that defines a pipeline, each with its line."""
    graph = java_packages(session.sparkContext).org.apache.spark.sql.pipelines.graph
    splitter = getattr(graph, "SqlGraphRegistrationContext$").__getattr__("MODULE$")
    with active(session):
        found = splitter.splitSqlFileIntoQueries(session._jsparkSession, text, file)
    statements = [found.apply(number) for number in range(found.size())]
    return [(one.plan(), int(one.queryOrigin().line().get())) for one in statements]


def java_map(found: Any) -> dict[str, str]:
    """Return a map of Scala as a dictionary."""
    pairs = found.iterator()
    read: dict[str, str] = {}
    while pairs.hasNext():
        pair = pairs.next()
        read[str(pair._1())] = str(pair._2())
    return read


def relation_names(frame: DataFrame) -> set[str]:
    """Return the names of the tables of the catalog that a frame reads, subqueries included."""
    plan = analysed_plan(frame)
    inside = plan.subqueriesAll()
    plans = [plan, *(inside.apply(number) for number in range(inside.size()))]
    names = set()
    for one in plans:
        leaves = one.collectLeaves()
        for number in range(leaves.size()):
            leaf = leaves.apply(number)
            # Other leaves, such as the rows of VALUES, are no tables.
            if leaf.getClass().getSimpleName() in ("DataSourceV2Relation", "StreamingRelationV2"):
                identifier = leaf.identifier()
                if identifier.isDefined():
                    names.add(str(identifier.get().name()))
    return names


def classic_column(column: Column) -> Column:
    """Return a column that Spark of this process understands.

    `pyspark.pipelines` makes columns of Spark Connect of the texts that it is given.
    """
    from pyspark.sql import functions as f
    from pyspark.sql.classic.column import Column as ClassicColumn

    if isinstance(column, ClassicColumn):
        return column
    inside: Any = column._expr
    name = getattr(inside, "_unparsed_identifier", None)
    return f.expr(inside._expr) if name is None else f.col(name)


def column_name(column: Column) -> str | None:
    """Return the name that a column is, or None if it is an expression or has a qualifier."""
    inside: Any = classic_column(column)
    node = inside._jc.node()
    if node.getClass().getSimpleName() == "ExpressionColumnNode":
        node = node.expression()
    if node.getClass().getSimpleName() != "UnresolvedAttribute":
        return None
    parts = node.nameParts()
    return str(parts.apply(0)) if parts.size() == 1 else None


def column_of_expression(session: SparkSession, expression: Any) -> Column:
    """Return an expression of a parsed plan as a column."""
    from pyspark.sql.classic.column import Column as ClassicColumn

    utils = java_packages(session.sparkContext).org.apache.spark.sql.classic.ExpressionUtils
    return ClassicColumn(utils.column(expression))


def make_frame(session: SparkSession, rows: Any, schema: Any) -> DataFrame:
    """Return a frame of rows; the session that is active on this thread stays so.

    `createDataFrame` makes its own session the active one, in which Spark then looks for sources.
    """
    with current(session):
        return session.createDataFrame(rows, schema)


@contextmanager
def current(session: SparkSession) -> Iterator[None]:
    """Make a session the active one of this thread, and the one that `SparkSession.active()` gives.

    pyspark keeps the latter once for all threads: let only code of users run under it.
    """
    sessions: Any = type(session)
    before = sessions._activeSession
    with active(session):
        sessions._activeSession = session
        try:
            yield
        finally:
            sessions._activeSession = before


@contextmanager
def active(session: SparkSession) -> Iterator[None]:
    """Make a session the active one of this thread, which some of Spark asks instead of its own."""
    sessions: Any = type(session)._get_j_spark_session_class(java_packages(session.sparkContext))
    before = sessions.getActiveSession()
    sessions.setActiveSession(session._jsparkSession)
    try:
        yield
    finally:
        if before.isDefined():
            sessions.setActiveSession(before.get())
        else:
            sessions.clearActiveSession()


def analysed_plan(frame: DataFrame) -> Any:
    """Return the logical plan of a frame, with every name resolved."""
    return frame._jdf.queryExecution().analyzed()


def finish_planning(frame: DataFrame) -> None:
    """Let Spark plan all of a frame that it plans before its first job."""
    frame._jdf.queryExecution().executedPlan()


def frame_of_plan(session: SparkSession, plan: Any) -> DataFrame:
    """Return the frame of a parsed plan, with every name resolved.

    Spark marks the nodes that it has looked at, found or not: a copy can be looked at again.
    """
    from pyspark.sql.classic.dataframe import DataFrame as ClassicFrame

    datasets = java_packages(session.sparkContext).org.apache.spark.sql.classic.Dataset
    return ClassicFrame(datasets.ofRows(session._jsparkSession, plan.clone()), session)


def copy_view(name: str, source: SparkSession, target: SparkSession) -> None:
    """Make a table or view of one session a temporary view of another."""
    plan = source.table(name)._jdf.logicalPlan()
    datasets = java_packages(source.sparkContext).org.apache.spark.sql.classic.Dataset
    datasets.ofRows(target._jsparkSession, plan).createOrReplaceTempView(name)


def is_append_possible(frame: DataFrame) -> bool:
    """Return True if a streaming frame can be written in the output mode `append`."""
    from pyspark.errors import AnalysisException

    sql = java_packages(frame.sparkSession.sparkContext).org.apache.spark.sql
    checker = sql.catalyst.analysis.UnsupportedOperationChecker
    try:
        checker.checkForStreaming(analysed_plan(frame), sql.streaming.OutputMode.Append())
    except AnalysisException:
        return False
    return True


def arrow_stream(frame: DataFrame) -> tuple[Any, Any]:
    """Run a frame's job: the address of its rows as a stream of Arrow, and Java's side of it.

    `getResult()` of Java's side waits for the job and raises what it failed with.
    """
    port, secret, server = frame._jdf.collectAsArrowToPython()
    return (port, secret), server


def read_stream(address: Any, serializer: Any) -> list[Any]:
    """Return what a serializer of pyspark reads from the stream at an address."""
    from pyspark.util import _load_from_socket

    with _load_from_socket(address, serializer) as stream:
        return list(stream)
