"""A machine that is starved: does a streaming query over ranges start, and does a job of tasks?

Spark starts a process for a Python source with each query, and waits ten seconds for it to connect
back. The number is in its code (`PythonWorkerFactory.createSimpleWorker`), and no setting changes
it. Workers of tasks are forked by a daemon that runs already.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench.lake.ranges import Query
from zenlake.lake import LakeConfig
from zenlake.lake.ingest.spark_tasks import SparkTasks

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROWS = 1000
BUSY = "import os\nparent = os.getppid()\nwhile os.getppid() == parent:\n    pass"


@contextmanager
def _busy(processes: int) -> Iterator[None]:
    """Let so many processes do nothing, as fast as they can."""
    hogs = [subprocess.Popen([sys.executable, "-c", BUSY]) for _ in range(processes)]
    try:
        yield
    finally:
        for hog in hogs:
            hog.kill()
            hog.wait()


def starved(
    spark: SparkSession,
    folder: Path,
    processes: int,
    tries: int,
    config: LakeConfig,
    record: Callable[[Path, int], None],
) -> dict[str, Any]:
    """Seconds until each is at work, and how often it gave up."""
    record(folder / "journal", ROWS)
    tasks = SparkTasks(spark)

    def by_tasks() -> None:
        tasks.warm()

    def by_query() -> None:
        query = Query(spark, folder / "out" / "lake", folder / "journal", config)
        query.by_trigger()
        query.stop()

    found: dict[str, Any] = {"busy processes": processes, "tries": tries}
    by_tasks()
    with _busy(processes):
        for name, work in (("tasks", by_tasks), ("query", by_query)):
            took: list[float] = []
            reasons: list[str] = []
            for _ in range(tries):
                shutil.rmtree(folder / "out", ignore_errors=True)
                began = time.perf_counter()
                try:
                    work()
                    took.append(round(time.perf_counter() - began, 1))
                except Exception as error:
                    reasons.append(str(error)[:200])
            found[name] = {"s": took, "gave up": len(reasons), "why": sorted(set(reasons))}
    return found
