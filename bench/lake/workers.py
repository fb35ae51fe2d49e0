"""Two workers against one: the same rows through clusters of one and of two executors of a core.

What a step does alone (its driver, and what a job takes that has nothing to do) is measured beside
what its tasks take, so that the gain of more workers can be worked out for a machine that has no
more cores: with `alone` seconds of the one and `spread` seconds of the other, n workers take
`alone + spread / n`. On a busy machine two workers share what one had; the model holds there too,
as long as both take the same CPU for the same rows.
"""

from __future__ import annotations

import shutil
import statistics
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, TypeVar, final

from zenlake.lake import LakeConfig, Pipeline
from zenlake.lake.ingest.spark_tasks import SparkTasks, Tasks, Work
from zenlake.spark.session import spark_session, stop_spark

R = TypeVar("R")

#: A cluster of this machine: so many executors, cores of each, megabytes of each.
MASTER = "local-cluster[{workers},1,1024]"

#: For how many workers the model says what they gain.
MODELLED = (2, 4, 8, 16)


@final
class TimedTasks:
    """Tasks, how many jobs they were, and how long those took."""

    def __init__(self, tasks: SparkTasks) -> None:
        """None yet."""
        self.seconds = 0.0
        self.jobs = 0
        self._tasks = tasks

    @property
    def parallel(self) -> int:
        """How many tasks run at once."""
        return self._tasks.parallel

    @property
    def alive(self) -> bool:
        """Whether work can still be done."""
        return self._tasks.alive

    def run(self, items: Sequence[Work[R]], what: str) -> list[R]:
        """Do all of it, and look at the clock."""
        self.jobs += 1
        began = time.perf_counter()
        try:
            return self._tasks.run(items, what)
        finally:
            self.seconds += time.perf_counter() - began


class Run(NamedTuple):
    """What filling the tables took."""

    wall: float
    alone: float
    """Seconds in which no task of ours was at work."""
    cpu: float


def workers(
    folder: Path,
    rows: int,
    rounds: int,
    record: Callable[[Path], None],
    config: LakeConfig,
    took: Callable[[Callable[[], None]], tuple[float, float]],
) -> dict[str, Any]:
    """Rows a second of one worker and of two, and the model with the parts that were measured.

    `took`: seconds of work, and seconds of CPU.
    """
    journal = folder / "journal"
    record(journal)
    told: dict[str, Any] = {"rows": rows}
    medians: dict[int, Run] = {}
    for count in (1, 2):
        conf = {"spark.default.parallelism": str(count)}
        spark = spark_session("bench", MASTER.format(workers=count), conf=conf)
        try:
            tasks = SparkTasks(spark)
            assert tasks.parallel == count
            runs: list[Run] = []
            for turn in range(rounds + 1):
                lake, timed = folder / f"lake-{count}-{turn}", TimedTasks(tasks)
                wall, cpu = took(partial(_fill, lake, journal, timed, config, rows))
                shutil.rmtree(lake)
                idle = statistics.median(took(tasks.warm)[0] for _ in range(5))
                runs.append(Run(wall, wall - timed.seconds + timed.jobs * idle, cpu))
        finally:
            stop_spark(spark)
        # The first warms up.
        medians[count] = Run(*map(statistics.median, zip(*runs[1:], strict=True)))
        told[f"{count} of a core"] = {
            "rows/s": round(rows / medians[count].wall),
            "CPU, microseconds a row": round(medians[count].cpu / rows * 1e6, 2),
            "s alone, of all": [round(medians[count].alone, 2), round(medians[count].wall, 2)],
        }
    one, two = medians[1], medians[2]
    told["two against one"] = round(one.wall / two.wall, 2)
    spread = one.wall - one.alone
    told["model: n against one"] = {
        str(n): round(one.wall / (one.alone + spread / n), 2) for n in MODELLED
    }
    return told


def _fill(lake: Path, journal: Path, tasks: Tasks, config: LakeConfig, rows: int) -> None:
    pipeline = Pipeline(str(lake), str(journal), tasks, config)
    while pipeline.step().behind:
        pass
    assert pipeline.samples.totals().rows == rows
