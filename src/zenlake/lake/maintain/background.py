"""Upkeep beside a running pipeline: compaction, retention, vacuum and their mirror, when due.

`BackgroundMaintenance` does what is due at a moment that it is told, or follows the clock on a
thread of its own.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import final

from zenlake.clock.age_clock import AgeClock
from zenlake.clock.throttle import Throttle
from zenlake.journal.writing.steady import steady_time
from zenlake.lake.ingest.deletions import purge
from zenlake.lake.ingest.failure_reason import reason_of
from zenlake.lake.ingest.pipeline import Pipeline
from zenlake.lake.ingest.spark_tasks import Tasks
from zenlake.lake.ingest.task import QUARANTINED
from zenlake.lake.maintain.upkeep import compact, promised, retain, retains_more, vacuum
from zenlake.lake.table.delta import Table

__all__ = ["BackgroundMaintenance", "Complain", "Schedule"]

log = logging.getLogger("zenlake.lake")

Complain = Callable[[str], None]
"""Told, in one line, what went wrong."""


@dataclass(frozen=True, slots=True)
class Schedule:
    """Seconds between two times that something is done."""

    fold: float = 1.0
    """Looks whether `latest` or `gaps` should be written."""
    status: float = 10.0
    """The status is also written when something was committed or went wrong."""
    compact: float = 20.0
    retain: float = 600.0
    vacuum: float = 120.0
    measure: float = 60.0


@final
class BackgroundMaintenance:
    """Keeps the tables in shape: compaction, retention, vacuum, each when it is due."""

    def __init__(
        self,
        pipeline: Pipeline,
        tasks: Tasks,
        schedule: Schedule | None = None,
        complain: Complain | None = None,
    ) -> None:
        """It looks at the tables with eyes of its own, so that it may have its own thread."""
        self.bytes_total = 0
        self.error: tuple[str, float] | None = None
        self.over = threading.Event()
        self._pipeline = pipeline
        self._tasks = tasks
        self._schedule = schedule or Schedule()
        self._complain = complain or log.warning
        self._throttle = Throttle()
        #: By what ages are judged, from the first look on.
        self._ages: AgeClock | None = None
        #: Seconds by which the clock is ahead, for which nothing is deleted that it would delete.
        self.clock_ahead = 0.0
        self._done: dict[str, float] = {}

    def follow(self) -> None:
        """Do what is due, until it is over."""
        while not self.over.wait(min(1.0, self._schedule.compact)):
            self.turn(steady_time(), time.time())

    @property
    def problems(self) -> tuple[str, ...]:
        """What keeps old rows in the tables."""
        if not self.clock_ahead:
            return ()
        ahead = timedelta(seconds=int(self.clock_ahead))
        return (
            f"the clock is {ahead} ahead of when rows were recorded before; no rows are dropped "
            "for that until it has been so for a day: if the date is wrong, set it right",
        )

    def turn(self, now: float, wall: float) -> None:
        """Do what is due now; what fails is told, and tried again the next time.

        `now` is of a clock that nobody sets, `wall` of the one that has a date.
        """
        if self._ages is not None:
            self._ages.time(wall, now)  # a step is seen in the moment in which it happens
        due = [name for name in ("measure", "compact", "retain", "vacuum") if self._due(name, now)]
        if not due:
            return
        try:
            if self._ages is None:
                self._ages = AgeClock(self._recorded_at())
            judged = self._ages.time(wall, now)
            if "measure" in due:
                self.bytes_total = sum(size for _, size, _ in self._pipeline.place.files())
            if due != ["measure"]:
                self._keep(due, judged, wall)
        except Exception as error:
            if self.over.is_set():
                return
            reason = reason_of(error)
            self.error = reason, time.time()
            line = self._throttle.line(now, reason)
            if line is not None:
                self._complain(f"upkeep: {line}")

    def _due(self, name: str, now: float) -> bool:
        # The first retention can wait: it reads every file.
        last = self._done.setdefault(name, now if name == "retain" else float("-inf"))
        every = getattr(self._schedule, name)
        if name == "vacuum":
            # It reads the log of all that time.
            every = max(every, self._pipeline.config.history / 50)
        if now - last < every:
            return False
        self._done[name] = now
        return True

    def _recorded_at(self) -> list[float]:
        """Return times at which rows came: those of segments of the journal, and of files."""
        journal = self._pipeline.journal
        segments = [one for n in range(journal.partitions) for one in journal.segments(n)]
        table = Table.open(self._pipeline.place, "samples")
        files = [] if table is None else table.files()
        sealed = [segment.closed for segment in segments if segment.sealed]
        return [*sealed, *(file.modified / 1000 for file in files)]

    def _keep(self, due: list[str], judged: float, wall: float) -> None:
        # Table objects are not shared between threads: these look for themselves.
        tables: dict[str, Table] = {}
        config = self._pipeline.config
        mirror = self._pipeline.iceberg
        failed: list[Exception] = []
        waiting = False
        # Views and alerts keep their own tables in shape; they are only published.
        names = {*self._pipeline.tables, *(self._pipeline.place.folders() if mirror else ())}
        for name in names:
            # A table that cannot be kept in shape keeps no other from it.
            try:
                table = Table.open(self._pipeline.place, name, refused=True)
                if table is None:
                    continue
                if table.has_deletions:
                    purge(table, self._tasks)
                table.demand_understood()
                tables[name] = table
                if "compact" in due and not self.over.is_set():
                    compact(table, self._tasks, config)
                if "retain" in due and not self.over.is_set():
                    retain(table, self._tasks, config.retain, now=judged)
                    waiting |= retains_more(table, config.retain, judged, wall)
                if mirror is not None:
                    mirror.publish(table)
            except Exception as error:
                failed.append(error)
        held = wall - judged
        if "retain" in due or not held:
            is_new = waiting and not self.clock_ahead
            self.clock_ahead = held if waiting else 0.0
            for problem in self.problems if is_new else ():
                self._complain(f"upkeep: {problem}")
        if "vacuum" in due and not self.over.is_set():
            keep = promised(tables)
            for name, table in tables.items():
                if failed and name == QUARANTINED:
                    continue  # what a table that cannot be read has promised it is not known
                # The ages of files are those of the wall clock.
                vacuum(table, config.kept + held, keep if name == QUARANTINED else ())
                if mirror is not None:
                    mirror.sweep(table, config.kept + held)
        if failed:
            raise failed[0]
