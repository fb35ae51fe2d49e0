"""Cores that cancelled questions hold, in tasks of Spark or while it plans, and when that ends it.

Spark looks whether a task was cancelled between rows that it reads, and a join of all rows with all
others may compute for days before it reads the next. An executor of a cluster is ended then
(`spark.task.reaper`); where Spark runs in one Java, all of it is, and whoever looks after the lake
starts it again: no row is lost.

While it plans, Spark looks at nothing at all: a thread that does not come back from there is as
lost as a core (`lake/query/question_threads`), wherever the tasks run.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from typing import Any, Final, final

from zenlake.spark.jvm import task_pool

__all__ = [
    "ALL_FOR",
    "REAPED",
    "SOME_FOR",
    "TOLD_AFTER",
    "LostCores",
    "LostCoresWatch",
    "held_by_cancelled",
    "in_one_java",
]

log = logging.getLogger("zenlake.lake")

ALL_FOR: Final = 30.0
"""Seconds for which all cores may be lost: nothing else runs meanwhile."""
SOME_FOR: Final = 600.0
"""Seconds for which some may be: a start costs everybody some 20 s."""
TOLD_AFTER: Final = 5.0
"""Seconds after which it is told: of a question with a limit, tasks end a moment later."""
LOOK: Final = 1.0

REAPED: Final = ("spark.task.reaper.enabled=true", f"spark.task.reaper.killTimeout={ALL_FOR:.0f}s")
"""The settings with which a cluster ends executors whose tasks do not end."""


def in_one_java(master: str | None) -> bool:
    """Whether the tasks of a Spark run in the Java of its driver: it has no executor to end."""
    return (master or "").startswith("local")


@final
class LostCores:
    """How long cores, or threads, have been lost, and whether that was long enough."""

    def __init__(self, cores: int, what: str = "cores of Spark") -> None:
        """`cores`: how many there are; `what`: they are called."""
        self.cores = cores
        self._what = what
        self.lost = 0
        self._now = 0.0
        self._some_since: float | None = None
        self._all_since: float | None = None

    def seen(self, now: float, lost: int) -> bool:
        """So many are lost now; whether Spark has to end."""
        self.lost = lost
        self._now = now
        self._some_since = _since(self._some_since, now, lost > 0)
        self._all_since = _since(self._all_since, now, lost >= self.cores)
        some, all = self._some_since, self._all_since
        return (some is not None and now - some >= SOME_FOR) or (
            all is not None and now - all >= ALL_FOR
        )

    def sentence(self) -> str:
        """What is wrong, or nothing."""
        if self._some_since is None or self._now - self._some_since < TOLD_AFTER:
            return ""
        return (
            f"{min(self.lost, self.cores)} of {self.cores} {self._what} are held by questions "
            "that were cancelled and do not end"
        )


def _since(before: float | None, now: float, holds: bool) -> float | None:
    return (now if before is None else before) if holds else None


def held_by_cancelled(context: Any) -> int:
    """How many tasks run though all that they were for was cancelled."""
    return _held(task_pool(context))


def _held(pool: Any) -> int:
    count = 0
    for one in pool.schedulableQueue().toArray():
        if str(one.getClass().getSimpleName()) == "Pool":
            count += _held(one)
        elif one.isZombie():  # Spark's word for a set of tasks whose end alone is waited for
            count += int(one.runningTasks())
    return count


@final
class LostCoresWatch:
    """Looks after what cancelled questions hold of a Spark, on a thread of its own."""

    def __init__(
        self,
        context: Any,
        end: Callable[[str], None],
        lost_threads: Callable[[], int] = int,
        threads: int = 1,
    ) -> None:
        """`end` ends Spark, for the reason that it is told; it is called once.

        `lost_threads`: how many of the `threads` that ask Spark do not come back.
        """
        self._context = context
        self._end = end
        self._lost_threads = lost_threads
        self._cores = LostCores(int(context.defaultParallelism))
        self._threads = LostCores(threads, "threads that ask Spark")
        self._in_one_java = in_one_java(context.master)
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._follow, name="zenlake cores", daemon=True)
        self._thread.start()

    def problems(self) -> tuple[str, ...]:
        """What is wrong, a sentence."""
        sentences = self._cores.sentence(), self._threads.sentence()
        return tuple(one for one in sentences if one)

    def close(self) -> None:
        """Look no more."""
        self._over.set()
        self._thread.join()

    def _follow(self) -> None:
        while not self._over.wait(LOOK):
            if self._has_to_end(self._threads, self._lost_threads()):
                return
            if not self._in_one_java:
                continue  # an executor is ended by its cluster
            try:
                lost = held_by_cancelled(self._context)
            except Exception as error:  # Java is gone, which others notice, too
                log.debug("the cores of Spark cannot be seen: %s", type(error).__name__)
                return
            if self._has_to_end(self._cores, lost):
                return

    def _has_to_end(self, watched: LostCores, lost: int) -> bool:
        if not watched.seen(time.monotonic(), lost):
            return False
        self._end(watched.sentence())
        return True
