"""The results of an alert: what was raised and cleared, decided by `raising`, kept and published.

What the decision needs to know of the past is in a file beside the definition, one for each step;
the commit of the table says which step is the last. So table and memory are never apart: after a
death the file of the step that was committed is read, and a file without a commit counts for
nothing.
"""

from __future__ import annotations

import json
import os
import threading
import uuid
from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, final

import pyarrow as pa

from zenlake.lake.continuous.alert_state import AlertState, Change
from zenlake.lake.continuous.query_shape import HOLDS, SUBJECT, TIME, chunks_of
from zenlake.lake.continuous.result_table import Moves, ResultTable
from zenlake.lake.model.continuous_query import ContinuousQuery
from zenlake.lake.model.json_values import plain

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from zenlake.lake.continuous.publishing import ResultPublisher
    from zenlake.lake.table.location import LakeLocation

__all__ = ["COLUMNS", "AlertResults", "changed", "heard", "shown"]

INSTANT: Final = pa.timestamp("us", "UTC")
COLUMNS: Final = pa.schema(
    [
        ("time", INSTANT),
        ("key", pa.string()),
        ("state", pa.string()),
        ("since", INSTANT),
        ("row", pa.string()),
    ]
)
"""The table of an alert: when what was raised or cleared, and the row as JSON."""


def changed(frame: DataFrame, subject: Sequence[str] | None) -> DataFrame:
    """Of the rows of an alert's question those at which the condition changed for their subject,
    and the first of each: no others make a difference."""
    from pyspark.sql import Window
    from pyspark.sql import functions as f

    about = [SUBJECT] if subject is None else list(subject)
    places = [f.col(f"`{name}`") for name in about] or [f.lit(1)]
    before = f.lag(HOLDS).over(Window.partitionBy(*places).orderBy(TIME))
    held = f.coalesce(f.col(HOLDS), f.lit(False))
    first = frame.filter(f.col(TIME).isNotNull()).withColumn(HOLDS, held)
    marked = first.withColumn("_before", before)
    return marked.filter(f.expr(f"_before IS NULL OR _before <> {HOLDS}")).drop("_before")


def heard(raising: AlertState, rows: pa.Table, subject: Sequence[str] | None) -> list[Change]:
    """What rows of `changed` raise and clear."""
    times = rows[TIME].cast(pa.int64()).to_pylist()
    changes: list[Change] = []
    for time, row in sorted(zip(times, rows.to_pylist(), strict=True), key=lambda one: one[0]):
        about = chunks_of(row, [SUBJECT] if subject is None else subject)
        holds = row[HOLDS]
        columns = {name: plain(v) for name, v in row.items() if name not in (TIME, HOLDS, SUBJECT)}
        changes += raising.heard(time, about, holds, columns)
    return changes


def shown(name: str, change: Change) -> dict[str, Any]:
    """What is published of a change."""
    return {
        "alert": name,
        "state": change.state,
        "key": change.subject,
        "time": _moment(change.time).isoformat(),
        "since": _moment(change.since).isoformat(),
        "row": dict(change.row),
    }


def _moment(micros: int) -> datetime:
    return datetime.fromtimestamp(micros // 1_000_000, UTC).replace(microsecond=micros % 1_000_000)


@final
class AlertResults:
    """Decides, keeps and publishes; called by Spark's thread and by the clock's."""

    def __init__(
        self,
        definition: ContinuousQuery,
        place: LakeLocation,
        publisher: ResultPublisher,
        aside: Path,
        age: float,
        keep: float | None = None,
    ) -> None:
        """Go on where the table says that it was; `age` and `keep` as `ResultTable` has them."""
        self.definition = definition
        self.results = ResultTable(place, definition, COLUMNS, age, keep)
        self.raising = AlertState(
            round(definition.hold * 1e6), round(max(60.0, definition.late) * 1e6)
        )
        self._publisher = publisher
        self._folder = aside / "steps"
        self._folder.mkdir(exist_ok=True)
        for page in self._folder.glob(".*"):
            page.unlink(missing_ok=True)  # begun by one that died, or that was ended
        self._lock = threading.Lock()
        self._app = f"step/{definition.id}"
        self._step = self.results.reached(self._app) or 0
        if self._step:
            page = json.loads(self._page(self._step).read_text("utf-8"))
            self.raising.load(page["raising"])
            # Whether these were published before the end is not known.
            self._publish([Change(**one) for one in page["changes"]])

    def heard(self, rows: pa.Table, subject: Sequence[str] | None, number: int, app: str) -> None:
        """A micro-batch of this number found these rows."""
        with self._lock:
            before = self.results.reached(app)
            if before is not None and before >= number:
                return
            then = self.raising.plain()
            changes = heard(self.raising, rows, subject)
            if changes or self.raising.plain() != then:
                self._commit(changes, {app: (before, number)})

    def passed(self, now: int) -> None:
        """Everything that was published before this moment (µs) has been heard."""
        # Who looks after all views and alerts calls this, and waits for none of their batches:
        # it calls again.
        if not self._lock.acquire(blocking=False):
            return
        try:
            changes = self.raising.passed(now)
            if changes:
                self._commit(changes, {})
        finally:
            self._lock.release()

    def _commit(self, changes: Sequence[Change], moved: Moves) -> None:
        step = self._step + 1
        page = {"raising": self.raising.plain(), "changes": [asdict(one) for one in changes]}
        fresh = self._folder / f".{uuid.uuid4().hex}"
        with fresh.open("w", encoding="utf-8") as out:
            out.write(json.dumps(page))
            out.flush()
            os.fsync(out.fileno())
        self.results.demand_open()
        fresh.replace(self._page(step))
        rows = [
            (one.time, one.subject, one.state, one.since, json.dumps(one.row, ensure_ascii=False))
            for one in changes
        ]
        columns = (
            [
                pa.array(
                    list(column), pa.int64() if pa.types.is_timestamp(field.type) else field.type
                )
                for field, column in zip(COLUMNS, zip(*rows, strict=True), strict=True)
            ]
            if rows
            else []
        )
        table = pa.table(columns, COLUMNS.names).cast(COLUMNS) if rows else COLUMNS.empty_table()
        self.results.append(table, {self._app: (self._step or None, step), **moved})
        self._page(self._step).unlink(missing_ok=True)
        self._step = step
        self._publish(changes)
        self.results.keep_in_shape()

    def _publish(self, changes: Sequence[Change]) -> None:
        for change in changes:
            self._publisher.put(change.subject, shown(self.definition.name, change))

    def _page(self, step: int) -> Path:
        return self._folder / f"{step}.json"
