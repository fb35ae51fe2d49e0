"""One flow as a streaming query of Spark.

query = started(planned, target, …, once=False)
query.look()                # every second or so: how far it is
query.is_active, query.rows, query.progress
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, final

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.pipelines.output import Sink

from zenlake.errors import LocalError
from zenlake.lake.pipelines.auto_cdc import ChangeWriter, write_changes
from zenlake.lake.pipelines.expected_rows import marked
from zenlake.lake.pipelines.expecting_sink import FORMAT, sink_options
from zenlake.spark import jvm

if TYPE_CHECKING:
    from pyspark.pipelines.output import Output
    from pyspark.sql.streaming.query import StreamingQuery

    from zenlake.lake.pipelines.graph import PlannedFlow

__all__ = ["FlowQuery", "behind_versions", "started"]

EVERY: Final = "1 second"
"""How often a flow looks for new rows."""
POOL: Final = "pipelines"
"""The pool of Spark's scheduler that flows share: beside ingest and questions, not behind them."""
WAIT_SECONDS: Final = 1


def started(
    planned: PlannedFlow,
    target: Output,
    *,
    name: str,
    path: str,
    application: str,
    checkpoint: Path,
    once: bool,
) -> FlowQuery:
    """Start a flow, or go on where it was.

    `path`: the folder of the table that it writes to; `application`: what its batches are called
    in the log of that table; `once`: stop after the rows that are there now.
    """
    frame = planned.frame
    frame.sparkSession.sparkContext.setLocalProperty("spark.scheduler.pool", POOL)
    own: ChangeWriter | None = None
    if planned.changes is not None:
        writer, own = write_changes(
            frame, planned.changes, path=path, application=application, checkpoint=checkpoint
        )
    elif isinstance(target, Sink):
        writer = frame.writeStream.format(target.format).options(**target.options)
    elif planned.expectations:
        options = sink_options(planned.expectations, application)
        writer = marked(frame, planned.expectations).writeStream.format(FORMAT)
        writer = writer.options(path=path, txnAppId=application, mergeSchema=True, **options)
    else:
        writer = frame.writeStream.format("zenlake").options(
            path=path, txnAppId=application, mergeSchema=True
        )
    checkpoint.mkdir(parents=True, exist_ok=True, mode=0o700)
    writer = (
        writer.outputMode("append").queryName(name).option("checkpointLocation", str(checkpoint))
    )
    writer = writer.trigger(availableNow=True) if once else writer.trigger(processingTime=EVERY)
    # Spark looks for a registered format in the session that is active on the thread.
    with jvm.active(frame.sparkSession):
        return FlowQuery(writer.start(), own)


@final
class FlowQuery:
    """A streaming query, and how far it is."""

    def __init__(self, query: StreamingQuery, changes: ChangeWriter | None = None) -> None:
        """Follow a query that was started just now.

        `changes`: what writes its batches, if Spark does not.
        """
        self._query = query
        self._changes = changes
        self._seen = -1
        self.batches = 0
        self.rows = 0
        """Rows that it has read since it was started."""
        self.progress: dict[str, Any] = {}
        """The newest progress, in Spark's own words."""
        self.behind_versions = 0
        """Commits of the tables that it reads and has not read."""

    @property
    def is_active(self) -> bool:
        """Return True while it runs."""
        return bool(self._query.isActive)

    def look(self) -> None:
        """Take in what Spark reports of the batches since the last look."""
        reports = self._query.recentProgress
        if reports:
            self.behind_versions = behind_versions(
                (one.endOffset, one.latestOffset) for one in reports[-1].sources
            )
        for report in reports:
            number = report["batchId"]
            if number > self._seen and report["numInputRows"]:
                self._seen = number
                self.batches += 1
                self.rows += report["numInputRows"]
                self.progress = _short(report)

    def wait(self) -> None:
        """Wait until it has ended; raises what it failed with."""
        try:
            while not self._query.awaitTermination(WAIT_SECONDS):
                self.look()
        except PySparkException:
            if self._changes is not None and self._changes.failure is not None:
                raise self._changes.failure from None
            raise
        self.look()

    def failure(self) -> BaseException | None:
        """Return what it failed with."""
        found = self._query.exception()
        # Spark has only the traceback of what was raised in Python.
        own = None if self._changes is None else self._changes.failure
        return own if found is not None and own is not None else found

    def stop(self) -> None:
        """End it; it goes on from there when it is started again."""
        try:
            self._query.stop()
        except (PySparkException, Py4JError) as error:
            if self._query.isActive:
                raise LocalError(f"the query {self._query.name} does not end: {error}") from error


_SHOWN: Final = (
    "batchId", "timestamp", "numInputRows", "inputRowsPerSecond", "processedRowsPerSecond",
    "batchDuration",
)  # fmt: skip


def behind_versions(offsets: Iterable[tuple[object, object]]) -> int:
    """Return how many commits of its tables a flow has not read.

    `offsets`: of each source, where the newest batch ended and where the source ends, as JSON. A
    source of another kind than a table of the lake counts as read.
    """
    behind = 0
    for end, latest in offsets:
        versions = [_version(end), _version(latest)]
        if versions[0] is not None and versions[1] is not None:
            behind += max(0, versions[1] - versions[0])
    return behind


def _version(offset: object) -> int | None:
    try:
        page = json.loads(offset) if isinstance(offset, str) else offset
    except ValueError:
        return None
    version = page.get("version") if isinstance(page, dict) else None
    return version if isinstance(version, int) else None


def _short(report: Any) -> dict[str, Any]:
    """Return the parts of a progress that a status shows."""
    shown = {name: report[name] for name in _SHOWN}
    shown["stateRows"] = sum(one["numRowsTotal"] for one in report["stateOperators"])
    watermark = report["eventTime"].get("watermark")
    return shown if watermark is None else {**shown, "watermark": watermark}
