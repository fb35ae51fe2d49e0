"""Workers of Spark killed while the tables are filled: the count grows, and each sample is once."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import psutil
import pytest

from tests.lake.journals import R, rows_of, write
from tests.lake.rowsof import Row
from zenlake.lake import Pipeline, read_config
from zenlake.lake.ingest.spark_tasks import SparkTasks, Work
from zenlake.lake.service.loop import LoopReport, run
from zenlake.spark import jvm

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.timeout(300)]

CONFIG = """{
    tables: {pose: {format: "robot/${id}/pose", encoding: "text/plain"}},
    batch: {rows: 300, task_rows: 100},
}"""


def kill_workers() -> int:
    """Kill all Python workers of this process's Spark, and not the process that forks them."""
    java = jvm.java_process()
    assert java is not None
    killed = 0
    for daemon in psutil.Process(java.pid).children():
        for worker in daemon.children():
            with suppress(psutil.NoSuchProcess):
                worker.kill()
                killed += 1
    return killed


class Killed(SparkTasks):
    """Has the workers killed before every second step, and once more while it is at work."""

    killed = jobs = 0

    def run(self, items: Sequence[Work[R]], what: str) -> list[R]:
        if what != "journal to tables":
            return super().run(items, what)
        self.jobs += 1
        if self.jobs % 2:
            return super().run(items, what)
        self.kill()
        later = threading.Timer(0.2, self.kill)
        later.start()
        try:
            return super().run(items, what)
        finally:
            later.cancel()
            later.join()

    def kill(self) -> None:
        self.killed += kill_workers()


def test_the_tables_grow_and_have_each_sample_once(spark: SparkSession, tmp_path: Path) -> None:
    lake, journal = tmp_path / "lake", tmp_path / "j"
    write(journal, [Row(f"robot/{n % 7}/pose", b"%d" % n, at=n) for n in range(1500)], 1)
    tasks = Killed(spark)
    pipeline = Pipeline(str(lake), str(journal), tasks, read_config(CONFIG))
    counts: list[int] = []
    told: list[str] = []

    def count(done: LoopReport, _: object) -> None:
        counts.append(len(rows_of(lake, "samples")))

    run(pipeline, tasks, stop=threading.Event(), once=True, tell=count, complain=told.append)
    assert tasks.killed >= 4
    assert counts == sorted(counts)
    assert sorted(row["offset"] for row in rows_of(lake, "samples")) == list(range(1500))
    assert sorted(row["number"] for row in rows_of(lake, "pose")) == list(range(1500))
    assert rows_of(lake, "quarantine") == []
