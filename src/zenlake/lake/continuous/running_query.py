"""One view or alert at work: a query of Structured Streaming over tables of the lake.

Every micro-batch comes to `_batch`: what it found is committed to the table first, together with
the number of the batch, and published then. After a death in between the batch comes again, is
known by its number, and is only published again: the table has everything once, the bus everything
at least once.

A query that stands still is ended whether or not its batch answers: the connection on which Spark
waits for the batch is cut, and what the batch would still commit is refused (`ResultTable.end`).
"""

from __future__ import annotations

import json
import socket
import sys
import threading
import time
import traceback
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, final

import pyarrow as pa

from zenlake.errors import LocalError
from zenlake.keys import intersects
from zenlake.lake.continuous.alert_results import AlertResults, changed
from zenlake.lake.continuous.owner_rights import OwnerRights
from zenlake.lake.continuous.publishing import Result, ResultPublisher
from zenlake.lake.continuous.query_shape import ResultShape, chunks_of, conditional, shape_of
from zenlake.lake.continuous.result_table import MOST_ROWS, ResultTable, columns_of, flattened
from zenlake.lake.continuous.table_stream import Position, TableRowsSource, TableStream, at
from zenlake.lake.ingest.failure_reason import reason_of
from zenlake.lake.model.continuous_query import ContinuousQuery
from zenlake.lake.query.executor import collected, one_line
from zenlake.lake.query.limits import QueryLimits
from zenlake.lake.query.row_filter import visible_rows
from zenlake.lake.query.table_frames import spark_type
from zenlake.lake.table.delta import Table
from zenlake.spark.jvm import is_append_possible, java_stacks, thread_connection
from zenlake.spark.session import session_conf

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from zenlake.api.session import Session
    from zenlake.journal import Journal
    from zenlake.lake.model.config import LakeConfig
    from zenlake.lake.query.lake import Lake

__all__ = ["RightsChanged", "RunningQuery", "judged", "told_of"]

LATEST: Final = "latest"
EVERY: Final = "1 second"
FINISH: Final = 2.0
"""Seconds that a batch has to finish before its query is ended."""
MOST_LINES: Final = 200
"""Of stacks that are written to the log."""
BOUNDS: Final = QueryLimits(rows=MOST_ROWS, bytes=64 << 20)
CONF: Final = {
    # One task for each is plenty: what comes in a second is little.
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.streaming.minBatchesToRetain": "10",
    "spark.sql.streaming.noDataProgressEventInterval": "1000",
    # Without it `stop` waits for ever for a batch that does not answer.
    "spark.sql.streaming.stopTimeout": "30s",
}


class RightsChanged(LocalError):
    """The rights of its owner do not let a view or an alert run; the message says why."""


def judged(lake: Lake, definition: ContinuousQuery) -> tuple[ResultShape, pa.Schema]:
    """Return the shape and the columns of a definition, judged as every question is.

    Nothing runs: the question is read and planned over the tables as they are.
    """
    from pyspark.errors import PySparkException

    shape = shape_of(definition.sql)
    # As it was written first: what is refused is named as its author knows it.
    try:
        frame = lake.judged(definition.sql, definition.access)
        _streams(lake, definition.sql)
        columns = columns_of(flattened(frame))
        if definition.kind == "alert":
            flattened(lake.judged(conditional(definition.sql), definition.access))
    except PySparkException as error:
        raise LocalError(one_line(str(error))) from error
    return shape, columns


def _streams(lake: Lake, sql: str) -> dict[str, Table]:
    """The tables of a question that grow."""
    tables = lake.tables()
    streams: dict[str, Table] = {}
    for name in lake.ask(sql).tables:
        table = tables[name]
        if name != LATEST and (
            table.is_continuous
            or not {"journal", "partition", "offset", "received", "key"} <= set(table.schema.names)
        ):
            raise LocalError(
                f"'{name}' is no table of samples; views and alerts are about samples, the typed "
                "tables, and latest beside them"
            )
        if name != LATEST:
            streams[name] = table
    if not streams:
        raise LocalError(
            "the question is about nothing that grows: select from samples or a typed table; "
            "latest can only be joined with them"
        )
    return streams


def _kept(config: LakeConfig, keys: str) -> float | None:
    """How long results that are published on these keys are kept; the first rule decides."""
    return next((rule.age for rule in config.retain if intersects(rule.keys, keys)), None)


@final
class RunningQuery:
    """A view or an alert, from its start to its end."""

    def __init__(
        self,
        definition: ContinuousQuery,
        lake: Lake,
        journals: Sequence[Journal],
        session: Session | None,
        aside: Path,
        rights: OwnerRights,
        unsent: Sequence[Result] = (),
    ) -> None:
        """Start it; raises if it cannot run.

        `rights`: what owners may do; `unsent`: results that an earlier life could not publish.
        """
        self.definition = definition
        self._rights = rights
        self._demand_rights()
        self.why = ""
        #: Whether it ended because its owner's rights did not let it go on.
        self.is_held = False
        self.batches = 0
        self._lake = lake
        self._journals = {one.id: one for one in journals}
        self._aside = aside
        self._lock = threading.Lock()
        self._doing = ""
        self._thread = 0
        self._connection: Any = None
        self._idle = threading.Event()
        self._idle.set()
        self.shape, columns = judged(lake, definition)
        self.alerting: AlertResults | None = None
        self.publisher = ResultPublisher(
            session,
            f"{definition.kind}/{definition.name}",
            may_put=lambda key: rights.may_put(definition.owner, key, time.monotonic()),
            unsent=unsent,
        )
        try:
            keep = _kept(lake.config, f"{definition.kind}/{definition.name}/**")
            if definition.kind == "alert":
                self.alerting = AlertResults(
                    definition, lake.place, self.publisher, aside, lake.config.vacuum_age, keep
                )
                self.results = self.alerting.results
            else:
                self.results = ResultTable(
                    lake.place, definition, columns, lake.config.vacuum_age, keep
                )
            self._feeds = self._opened()
            self.feed()
            self.query = self._started()
        except BaseException:
            self.publisher.close()
            raise

    @property
    def app(self) -> str:
        """What the batches are called in the log of the table."""
        return f"{self.definition.kind}/{self.definition.id}"

    def hindrance(self) -> str:
        """Why its owner's rights do not let it run now; empty: they do."""
        return self._rights.hindrance(self.definition, time.monotonic())

    def _demand_rights(self) -> None:
        why = self.hindrance()
        if why:
            raise RightsChanged(why)

    # --- Spark ----------------------------------------------------------------------------------

    def _started(self) -> StreamingQuery:
        from pyspark.errors import PySparkException

        checkpoint = self._aside / "checkpoint"
        known = any((checkpoint / "offsets").glob("[0-9]*"))
        if not known and self.results.reached(self.app) is not None:
            raise LocalError(f"how far it is was lost ({checkpoint}); drop it and create it again")
        spark = self._session()
        try:
            frame = self._frame(spark)
            replacing = self._replacing(frame)
            context: Any = spark.sparkContext
            # Beside the pipeline and questions, not behind them.
            context.setLocalProperty("spark.scheduler.pool", "views")
            started: StreamingQuery = (
                frame.writeStream.foreachBatch(
                    lambda rows, number: self._batch(rows, number, replacing)
                )
                .outputMode("update" if replacing else "append")
                .option("checkpointLocation", str(checkpoint))
                .trigger(processingTime=EVERY)
                .start()
            )
        except PySparkException as error:
            raise LocalError(one_line(str(error))) from error
        return started

    def _session(self) -> SparkSession:
        spark = self._lake.spark.newSession()
        for name, value in (session_conf() | CONF).items():
            spark.conf.set(name, value)
        spark.dataSource.register(TableRowsSource)
        return spark

    def _frame(self, spark: SparkSession) -> DataFrame:
        """The question over streams instead of tables."""
        definition = self.definition
        folders = json.dumps([journal.path for journal in self._journals.values()])
        for name, table in self._lake.tables().items():
            if name not in self._lake.ask(definition.sql).tables:
                continue
            columns = ", ".join(f"`{f.name}` {spark_type(f.type)}" for f in table.schema)
            if name == LATEST:
                reader: Any = spark.read.format("zenlake-newest").schema(columns)
                options = {"lake": self._lake.place.uri, "journals": folders}
                newest = reader.options(**options).load()
                visible_rows(newest, definition.access).createOrReplaceTempView(name)
                continue
            feed = self._feeds[name]
            # A file for each batch, so that the number of the one is that of the other.
            stream = spark.readStream.schema(columns).option("maxFilesPerTrigger", 1)
            rows = stream.option("cleanSource", "delete").parquet(str(feed.folder))
            # Beneath all else: not even a watermark is moved by rows that the owner may not see.
            frame = visible_rows(rows, definition.access)
            if self.shape.grouped or self.shape.joined:
                frame = frame.withWatermark("time", f"{definition.late} seconds")
            frame.createOrReplaceTempView(name)
        alert = definition.kind == "alert"
        return flattened(spark.sql(conditional(definition.sql) if alert else definition.sql))

    def _opened(self) -> dict[str, TableStream]:
        """The tables that grow as streams, from where it began: the same for all its lives."""
        page = self._aside / "start.json"
        streams = _streams(self._lake, self.definition.sql)
        if not page.exists():
            known = {id: [0] * one.partitions for id, one in self._journals.items()}
            start = {} if self.definition.history else {n: at(t, known) for n, t in streams.items()}
            fresh = page.with_suffix(".new")
            fresh.write_text(json.dumps(start), "utf-8")
            fresh.replace(page)
        starts = json.loads(page.read_text("utf-8"))
        return {
            name: TableStream(self._aside, table, starts.get(name, {}), table.schema)
            for name, table in streams.items()
        }

    def feed(self) -> None:
        """Give Spark what the tables have since."""
        for feed in self._feeds.values():
            feed.more({id: one.partitions for id, one in self._journals.items()})

    def _replacing(self, frame: DataFrame) -> bool:
        """Whether groups never end, so that their newest values take the place of older ones."""
        return self.shape.grouped and not is_append_possible(frame)

    # --- what it finds --------------------------------------------------------------------------

    def _batch(self, frame: DataFrame, number: int, replacing: bool) -> None:
        self._connection = thread_connection(frame.sparkSession.sparkContext)
        self._thread = threading.get_ident()
        self._idle.clear()
        try:
            self._demand_rights()
            self._doing = f"while Spark computes batch {number}"
            if self.alerting is not None:
                subject = self.shape.subject if self.shape.grouped else None
                rows = collected(changed(frame, subject), BOUNDS)
                self._demand_rights()
                self._doing = f"while batch {number} is kept and published"
                self.alerting.heard(rows, subject, number, self.app)
            else:
                rows = collected(frame, BOUNDS)
                self._demand_rights()
                self._doing = f"while batch {number} is kept and published"
                self._view(rows, number, replacing)
        except BaseException as error:
            self.is_held = self.is_held or isinstance(error, RightsChanged)
            self.why = self.why or told_of(error)
            if isinstance(error, Exception):
                raise
            # py4j answers Spark for an `Exception` only, and Spark would wait for ever. A panic in
            # an extension module is none.
            raise RuntimeError(f"batch {number} failed: {error!r}") from error
        finally:
            self._doing = ""
            self._thread = 0
            self._connection = None
            self._idle.set()
        self.batches += 1

    def _view(self, rows: pa.Table, number: int, replacing: bool) -> None:
        if not rows.num_rows:
            return
        before = self.results.reached(self.app)
        if before is None or before < number:
            moved = {self.app: (before, number)}
            if replacing:
                self.results.replace(rows, self.shape.subject, moved)
            else:
                self.results.append(rows, moved)
        for row in sorted(rows.to_pylist(), key=_order):
            self.publisher.put(chunks_of(row, self.shape.subject), row)
        self.results.keep_in_shape()

    # --- how it is ------------------------------------------------------------------------------

    def look(self) -> bool:
        """Whether it still runs; if not, `why` says why."""
        if self.query.isActive:
            return True
        if not self.why:
            error = self.query.exception()
            self.why = "it was stopped" if error is None else told_of(error)
        return False

    def position(self) -> tuple[list[list[int]], float | None]:
        """How far it is in all journals, for each table; and its watermark, if it has one."""
        from datetime import datetime

        progress: Any = self.query.lastProgress
        if progress is None:
            return [], None
        positions: list[list[int]] = []
        for source in progress["sources"]:
            end = source["endOffset"] or source["startOffset"]
            offset = json.loads(end) if isinstance(end, str) else end
            for name, feed in self._feeds.items():
                if f"/input/{name}]" in source["description"]:
                    reached = feed.reached(int(offset["logOffset"])) if offset else None
                    positions.append(self._flat(reached or {}))
        mark = (progress.get("eventTime") or {}).get("watermark")
        return positions, None if mark is None else datetime.fromisoformat(mark).timestamp()

    def _flat(self, reached: Position) -> list[int]:
        """The offsets of one journal after the other."""
        return [
            offset
            for id, journal in self._journals.items()
            for offset in reached.get(id, [0] * journal.partitions)
        ]

    def seen(self) -> tuple[bool, int, str]:
        """Whether it is in a micro-batch, how many it has finished, and what it does."""
        status: Any = self.query.status
        return bool(status["isTriggerActive"]), self.batches, f"{status['message']} {self._doing}"

    def where(self) -> str:
        """What it does at this moment, for who asks why it stands still."""
        doing = self._doing or f"while Spark says: {self.query.status['message']}"
        frame = sys._current_frames().get(self._thread)
        if frame is None:
            return doing
        at = traceback.extract_stack(frame)[-1]
        return f"{doing}, in {at.name} ({Path(at.filename).name}:{at.lineno})"

    def stacks(self) -> str:
        """Where its threads are, in Python and in Java: what to send to who can mend it."""
        from py4j.protocol import Py4JError

        lines = []
        frame = sys._current_frames().get(self._thread)
        if frame is not None:
            lines += [line.rstrip() for line in traceback.format_stack(frame)]
        try:
            lines += java_stacks(self._lake.spark.sparkContext, str(self.query.runId))
        except Py4JError as error:
            lines.append(f"  Java does not tell: {told_of(error)}")
        return "\n".join(lines[:MOST_LINES])

    def stop(self, *, stuck: bool = False) -> bool:
        """End it; it goes on from there when it is started again.

        `stuck`: its batch will not answer, and is not waited for. False if Spark does not end it
        all the same.
        """
        with self._lock:
            try:
                # A batch that Spark breaks off makes it write a stack of a thousand lines.
                if not stuck:
                    self._idle.wait(FINISH)
                    if self._stopped():
                        return True
                self.results.end()
                connection = self._connection
                if connection is not None:
                    with suppress(OSError, AttributeError):
                        connection.socket.shutdown(socket.SHUT_RDWR)
                return self._stopped()
            finally:
                self.publisher.close()

    def _stopped(self) -> bool:
        from py4j.protocol import Py4JError
        from pyspark.errors import PySparkException

        try:
            if self.query.isActive:
                self.query.stop()
        except (PySparkException, Py4JError):
            return not self.query.isActive
        return True


def told_of(error: BaseException) -> str:
    """Why something failed, in one line."""
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    if isinstance(error, PySparkException | Py4JError):
        return one_line(str(error))
    return reason_of(error)


def _order(row: dict[str, Any]) -> tuple[Any, ...]:
    """Windows in the order of time, so that the newest is published last."""
    return tuple(
        str(value) for name, value in row.items() if name.endswith(("_start", "_end", "time"))
    )
