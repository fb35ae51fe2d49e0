"""The loop around the pipeline: step after step, upkeep beside it, and no failure is the end.

told = run(pipeline, tasks, stop=threading.Event())
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, final

from zenlake.errors import ConfigError, LocalError
from zenlake.lake.delta import Overtaken, Table
from zenlake.lake.pipeline import Pipeline, Step
from zenlake.lake.tasks import Tasks
from zenlake.lake.upkeep import compact, promised, retain, vacuum
from zenlake.lake.work import QUARANTINED

__all__ = ["Ran", "run"]

log = logging.getLogger("zenlake.lake")

LOOK: Final = 0.05
"""Seconds between two looks at the journal when nothing is new."""

UPKEEP: Final = 20.0
RETAIN: Final = 600.0
VACUUM: Final = 300.0


@dataclass(slots=True)
class Ran:
    """What was done since the start."""

    steps: int = 0
    rows: int = 0
    quarantined: int = 0
    lost: int = 0
    failures: int = 0
    behind: int = 0


def run(
    pipeline: Pipeline,
    tasks: Tasks,
    *,
    stop: threading.Event,
    once: bool = False,
    every: float = 1.0,
    tell: Callable[[Ran, Step], None] | None = None,
    upkeep: bool = True,
) -> Ran:
    """Feed the tables until `stop` is set, or with `once` until they have all that is durable.

    A step begins when there is something new, and not sooner than `every` seconds after the one
    before, unless that one could not read everything. With `once` a failure is raised; otherwise
    it is logged and tried again, later and later, unless Spark itself has ended.
    """
    done = Ran()
    keeper = _Keeper(pipeline, tasks) if upkeep and not once else None
    failures = 0
    try:
        while not stop.is_set():
            began = time.monotonic()
            try:
                step = pipeline.step()
                failures = 0
            except Overtaken as error:
                log.info("%s; looking again", error)
                failures += 1
                if once and failures > 20:
                    raise
                stop.wait(min(1.0, LOOK * failures))
                continue
            except (ConfigError, KeyboardInterrupt):
                raise
            except Exception as error:
                if once or stop.is_set():
                    raise
                if not tasks.alive:
                    raise LocalError(
                        "Spark has ended, and the pipeline with it; start it again, "
                        "it goes on where it was"
                    ) from error
                failures += 1
                done.failures += 1
                wait = min(30.0, 0.5 * 2.0 ** min(failures, 6))
                log.warning(
                    "a step failed (%s: %s); again in %.1f s", type(error).__name__, error, wait
                )
                stop.wait(wait)
                continue
            _count(done, step)
            if tell is not None and step.rows:
                tell(done, step)
            if step.behind:
                continue
            if once:
                break
            _wait(pipeline, stop, began + every)
    finally:
        if keeper is not None:
            keeper.end()
    _finish(pipeline)
    return done


def _finish(pipeline: Pipeline) -> None:
    try:
        pipeline.finish()
    except Overtaken as error:  # another one goes on with it
        log.info("%s", error)


def _count(done: Ran, step: Step) -> None:
    done.steps += bool(step.rows)
    done.rows += step.rows
    done.quarantined += step.quarantined
    done.lost += step.lost
    done.behind = step.behind


def _wait(pipeline: Pipeline, stop: threading.Event, until: float) -> None:
    """Until the moment has come and there is something to do: new rows, or a ledger to fold."""
    while not stop.wait(LOOK):
        if time.monotonic() >= until and (pipeline.behind() or pipeline.due()):
            return


@final
class _Keeper:
    """Keeps the tables in shape, in a thread of its own."""

    def __init__(self, pipeline: Pipeline, tasks: Tasks) -> None:
        self._pipeline = pipeline
        self._tasks = tasks
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._keep, name="zenlake upkeep", daemon=True)
        self._thread.start()

    def end(self) -> None:
        self._over.set()
        self._thread.join()

    def _keep(self) -> None:
        retained, swept = time.monotonic(), 0.0
        while not self._over.wait(UPKEEP):
            try:
                # Table objects are not shared between threads: these look for themselves.
                tables = {
                    name: table
                    for name in self._pipeline.tables
                    if (table := Table.open(self._pipeline.place, name)) is not None
                }
                for table in tables.values():
                    if not self._over.is_set():
                        compact(table, self._tasks, self._pipeline.config)
                if time.monotonic() - retained > RETAIN and not self._over.is_set():
                    retained = time.monotonic()
                    for table in tables.values():
                        retain(table, self._tasks, self._pipeline.config.retain)
                if time.monotonic() - swept > VACUUM and not self._over.is_set():
                    swept = time.monotonic()
                    self._sweep(tables)
            except Exception as error:
                if not self._over.is_set():
                    log.warning("upkeep failed (%s: %s)", type(error).__name__, error)

    def _sweep(self, tables: dict[str, Table]) -> None:
        keep = promised(tables)
        for name, table in tables.items():
            vacuum(table, self._pipeline.config.vacuum_age, keep if name == QUARANTINED else ())
