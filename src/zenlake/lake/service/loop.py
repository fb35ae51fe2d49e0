"""The loop around the pipeline: steps when they are due, upkeep beside it, and no failure is the
end.

    done = run(pipeline, tasks, stop=threading.Event())

`Loop` does what is due at a moment that it is told; `run` has the clock.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Final, Protocol, TypeVar, final

from zenlake.clock.throttle import LineBudget, Throttle
from zenlake.errors import ConfigError, LocalError, ZError
from zenlake.lake.ingest.failure_reason import reason_of
from zenlake.lake.ingest.freshness import Freshness
from zenlake.lake.ingest.pipeline import Pipeline
from zenlake.lake.ingest.schedule import CommitSchedule
from zenlake.lake.ingest.spark_tasks import Tasks
from zenlake.lake.ingest.step import Step
from zenlake.lake.ingest.task import QUARANTINED
from zenlake.lake.maintain.background import BackgroundMaintenance, Complain, Schedule
from zenlake.lake.maintain.status_file import read_status, write_status
from zenlake.lake.model.status import (
    BusStatus,
    FlowStatus,
    KeysWithoutTable,
    LakeStatus,
    TableStatus,
    bounded_flows,
)
from zenlake.lake.service.read_position import tell_journal
from zenlake.lake.service.step_progress import StepProgress
from zenlake.lake.table.delta import CommitConflict

__all__ = ["Loop", "LoopReport", "Schedule", "SparkEnded", "opened", "run"]

log = logging.getLogger("zenlake.lake")

T = TypeVar("T")

LOOK: Final = 0.1
"""Seconds between two looks at the journal when nothing is new."""

LOOK_AT_SPARK: Final = 2.0
"""Seconds between two looks whether Spark is still there."""

AUTO_FAR: Final = 1_000_000
"""Rows that wait for a step at most, where the load decides when it begins."""

LAST_ROWS: Final = 200_000
"""Rows that are still read when it is told to stop."""

LAST_KEYS: Final = 50
"""New keys that still get their tables then; more wait for the next start."""

LAST_STEPS: Final = 3
"""Steps that are still made then: a step may find a table, which the next one fills."""

MOST_CONFLICTS: Final = 20
"""Steps in a row that commits of others may come before, where nothing is waited for (`once`)."""

WHY: Final = 'zenlake sql "SELECT table, reason, field, count(*) FROM quarantine GROUP BY ALL"'


class SparkEnded(ZError):
    """Spark has ended, which no patience mends: the lake has to be started again."""

    def __init__(self) -> None:
        """It says what to do."""
        super().__init__(
            "Spark has ended, and the pipeline with it; start it again, it goes on where it was"
        )


class Stop(Protocol):
    """Says when to stop: a `threading.Event`, or one that signal handlers may set."""

    def is_set(self) -> bool:
        """Whether it is time to."""

    def wait(self, timeout: float | None = None) -> bool:
        """Wait for it, so many seconds at most; whether it is time."""


@dataclass(slots=True)
class LoopReport:
    """What was done since the start."""

    steps: int = 0
    rows: int = 0
    quarantined: int = 0
    lost: int = 0
    failures: int = 0
    behind: int = 0


@final
class Loop:
    """Does what is due, at the times it is told."""

    def __init__(
        self,
        pipeline: Pipeline,
        tasks: Tasks,
        *,
        every: float | None = None,
        once: bool = False,
        schedule: Schedule | None = None,
        tell: Callable[[LoopReport, Step], None] | None = None,
        complain: Complain | None = None,
        problems: Callable[[], tuple[str, ...]] = tuple,
        restarts: Callable[[], int] = int,
        stopped: Callable[[], Mapping[str, str]] = dict,
        flows: Callable[[], Sequence[FlowStatus]] = tuple,
        bus: Callable[[], BusStatus] | None = None,
        lead: Loop | None = None,
    ) -> None:
        """`every`: seconds between two commits; None lets the load decide.

        `problems`, `restarts`, `stopped`: what else is wrong, how often something was started
        again, and which views and alerts do not go on, for the status; `flows`: those of users'
        pipelines; `bus`: whether the lake is connected. With `once` nothing is waited for, and a
        failure is raised. `lead`: the loop that tells of this one too, where several journals flow
        into one lake.
        """
        self.done: LoopReport = LoopReport() if lead is None else lead.done
        self._lead = lead
        self._led: list[Loop] = []
        if lead is not None:
            lead._led.append(self)
        rows = pipeline.config.batch_rows
        self._far = 1 if once else rows if every is not None else min(rows, AUTO_FAR)
        self.commit_schedule = CommitSchedule(every, self._far)
        self.maintenance = BackgroundMaintenance(pipeline, tasks, schedule, complain)
        self._pipeline = pipeline
        self._tasks = tasks
        self._once = once
        self._schedule = schedule or Schedule()
        self._tell = tell
        self._complain = complain or log.warning
        self._problems = problems
        self._restarts = restarts
        self._stopped_queries = stopped
        self._flows = flows
        self._bus = bus
        self._bus_told: BusStatus | None = None
        self._throttle = Throttle()
        self._freshness = Freshness()
        self._progress = StepProgress(pipeline.journal.path)
        self._folds = float("-inf")
        self._error: tuple[str, float] | None = None
        #: Samples that went to quarantine since the last line about it.
        self._held = 0
        self._held_lines = LineBudget(1)
        self._written = float("-inf")
        self._alive_at = float("-inf")
        self._changed = True
        self._committed: tuple[int, ...] | None = None
        before = read_status(pipeline.place.uri)
        self._others = {} if before is None else dict(before.committed)
        for problem in pipeline.problems:
            self._complain(problem)
        self._tell_journal(float("-inf"))

    def turn(self, now: float) -> float | None:
        """Do what is due now; gives the seconds until it should be asked again.

        With `once`, None when everything is done.
        """
        failed = False
        if now - self._alive_at >= LOOK_AT_SPARK:  # questions need it though nothing is new
            self._alive_at = now
            if not self._tasks.alive:
                raise SparkEnded
        try:
            pause = self._work(now)
        except (ConfigError, KeyboardInterrupt):
            raise
        except Exception as error:
            failed = True
            pause = self._failed(now, error)
        self._publish(now)
        self._tell_journal(now)
        self._look_at_bus()
        self._show(now, "retrying" if failed else "running")
        return pause

    def _look_at_bus(self) -> None:
        """Have the status written soon if the lake was connected, or cut off."""
        if self._bus is not None and (bus := self._bus()) != self._bus_told:
            self._bus_told = bus
            self._changed = True

    def _tell_journal(self, now: float) -> None:
        """Let the journal know what retention may take; nobody takes from those elsewhere."""
        journal, lake = self._pipeline.journal, self._pipeline.place.uri
        committed = self._pipeline.committed()
        if committed == self._committed or "://" in journal.path:
            return
        try:
            tell_journal(journal.path, lake, journal.id, committed)
        except OSError as error:
            line = self._throttle.line(now, reason_of(error))
            if line is not None:
                self._complain(f"the journal cannot be told what was read of it: {line}")
        else:
            self._committed = committed

    def _publish(self, now: float) -> None:
        """Bring the metadata of Iceberg up to the commits that were made."""
        mirror = self._pipeline.iceberg
        if mirror is None:
            return
        for table in self._pipeline.tables.values():
            try:
                mirror.publish(table)
            except Exception as error:  # the tables are there all the same
                line = self._throttle.line(now, f"{table.name}: {reason_of(error)}")
                if line is not None:
                    self._complain(f"Iceberg metadata could not be written: {line}")

    def end(self, now: float) -> None:
        """Bring all tables up to date, if that is soon done, and say that it is over."""
        try:
            if self._pipeline.found.waiting <= LAST_KEYS:
                self._pipeline.settle(now)
            for _ in range(LAST_STEPS):
                if not 0 < self._pipeline.behind() < LAST_ROWS:
                    break
                self._count(now, self._pipeline.step(now))
            self._pipeline.finish(now)
        except CommitConflict as error:  # another one goes on with it
            log.info("%s", error)
        self._publish(now)
        self._tell_journal(now)
        self._changed = True
        self._show(now + 1.0, "stopped")

    def _work(self, now: float) -> float | None:
        pipeline = self._pipeline
        self._freshness.seen(now, pipeline.ends())
        # Steps that take a part of what waits follow each other at once.
        self.commit_schedule.far = (
            1 if pipeline.narrows else min(self._far, pipeline.step_size.rows)
        )
        wait = self.commit_schedule.wait(now, pipeline.behind())
        if wait is None and pipeline.retries(now):
            wait = 0.0
        if wait == 0.0:
            began, before = time.monotonic(), pipeline.reached()
            step = pipeline.step(now)
            step.seconds = time.monotonic() - began
            self.commit_schedule.stepped(now, now + step.seconds)
            after = pipeline.reached()
            self._freshness.reached(now + step.seconds, after)
            self._progress.on_step(now, step.seconds, step.rows, (before, after, pipeline.ends()))
            self._count(now, step)
            if self._once and step.behind:
                return 0.0
        elif wait is not None and self._once:
            return wait
        if self._once:
            if pipeline.settle(now):
                return 0.0
            if pipeline.stopped.sentences():
                raise LocalError("; ".join(pipeline.stopped.sentences()))
            return None
        if now - self._folds >= self._schedule.fold and pipeline.samples.version:
            self._folds = now
            self._changed |= bool(pipeline.fold(now))
        if wait is None:
            return LOOK
        return LOOK if wait == 0.0 else min(wait, self._schedule.fold)

    def _count(self, now: float, step: Step) -> None:
        done = self.done
        done.steps += bool(step.rows)
        done.rows += step.rows
        done.quarantined += step.quarantined
        done.lost += step.lost
        done.behind = step.behind
        self._changed |= bool(step.rows)
        if step.lost:
            self._complain(f"the journal dropped {step.lost:,} rows before they were read")
        for sentence in step.told:
            done.failures += 1
            self._error = sentence, time.time()
            self._changed = True
        for sentence in (*step.told, *self._pipeline.stopped.sentences()):
            line = self._throttle.line(now, sentence)
            if line is not None:
                self._complain(line)
        self._held += step.quarantined
        if self._held and self._held_lines.take(now) >= 0:
            self._complain(f"{self._held:,} samples went to quarantine; `{WHY}` says why")
            self._held = 0
        if self._tell is not None and step.rows:
            self._tell(done, step)

    def _failed(self, now: float, error: Exception) -> float:
        wait = self.commit_schedule.failed(now)
        if isinstance(error, CommitConflict):
            log.info("%s; looking again", error)
            if self._once and self.commit_schedule.failures > MOST_CONFLICTS:
                raise error
            return min(wait, 1.0)
        if self._once:
            raise error
        if not self._tasks.alive:
            raise SparkEnded from error
        self.done.failures += 1
        self._changed = True
        reason = reason_of(error)
        self._error = reason, time.time()
        line = self._throttle.line(now, reason)
        if line is not None:
            rows = self._pipeline.step_size.rows
            most = "one row" if rows == 1 else f"{rows:,} rows"
            self._complain(f"{line}; next try in {wait:g} s, of {most} at most")
        log.debug("a step failed", exc_info=error)
        return wait

    # --- what others read -----------------------------------------------------------------------

    def _show(self, now: float, state: str) -> None:
        # A store of objects wants to be paid for each page that is put there.
        often = self._changed and not self._pipeline.place.remote
        due = 1.0 if often else self._schedule.status
        if self._lead is not None:
            self._lead._changed |= self._changed
            self._changed = False
            return
        if now - self._written < due and state != "stopped":
            return
        self._written = now
        self._changed = False
        # A lake that cannot be written says so elsewhere.
        with suppress(OSError, CommitConflict):
            write_status(self._pipeline.place.uri, self.status(now, state))

    def status(self, now: float, state: str) -> LakeStatus:
        """Everything that can be said of the lake at this moment."""
        pipeline, done = self._pipeline, self.done
        pipelines = [pipeline, *(one._pipeline for one in self._led)]
        tables = _together([one.shown() for one in pipelines])
        by_name = {table.name: table for table in tables}
        errors = [self._error, *(one._error for one in self._led), self.maintenance.error]
        error, at = next((one for one in errors if one is not None), (None, None))
        ages = [one._freshness.reached(now, one._pipeline.reached()) for one in (self, *self._led)]
        problems = [one for each in pipelines for one in each.problems]
        problems += self.maintenance.problems
        problems += [one for each in pipelines for one in each.stopped.sentences()]
        flows = self._flows()
        shown_flows = bounded_flows(flows)
        return LakeStatus(
            written=time.time(),
            pid=os.getpid(),
            state=state,
            every=self.commit_schedule.interval,
            rows=by_name["samples"].rows,
            lag=sum(one.behind() for one in pipelines),
            freshness=max(ages),
            late=pipeline.config.late,
            quarantine=by_name[QUARANTINED].rows if QUARANTINED in by_name else 0,
            quarantined=done.quarantined,
            gaps=pipeline.gaps.missing(),
            lost=sum(one.lost() for one in pipelines),
            files=sum(table.files for table in tables),
            bytes_live=sum(table.bytes for table in tables),
            bytes_total=self.maintenance.bytes_total,
            steps=done.steps,
            failures=done.failures,
            error=error,
            error_at=at,
            restarts=self._restarts(),
            problems=(*dict.fromkeys(problems), *self._problems()),
            stopped_queries=self._stopped_queries(),
            flows=shown_flows,
            flows_not_shown=len(flows) - len(shown_flows),
            tables=tables,
            committed={**self._others, **{one.journal.id: one.committed() for one in pipelines}},
            bus=self._bus_told,
            waiting=pipeline.found.waiting,
            without_table=tuple(
                KeysWithoutTable(one.reason, one.count, one.examples)
                for one in pipeline.found.refusals
            ),
            progress=tuple(one._progress.now(now) for one in (self, *self._led)),
        )


def _together(shown: list[tuple[TableStatus, ...]]) -> tuple[TableStatus, ...]:
    """The tables of a lake, with what each of them lacks of all its journals."""
    by_name: dict[str, list[TableStatus]] = {}
    for tables in shown:
        for one in tables:
            by_name.setdefault(one.name, []).append(one)
    return tuple(
        replace(
            max(each, key=lambda one: one.version),
            behind=sum(one.behind for one in each),
            at={journal: ends for one in each for journal, ends in one.at.items()},
            stopped=next((one.stopped for one in each if one.stopped), ""),
        )
        for each in by_name.values()
    )


def opened(make: Callable[[], T], stop: Stop, complain: Complain) -> T | None:
    """The pipeline, or several, as soon as they can be made; None if `stop` came first.

    A folder that cannot be written today may be tomorrow: that is told, and tried again.
    """
    schedule, throttle = CommitSchedule(), Throttle()
    while not stop.is_set():
        now = time.monotonic()
        try:
            return make()
        except (ConfigError, KeyboardInterrupt):
            raise
        except Exception as error:
            wait = schedule.failed(now)
            line = throttle.line(now, reason_of(error))
            if line is not None:
                complain(f"the lake cannot be opened: {line}; trying again")
            stop.wait(wait)
    return None


def run(
    pipeline: Pipeline,
    tasks: Tasks,
    *,
    stop: Stop,
    once: bool = False,
    every: float | None = None,
    tell: Callable[[LoopReport, Step], None] | None = None,
    complain: Complain | None = None,
    upkeep: bool = True,
    schedule: Schedule | None = None,
    problems: Callable[[], tuple[str, ...]] = tuple,
    restarts: Callable[[], int] = int,
    stopped: Callable[[], Mapping[str, str]] = dict,
    flows: Callable[[], Sequence[FlowStatus]] = tuple,
    bus: Callable[[], BusStatus] | None = None,
    others: Sequence[Pipeline] = (),
) -> LoopReport:
    """Feed the tables until `stop` is set, or with `once` until they have all that is durable.

    `others`: pipelines of other journals into the same lake; they take turns.

    A step begins when there is something new and `lake/ingest/schedule` says so. With `once` a
    failure is raised; otherwise it is told and tried again, later and later, unless Spark itself
    has ended.
    """
    loop = Loop(
        pipeline, tasks, every=every, once=once, schedule=schedule, tell=tell, complain=complain,
        problems=problems, restarts=restarts, stopped=stopped, flows=flows, bus=bus,
    )  # fmt: skip
    loops = [loop]
    for other in others:
        other.iceberg = pipeline.iceberg  # one publishes
        loops.append(
            Loop(
                other, tasks, every=every, once=once, schedule=schedule, tell=tell,
                complain=complain, lead=loop,
            )
        )  # fmt: skip
    beside: threading.Thread | None = None
    if upkeep and not once:
        beside = threading.Thread(
            target=loop.maintenance.follow, name="zenlake upkeep", daemon=True
        )
        beside.start()
    try:
        while not stop.is_set():
            pauses = [one.turn(time.monotonic()) for one in loops]
            going = [pause for pause in pauses if pause is not None]
            if not going:
                break
            stop.wait(min(going))
    finally:
        loop.maintenance.over.set()
        if beside is not None:
            beside.join()
    for one in reversed(loops):
        one.end(time.monotonic())
    return loop.done
