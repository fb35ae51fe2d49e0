"""The same pipeline on a cluster, one of whose executors stands still and then is lost."""

from __future__ import annotations

from pathlib import Path

import psutil
import pytest

from tests.cli.programs import Program
from tests.lake.clusters import cluster
from tests.lake.journals import rows_of
from tests.lake.mixed import mixed, proven_once
from tests.lake.numbered import config

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(600)]

COUNT = 4500
#: Many small tasks, so that one is lost in the middle.
STEP = "batch: {rows: 900, task_rows: 150}"


def executors(work: Path) -> list[psutil.Process]:
    """The processes that a cluster runs tasks in, by the folder that they work in."""
    return [
        one
        for one in psutil.process_iter(["name", "cmdline"])
        if one.info["name"] == "java"
        and "org.apache.spark.executor.CoarseGrainedExecutorBackend" in (one.info["cmdline"] or ())
        and Path(one.cwd()).is_relative_to(work)
    ]


def test_an_executor_that_stands_still_or_is_lost_costs_its_tasks_and_no_row(
    tmp_path: Path,
) -> None:
    lake, journal, work = tmp_path / "lake", tmp_path / "journal", tmp_path / "work"
    said = mixed(journal, COUNT)
    settings = tmp_path / "lake.json5"
    settings.write_text(config(tmp_path, STEP).replace("iceberg: true, ", ""))
    with (
        cluster(tmp_path) as master,
        Program(
            *("-m", "zenlake", "lake", "run", "--once", "--json", "--lake", str(lake)),
            *(
                "--iceberg",
                "--journal",
                str(journal),
                "--config",
                str(settings),
                "--master",
                master,
            ),
            *("--conf", "spark.executor.memory=512m", "--conf", "spark.default.parallelism=4"),
            # As the manual says; else its steps would wait until the executor goes on.
            *("--conf", "spark.speculation=true"),
            *("--conf", "spark.speculation.task.duration.threshold=1s"),
        ) as driver,
    ):
        driver.says('"rows"', 200)
        both = executors(work)
        assert len(both) == 2
        one = both[0]
        one.suspend()
        driver.says('"rows"', 200)
        assert len(rows_of(lake, "samples")) < COUNT
        for part in (one, *one.children(recursive=True)):
            part.kill()
        assert driver.process.wait(200) == 0
    proven_once(str(lake), str(journal), said)
