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
from zenlake.lake.continuous.generation import Position, begin_generation
from zenlake.lake.continuous.owner_rights import OwnerRights
from zenlake.lake.continuous.planning import LATEST, PlannedQuery, refused_by
from zenlake.lake.continuous.publishing import Result, ResultPublisher
from zenlake.lake.continuous.query_shape import chunks_of
from zenlake.lake.continuous.result_table import MOST_ROWS, ResultTable, app_of
from zenlake.lake.continuous.table_stream import TableStream, at
from zenlake.lake.ingest.failure_reason import reason_of
from zenlake.lake.model.continuous_query import ContinuousQuery
from zenlake.lake.query.executor import collected, one_line
from zenlake.lake.query.limits import QueryLimits
from zenlake.lake.table.delta import Table
from zenlake.spark.jvm import java_stacks, thread_connection

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery

    from zenlake.api.session import Session
    from zenlake.journal import Journal
    from zenlake.lake.model.config import LakeConfig
    from zenlake.lake.query.lake import Lake

__all__ = ["RightsChanged", "RunningQuery", "told_of"]

EVERY: Final = "1 second"
FINISH: Final = 2.0
"""Seconds that a batch has to finish before its query is ended."""
MOST_LINES: Final = 200
"""Of stacks that are written to the log."""
BOUNDS: Final = QueryLimits(rows=MOST_ROWS, bytes=64 << 20)


class RightsChanged(LocalError):
    """The rights of its owner do not let a view or an alert run; the message says why."""


def _kept(config: LakeConfig, keys: str) -> float | None:
    """How long results that are published on these keys are kept; the first rule decides."""
    return next((rule.age for rule in config.retain if intersects(rule.keys, keys)), None)


@final
class RunningQuery:
    """A view or an alert, from its start to its end."""

    def __init__(
        self,
        definition: ContinuousQuery,
        planned: PlannedQuery,
        lake: Lake,
        journals: Sequence[Journal],
        session: Session | None,
        aside: Path,
        rights: OwnerRights,
        unsent: Sequence[Result] = (),
    ) -> None:
        """Start what `plan_definition` made of it; raises if it cannot run.

        `rights`: what owners may do; `unsent`: results that an earlier life could not publish.
        """
        self.definition = definition
        self._rights = rights
        self._demand_rights()
        self.why = ""
        #: Whether it ended because its owner's rights did not let it go on.
        self.is_held = False
        self.batches = 0
        #: When it was started, by a steady clock.
        self.began = time.monotonic()
        self._lake = lake
        self._journals = {one.id: one for one in journals}
        self._aside = aside
        self._lock = threading.Lock()
        self._doing = ""
        self._thread = 0
        self._connection: Any = None
        self._idle = threading.Event()
        self._idle.set()
        self.shape = planned.judged.shape
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
                    lake.place, definition, planned.judged.columns, lake.config.vacuum_age, keep
                )
            self._generation = planned.generation
            self._feeds = self._opened(planned)
            self.feed()
            self.query = self._started(planned)
        except BaseException:
            self.publisher.close()
            raise

    @property
    def app(self) -> str:
        """What the batches are called in the log of the table."""
        return self._generation.app(app_of(self.definition))

    def hindrance(self) -> str:
        """Why its owner's rights do not let it run now; empty: they do."""
        return self._rights.hindrance(self.definition, time.monotonic())

    def _demand_rights(self) -> None:
        why = self.hindrance()
        if why:
            raise RightsChanged(why)

    # --- Spark ----------------------------------------------------------------------------------

    def _started(self, planned: PlannedQuery) -> StreamingQuery:
        from pyspark.errors import PySparkException

        checkpoint = self._generation.folder(self._aside) / "checkpoint"
        known = any((checkpoint / "offsets").glob("[0-9]*"))
        if not known and self.results.reached(self.app) is not None:
            raise LocalError(f"how far it is was lost ({checkpoint}); drop it and create it again")
        replacing = planned.replaces_groups
        try:
            context: Any = self._lake.spark.sparkContext
            # Beside the pipeline and questions, not behind them.
            context.setLocalProperty("spark.scheduler.pool", "views")
            started: StreamingQuery = (
                planned.frame.writeStream.foreachBatch(
                    lambda rows, number: self._batch(rows, number, replacing)
                )
                .outputMode("update" if replacing else "append")
                .option("checkpointLocation", str(checkpoint))
                .trigger(processingTime=EVERY)
                .start()
            )
        except PySparkException as error:
            raise refused_by(error) from error
        return started

    def _opened(self, planned: PlannedQuery) -> dict[str, TableStream]:
        """The tables that grow as streams, from where it began: the same for all its lives."""
        named = planned.tables
        page = self._aside / "start.json"
        tables: dict[str, Table] = {}
        for name in named.keys() - {LATEST}:
            table = self._lake.catalog.private(name)
            if table is None:
                raise LocalError(f"there is no table '{name}' any more")
            tables[name] = table
        if not page.exists():
            known = {id: [0] * one.partitions for id, one in self._journals.items()}
            start = {} if self.definition.history else {n: at(t, known) for n, t in tables.items()}
            fresh = page.with_suffix(".new")
            fresh.write_text(json.dumps(start), "utf-8")
            fresh.replace(page)
        starts = json.loads(page.read_text("utf-8"))
        folder = planned.generation.folder(self._aside)
        folder.mkdir(mode=0o700, exist_ok=True)
        # Groups that begin again are never seen with some of their rows only.
        whole = planned.replaces_groups and planned.generation.number > 0
        feeds = {
            name: TableStream(
                folder,
                table,
                starts.get(name, {}),
                named[name],
                every=planned.grows,
                whole=whole,
                read=planned.generation.read.get(name, ()),
            )
            for name, table in tables.items()
        }
        begin_generation(self._aside, planned.generation)
        return feeds

    def feed(self) -> None:
        """Give Spark what the tables have since."""
        for feed in self._feeds.values():
            feed.more({id: one.partitions for id, one in self._journals.items()})

    # --- what it finds --------------------------------------------------------------------------

    def _batch(self, frame: DataFrame, number: int, replacing: bool) -> None:
        self._connection = thread_connection(frame.sparkSession.sparkContext)
        self._thread = threading.get_ident()
        self._idle.clear()
        try:
            self._demand_rights()
            self._doing = f"while Spark computes batch {number}"
            if number < self._generation.known_batches:
                frame.write.format("noop").mode("overwrite").save()
            elif self.alerting is not None:
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
