"""A pipeline at work: its flows as streaming queries of Spark, its views computed again when due.

    runner = PipelineRunner(project, tables, state, complain)
    runner.load()                  # raises PipelineError; nothing was started or written
    runner.run_once()              # everything that is there, then back
    runner.start(); runner.look(now); runner.close()     # or for as long as a lake runs

A streaming table begins with all rows that its inputs have and goes on with those that come, each
row once: Spark's checkpoint says how far a flow has read, its table's log which batches it has.
A materialized view is computed again when its inputs have changed. A flow that fails stops alone,
and is tried again after a while.
"""

from __future__ import annotations

import hashlib
import inspect
import linecache
import re
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final, final

from pyspark.errors import PySparkException
from pyspark.pipelines.flow import AutoCdcFlow
from pyspark.pipelines.output import MaterializedView, Sink, TemporaryView

from zenlake.clock.backoff import Backoff
from zenlake.errors import LocalError
from zenlake.lake.model.status import ExpectationStatus, FlowStatus
from zenlake.lake.pipelines.definitions import AnyFlow, PipelineDefinitions, PipelineError
from zenlake.lake.pipelines.expectation_counts import (
    expectation_status,
    rate_of,
    unmet_expectation,
    without_row,
)
from zenlake.lake.pipelines.flow_query import FlowQuery, started
from zenlake.lake.pipelines.graph import Graph, PlannedFlow, analyse, planned_anew
from zenlake.lake.pipelines.project import Project, load, raised_in
from zenlake.lake.pipelines.publishing import PublishedTables
from zenlake.lake.pipelines.state import PipelineState
from zenlake.lake.pipelines.tables import PipelineTables

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["PipelineRunner", "RunReport"]

RETRY: Final = Backoff(2.0, 300.0)
"""Seconds until a flow that failed is tried again."""
REFRESH_SECONDS: Final = 5.0
"""Seconds between two computations of a materialized view at least, if its table does not say."""
REFRESH_SHARE: Final = 4.0
"""A materialized view waits this many times as long as it took to compute."""
REFRESH_PROPERTY: Final = "zenlake.refresh"
STEADY_SECONDS: Final = 10.0
"""A flow that runs for so long after a failure, without new rows, is well again."""
CANCEL_SECONDS: Final = 1.0
"""Seconds between two tries to cancel a materialized view that is being computed."""
ADOPT_SECONDS: Final = 60.0
"""Seconds until a pipeline is analysed again which lacks a column that a table lost."""


@dataclass(slots=True)
class RunReport:
    """What one run did."""

    #: Rows that each flow read.
    rows: dict[str, int]
    #: Why flows and views failed, by name.
    failed: dict[str, str]
    #: Materialized views that were computed.
    computed: list[str]
    #: Materialized views whose inputs had not changed.
    unchanged: list[str]
    #: By flow or view: expectations, with the rows of this run that met each and that did not.
    expectations: dict[str, tuple[ExpectationStatus, ...]] = field(default_factory=dict)


@final
@dataclass(slots=True)
class _Element:
    """A flow or a materialized view while its pipeline runs."""

    planned: PlannedFlow
    query: FlowQuery | None = None
    computing: Future[bool] | None = None
    why: str = ""
    #: Seconds until the next try; 0: it has not failed.
    pause: float = 0.0
    #: By a steady clock: when it is tried again, or computed again.
    due: float = 0.0
    batches: int = 0
    rows: int = 0
    progress: dict[str, Any] | None = None
    behind_versions: int = 0
    restarts: int = 0
    #: Rows that met each expectation and rows that did not: when the flow was prepared, and now.
    counted_before: dict[str, tuple[int, int]] = field(default_factory=dict)
    counted: dict[str, tuple[int, int]] = field(default_factory=dict)


@final
class PipelineRunner:
    """Runs one pipeline on a Spark."""

    def __init__(
        self,
        project: Project,
        tables: PipelineTables,
        state: PipelineState,
        complain: Callable[[str], None],
        published: PublishedTables | None = None,
    ) -> None:
        """`tables`: those of the lake, by the names that the pipeline's files use.

        `published`: puts rows on the bus; without it they wait for a lake that runs.
        """
        self.published = published or PublishedTables(None)
        self.project = project
        self._tables = tables
        self._state = state
        self._complain = complain
        self._spark: SparkSession = tables.spark
        self._elements: dict[str, _Element] = {}
        #: Computes materialized views, one after the other.
        self._pool = ThreadPoolExecutor(1, "zenlake pipeline")
        self._jobs = f"pipeline {project.name}"
        #: By a steady clock: when columns that have changed are looked at again.
        self._adopting = 0.0
        self._definitions = PipelineDefinitions(project.folder)
        self.graph = Graph(self._definitions)
        self.notes: list[str] = []
        """What a changed definition means, a sentence each."""

    # --- before it runs ---------------------------------------------------------------------------

    def load(self) -> None:
        """Read the files and analyse every flow; raises `PipelineError` and changes nothing."""
        for name, value in self.project.configuration.items():
            with _told(f"configuration: {name}"):
                self._spark.conf.set(name, value)
        self._definitions = load(self.project, self._spark)
        self._analyse()

    def _analyse(self) -> None:
        self._tables.refresh()
        self._tables.demand_free(self._definitions.tables(), self.project.name)
        self.graph = analyse(self._definitions, self._spark, self._tables, self.project.folder)

    def _prepare(self, full: Sequence[str] = ()) -> None:
        """Make tables that are not there, and begin the full refreshes that are asked for."""
        for name in self._named(full):
            self._state.begin_refresh(name)
        self._elements = {}
        self.notes = []
        for planned in self.graph.flows:
            target = self.graph.definitions.outputs[planned.flow.target]
            if isinstance(target, TemporaryView):
                continue
            name = str(planned.flow.name)
            before, word = self._state.element(name), definition_of(planned.flow)
            if before.definition not in ("", word) and not isinstance(target, MaterializedView):
                self.notes.append(
                    f"the definition of '{name}' has changed: rows that are in '{target.name}' "
                    "stay as they were computed, rows that come are computed as it says now; "
                    f"`zenlake pipeline run --full-refresh {name}` computes all of them again"
                )
            if (before.definition, before.target) != (word, target.name):
                after = replace(before, definition=word, target=target.name, inputs={})
                self._state.put(name, after)
            self._elements[name] = _Element(planned)
        for name, table in self.graph.tables.items():
            self._tables.make(name, table, self.project.name)
        for name, element in self._elements.items():
            if self._state.element(name).is_emptying:
                if not isinstance(self._target(element), Sink):
                    self._tables.empty(element.planned.flow.target)
                self._state.end_refresh(name)
            self._count(name, element)
            element.counted_before = element.counted
        # Before a flow begins, so that the first rows of a new table are published, too.
        self.published.follow(
            self._tables.place,
            {
                name: table.publication
                for name, table in self.graph.tables.items()
                if table.publication is not None
            },
            self._state.folder / "published",
        )

    def _named(self, full: Sequence[str]) -> set[str]:
        """Return the flows and views of tables that are computed again."""
        named: set[str] = set()
        for name in full:
            every = self.graph.definitions.flows.items()
            flows = {flow_name for flow_name, flow in every if flow.target == name}
            if not flows:
                names = ", ".join(sorted(self.graph.tables)) or "none"
                raise LocalError(f"this pipeline has no table '{name}'; it has {names}")
            named |= flows
        return named

    # --- one run ----------------------------------------------------------------------------------

    def run_once(self, full: Sequence[str] = ()) -> RunReport:
        """Process all rows that are there, each flow after those that it reads.

        `full`: names of tables that are emptied and computed from all rows again. A flow that fails
        keeps those from running that read its table.
        """
        self._prepare(full)
        report = RunReport({}, {}, [], [])
        stale: set[str] = set()
        for name, element in self._elements.items():
            flow = element.planned.flow
            if element.planned.inputs & stale:
                report.failed[name] = "a table that it reads was not computed"
                stale.add(flow.target)
                continue
            try:
                if isinstance(self._target(element), MaterializedView):
                    was_computed = self._compute(name, element)
                    (report.computed if was_computed else report.unchanged).append(name)
                else:
                    query = self._start(name, element, once=True)
                    query.wait()
                    report.rows[name] = element.rows = query.rows
                    element.batches = query.batches
                    self._count(name, element)
            except Exception as error:
                report.failed[name] = self._reason(error, flow)
                stale.add(flow.target)
        report.expectations = {one.name: one.expectations for one in self.flows()}
        return report

    # --- for as long as the lake runs -------------------------------------------------------------

    def start(self, full: Sequence[str] = ()) -> None:
        """Start every flow; `look` goes on with what takes time or fails."""
        self._prepare(full)

    def restart(self, full: Sequence[str]) -> None:
        """Stop every flow, and start them with these tables empty."""
        self._named(full)
        self._stop()
        self._prepare(full)

    def look(self, now: float) -> None:
        """Start what is due, and see to what has ended; `now`: by a steady clock."""
        if now >= self._adopting and self._tables.have_moved(self.graph):
            self._adopt_columns(now)
        for name, element in self._elements.items():
            query = element.query
            if query is not None:
                query.look()
                if element.batches != query.batches:
                    self._count(name, element)
                element.rows, element.batches = query.rows, query.batches
                element.progress = query.progress
                element.behind_versions = query.behind_versions
                if query.is_active:
                    if query.batches or now >= element.due + STEADY_SECONDS:
                        element.pause, element.why = 0.0, ""
                    continue
                element.query = None
                self._failed(name, element, query.failure() or LocalError("it has ended"), now)
            if element.computing is not None:
                self._take_computed(name, element, now)
            elif now >= element.due:
                self._begin(name, element, now)

    def _begin(self, name: str, element: _Element, now: float) -> None:
        element.restarts += element.pause > 0.0
        try:
            if isinstance(self._target(element), MaterializedView):
                element.due = now
                element.computing = self._pool.submit(self._compute, name, element)
            else:
                element.query = self._start(name, element, once=False)
        except Exception as error:
            self._failed(name, element, error, now)

    def _take_computed(self, name: str, element: _Element, now: float) -> None:
        """Take in that a materialized view was computed, or why it was not."""
        computing = element.computing
        if computing is None or not computing.done():
            return
        element.computing = None
        try:
            computing.result()
        except Exception as error:
            self._failed(name, element, error, now)
        else:
            pause = max(self._refresh_seconds(element), (now - element.due) * REFRESH_SHARE)
            element.due = now + pause
            element.why, element.pause = "", 0.0

    def _failed(self, name: str, element: _Element, error: BaseException, now: float) -> None:
        element.pause = RETRY.after(element.pause)
        element.due = now + element.pause
        reason = self._reason(error, element.planned.flow)
        if reason != element.why:
            told = without_row(reason, name)
            self._complain(f"the flow '{name}' failed and is tried again: {told}")
        element.why = reason

    def _adopt_columns(self, now: float) -> None:
        """Analyse again with the columns that tables have now, and start the flows again."""
        try:
            self._analyse()
        except PipelineError as error:
            # The flows go on with the columns that they know, as long as they can.
            self._adopting = now + ADOPT_SECONDS
            self._complain(f"the pipeline '{self.project.name}' lost a column: {error}")
            return
        self._stop()
        before = self._elements
        self._prepare()
        for name, element in self._elements.items():
            if name in before:
                old = before[name]
                element.batches, element.rows = old.batches, old.rows
                element.restarts, element.counted_before = old.restarts, old.counted_before

    def close(self) -> None:
        """Stop every flow; they go on from there."""
        self._stop()
        self._pool.shutdown(wait=True, cancel_futures=True)

    def _stop(self) -> None:
        for element in self._elements.values():
            query, element.query = element.query, None
            if query is not None:
                query.stop()
        computing = {one.computing for one in self._elements.values() if one.computing is not None}
        while computing:
            # Again and again: a job may begin after the jobs of its group were cancelled.
            self._spark.sparkContext.cancelJobGroup(self._jobs)
            computing = wait(computing, CANCEL_SECONDS).not_done

    # --- what is said of it -----------------------------------------------------------------------

    def stopped(self) -> dict[str, str]:
        """Return why flows do not go on, by name."""
        flows = {
            name: f"the flow '{name}' of the pipeline '{self.project.name}' is stopped: "
            f"{without_row(one.why, name)}"
            for name, one in tuple(self._elements.items())
            if one.why
        }
        return {**self.published.stopped(), **flows}

    def facts(self) -> list[dict[str, Any]]:
        """Return what can be said of each flow and materialized view."""
        published = self.published.facts()
        return [
            {
                **asdict(self._flow_status(name, one)),
                "why": one.why,
                "inputs": sorted(one.planned.inputs),
                "progress": one.progress or {},
                "published": published.get(one.planned.flow.target, {}),
            }
            for name, one in tuple(self._elements.items())
        ]

    def flows(self) -> list[FlowStatus]:
        """Return what a status shows of each flow and materialized view."""
        return [self._flow_status(name, one) for name, one in tuple(self._elements.items())]

    def _flow_status(self, name: str, element: _Element) -> FlowStatus:
        progress = element.progress or {}
        is_running = bool(element.query or element.batches)
        return FlowStatus(
            pipeline=self.project.name,
            name=name,
            target=element.planned.flow.target,
            kind=type(self._target(element)).__name__,
            state="stopped" if element.why else "running" if is_running else "waiting",
            why=without_row(element.why, name),
            batches=element.batches,
            rows=element.rows,
            input_rows_per_second=rate_of(progress, "inputRowsPerSecond"),
            processed_rows_per_second=rate_of(progress, "processedRowsPerSecond"),
            behind_versions=element.behind_versions,
            watermark=progress.get("watermark", ""),
            restarts=element.restarts,
            expectations=tuple(
                expectation_status(one, element.counted, element.counted_before)
                for one in element.planned.expectations
            ),
        )

    def _count(self, name: str, element: _Element) -> None:
        """Look up how many rows met the expectations of a flow."""
        planned = element.planned
        if planned.expectations:
            element.counted = self._tables.counted(
                planned.flow.target, self._state.element(name).application, planned.expectations
            )

    # --- one flow ---------------------------------------------------------------------------------

    def _start(self, name: str, element: _Element, *, once: bool) -> FlowQuery:
        flow = element.planned.flow
        state = self._state.element(name)
        with self._settings(flow):
            return started(
                element.planned,
                self._target(element),
                name=f"{self.project.name}.{name}",
                path=self._tables.path(flow.target),
                application=state.application,
                checkpoint=self._state.checkpoint(name),
                once=once,
            )

    def _compute(self, name: str, element: _Element) -> bool:
        """Compute a materialized view; False if its inputs have not changed since."""
        state = self._state.element(name)
        versions = self._tables.versions(element.planned.inputs)
        # Without a table that it reads, such as a file, nobody can tell.
        if versions and state.inputs == versions:
            return False
        flow = element.planned.flow
        self._spark.sparkContext.setJobGroup(self._jobs, f"{self.project.name}.{name}", True)
        with self._settings(flow):
            planned = planned_anew(self.graph, flow, self._spark, self.project.folder)
            self._tables.overwrite(flow.target, planned, state.application)
        element.batches += 1
        self._count(name, element)
        self._state.put(name, replace(state, inputs=versions, refreshed=time.time()))
        return True

    def _refresh_seconds(self, element: _Element) -> float:
        from zenlake.lake.model.config import seconds_of

        output = self._target(element)
        told = (
            output.table_properties.get(REFRESH_PROPERTY)
            if isinstance(output, MaterializedView)
            else None
        )
        return REFRESH_SECONDS if told is None else seconds_of(told, REFRESH_PROPERTY)

    def _target(self, element: _Element) -> Any:
        return self.graph.definitions.outputs[element.planned.flow.target]

    @contextmanager
    def _settings(self, flow: AnyFlow) -> Iterator[None]:
        """Have the settings of a flow in the session while it is started."""
        before = {name: self._spark.conf.get(name, None) for name in flow.spark_conf}
        try:
            for name, value in flow.spark_conf.items():
                self._spark.conf.set(name, value)
            yield
        finally:
            for name, old in before.items():
                if old is None:
                    self._spark.conf.unset(name)
                else:
                    self._spark.conf.set(name, old)

    def _reason(self, error: BaseException, flow: AnyFlow) -> str:
        at = flow.source_code_location
        if isinstance(error, PipelineError):
            return str(error)
        unmet = unmet_expectation(str(error))
        if unmet:
            return str(PipelineError(unmet, at))
        return str(raised_in(error, self.project.folder, f"{at.filename}:{at.line_number}"))


@contextmanager
def _told(what: str) -> Iterator[None]:
    try:
        yield
    except PySparkException as error:
        raise PipelineError(str(error).partition("\n")[0], what) from error


def definition_of(flow: AnyFlow) -> str:
    """Return a word for the text that defines a flow; it changes when somebody edits that text."""
    if isinstance(flow, AutoCdcFlow):
        text = repr(replace(flow, source_code_location=None))  # type: ignore[arg-type]
    else:
        function: Any = inspect.unwrap(flow.func)
        if hasattr(function, "__code__"):
            linecache.checkcache(function.__code__.co_filename)
            with suppress(OSError):
                text = inspect.getsource(function)
        else:  # a statement of SQL: its plan
            text = re.sub(r"#\d+L?", "", function.args[1].toString())
    return hashlib.sha256(text.encode()).hexdigest()[:16]
