"""Commits to typed tables: tasks agree on columns, columns widen, the quarantine gets its part.

The commit names the files of the quarantine that belong to it, and the next one commits those that
are not yet there: the two tables agree.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Any, final

from zenlake.lake.ingest.plan import JournalRange
from zenlake.lake.ingest.quarantine import Quarantine
from zenlake.lake.ingest.schema_agreement import agreed, demand_written, only
from zenlake.lake.ingest.spark_tasks import Tasks
from zenlake.lake.ingest.step import Step
from zenlake.lake.ingest.stopped_tables import StoppedTables
from zenlake.lake.ingest.table_offsets import TableOffsets
from zenlake.lake.ingest.task import QUARANTINED, IngestResult, IngestTask, TypedFiles
from zenlake.lake.ingest.widening import columns_of, inexact_columns, widen
from zenlake.lake.model.column_types import ARROW
from zenlake.lake.model.typed_table import Columns, TypedTable
from zenlake.lake.table.data_files import DataFile
from zenlake.lake.table.delta import Table
from zenlake.lake.table.location import LakeLocation

__all__ = ["TypedCommits"]

log = logging.getLogger("zenlake.lake")


@final
class TypedCommits:
    """What tasks wrote, committed to typed tables and to the quarantine."""

    def __init__(
        self,
        place: LakeLocation,
        tasks: Tasks,
        offsets: TableOffsets,
        stopped: StoppedTables,
        tables: Mapping[str, Table],
        samples: Table,
    ) -> None:
        """`tables`: the typed tables that are open, by name; the mapping changes."""
        self._place = place
        self._tasks = tasks
        self._offsets = offsets
        self._stopped = stopped
        self._tables = tables
        self._samples = samples
        self.quarantine: Quarantine | None = None
        # Columns of each table that were found to have numbers that no double holds.
        self._inexact: dict[str, frozenset[str]] = {}

    def open_quarantine(self, now: float) -> None:
        """Open the quarantine, if it is not open and it is time to try."""
        if self.quarantine is None and self._stopped.due(QUARANTINED, now):
            with self._stopped.alone(QUARANTINED, now):
                self._opened()

    def _opened(self) -> Quarantine:
        """The quarantine; it may have to be tried again until it can be opened."""
        if self.quarantine is None:
            fed = {self._samples.name: self._samples, **self._tables}
            self.quarantine = Quarantine(self._place, fed, self._tasks)
            self._stopped.went_on(QUARANTINED)
        return self.quarantine

    def columns(self, spec: TypedTable) -> Columns:
        """Return the payload columns that a table has now, and which of them may not widen."""
        columns = columns_of(self._tables[spec.name], spec)
        return columns.fixing(self._inexact.get(spec.name, frozenset()))

    def commit(
        self,
        spec: TypedTable,
        plan: Sequence[JournalRange],
        items: Sequence[IngestTask],
        written: Sequence[IngestResult],
        done: Step,
    ) -> None:
        """Commit what tasks wrote for a table, if the plan has rows for it."""
        table = self._tables[spec.name]
        moved = self._offsets.moved(table, plan)
        if not moved:
            return
        known = dict((one.name, columns) for one, columns in items[0].typed)[spec.name]
        parts = [one.typed.get(spec.name, TypedFiles()) for one in written]
        demand_written(parts)

        def again(places: list[int], columns: Columns) -> list[TypedFiles]:
            redo = [only(items[n], spec, columns) for n in places]
            done = self._tasks.run(redo, "agree on columns")
            redone = [one.typed.get(spec.name, TypedFiles()) for one in done]
            demand_written(redone)
            return redone

        columns, parts = agreed(known, parts, again)
        wide = known.widened(columns)
        kept = inexact_columns(table, wide, self._tasks) if wide else frozenset()
        if kept:
            # Their rows with fractions go to quarantine: the tasks decode again.
            self._inexact[spec.name] = self._inexact.get(spec.name, frozenset()) | kept
            known = known.fixing(kept)
            parts = again(list(range(len(items))), known)
            columns, parts = agreed(known, parts, again)
            wide = known.widened(columns)
        if wide:
            log.info("%s: %s", spec.name, ", ".join(f"{n} becomes {k}" for n, k in wide.items()))
            widen(table, wide, self._tasks, self._offsets.committed(table))
        table.grow({name: ARROW[kind] for name, kind in columns.items()})
        files = [file for part in parts for file in part.files]
        refused = [file for part in parts for file in part.refused]
        done.quarantined += sum(file.rows for file in refused)
        if not files and not refused:
            for p, end in [(s.partition, s.end) for s in plan if spec.name in s.starts]:
                if self._offsets.pass_over(table, p, end):
                    self.note_passed(table, p, end)
            return
        self.append(table, files, refused, moved)
        done.commits[spec.name] = table.version

    def note_passed(self, table: Table, partition: int, end: int) -> None:
        """Let the log of a table hear of a range that had no row for it."""
        app = self._offsets.app(partition)
        start = table.committed(app)
        if start is None or start < end:
            self.append(table, [], [], {app: (start, end)})

    def append(
        self,
        table: Table,
        files: Sequence[DataFile],
        refused: Sequence[DataFile],
        moved: Mapping[str, tuple[int | None, int]],
    ) -> None:
        """Add rows to a table, and those that it refused to the quarantine."""
        note: dict[str, Any] = {
            "kind": "append",
            "quarantine": [file.plain() for file in refused],
            "moved": {app: end for app, (_, end) in moved.items()},
        }
        table.refresh()
        quarantine = self._opened()
        quarantine.settle(table)
        # What another driver promises now must be settled first.
        table.append(files, moved, note, rewrites=table.rewrites)
        quarantine.settle(table)
