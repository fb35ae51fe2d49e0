"""`zenlake lake run` killed -9: while views and alerts are at work, and again and again."""

from __future__ import annotations

import json
import random
import subprocess
import sys
import threading
import time
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.cli.programs import Program, endpoint
from tests.lake.journals import rows_of, table_of, write
from tests.lake.rowsof import Row
from tests.waiting import until
from zenlake.cli.ending import FAILED
from zenlake.errors import LocalError
from zenlake.lake_client import ask

pytestmark = [
    pytest.mark.nightly(
        day="lake/continuous/test_views_and_alerts.py, cli/test_up.py, lake/ingest/test_progress.py"
    ),
    pytest.mark.spark,
    pytest.mark.slow,
    pytest.mark.timeout(900),
]

QUESTIONS = (
    ("view", "plain", "SELECT key, time, percent FROM battery WHERE percent > 50"),
    ("view", "counts", "SELECT id, count(*) AS n, sum(percent) AS total FROM battery GROUP BY id"),
    ("alert", "low", "SELECT id, percent FROM battery WHERE percent < 20"),
)
REMOTE = """
import sys, time
from pyspark.sql import SparkSession
spark = SparkSession.builder.remote(sys.argv[1]).getOrCreate()
for name, rows in zip(("samples", "plain"), map(int, sys.argv[2:])):
    until = time.monotonic() + 60
    while (found := spark.table(f"lake.{name}").count()) != rows and time.monotonic() < until:
        time.sleep(0.5)
    print(name, found)
spark.stop()
"""


def sample(n: int) -> Row:
    # Every other one is low, so that each raises an alert or clears it.
    told = json.dumps({"percent": 10.0 if n % 2 else 90.0}).encode()
    return Row(f"robot/{n % 4 // 2}/battery", told, at=float(n), encoding=5)


def requested(lake: Path, request: dict[str, Any]) -> dict[str, Any]:
    asking = ask(lake, {"do": "continuous", "as": "operator", **request})
    assert asking is not None
    with asking:
        return asking.fact()


def answers(lake: Path) -> bool:
    try:
        requested(lake, {"action": "list", "kind": "view", "name": ""})
    except (AssertionError, LocalError):
        return False
    return True


def test_views_and_alerts_outlive_a_kill(tmp_path: Path) -> None:
    lake, journal = tmp_path / "lake", tmp_path / "journal"
    lake.mkdir()
    (lake / "lake.json5").write_text('{tables: {battery: {format: "robot/${id}/battery"}}}')
    write(journal, [sample(n) for n in range(4)])
    arguments = ["-m", "zenlake", "lake", "run", "--json", "--lake", str(lake)]
    arguments += ["--journal", str(journal), "--master", "local[2]", "--every", "200ms"]
    total = 4
    with Program(*arguments) as program:
        program.says('{"ready": true}', 300)
        until(lambda: answers(lake), seconds=60.0)
        until(lambda: len(rows_of(lake, "battery")) == 4, seconds=120.0)
        for kind, name, sql in QUESTIONS:
            request = {"action": "create", "kind": kind, "name": name, "sql": sql}
            assert requested(lake, {**request, "history": True})["state"] == "running"
        over = threading.Event()

        def publish() -> None:
            nonlocal total
            while not over.wait(0.2) and total < 400:
                write(journal, [sample(n) for n in range(total, total + 4)])
                total += 4

        publishing = threading.Thread(target=publish)
        publishing.start()
        # Killed as soon as some results are there and more are on their way.
        until(lambda: (lake / "low").exists() and len(rows_of(lake, "low")) > 20, seconds=300.0)
        program.process.kill()
        program.process.wait()
        over.set()
        publishing.join()
    place = endpoint().removeprefix("tcp/")
    with Program(*arguments, "--spark-connect", place) as program:
        program.says('{"ready": true}', 300)
        write(journal, [sample(n) for n in range(total, total + 4)])
        total += 4
        high = total // 2
        until(lambda: len(rows_of(lake, "plain")) >= high, "a view stands still", 300.0)
        # The first of each robot is high and changes nothing; every other raises or clears.
        until(lambda: len(rows_of(lake, "low")) >= total - 2, "an alert stands still", 300.0)

        def counts() -> dict[str, tuple[int, float]]:
            return {row["id"]: (row["n"], row["total"]) for row in rows_of(lake, "counts")}

        expected = {robot: (total // 2, 25.0 * total) for robot in ("0", "1")}
        until(lambda: counts() == expected, "a view counts wrongly", 120.0)
        rows = rows_of(lake, "plain")
        assert len(rows) == high
        assert len({row["time"] for row in rows}) == high
        changes = sorted((row["time"], row["key"], row["state"]) for row in rows_of(lake, "low"))
        assert len(set(changes)) == len(changes) == total - 2
        assert [state for _, key, state in changes if key.startswith("robot/1")] == (
            ["raised", "cleared"] * total
        )[: total // 2 - 1]
        told = subprocess.run(
            [sys.executable, "-c", REMOTE, f"sc://{place}", str(total), str(high)],
            capture_output=True,
            text=True,
            check=True,
            timeout=180,
        ).stdout.splitlines()
        assert told == [f"samples {total}", f"plain {high}"]
        # A Java that ends takes the lake with it, though nothing is new: who looks after it knows.
        family = psutil.Process(program.process.pid).children(recursive=True)
        (java,) = [one for one in family if one.name() == "java"]
        java.kill()
        program.says("Spark has ended", 60)
        assert program.ends() == FAILED, "it was told nothing wrong, and is started again at once"


ROWS = 575_012
"""As many as were read in vain for twelve minutes, when a step took all or nothing."""


def test_the_count_grows_though_it_is_killed_every_12_to_28_seconds(tmp_path: Path) -> None:
    lake, journal = tmp_path / "lake", tmp_path / "journal"
    lake.mkdir()
    (lake / "lake.json5").write_text('{tables: {battery: {format: "robot/${id}/battery"}}}')
    for first in range(0, ROWS, 50_000):
        write(journal, [sample(n) for n in range(first, min(ROWS, first + 50_000))], 1)
    arguments = ["-m", "zenlake", "lake", "run", "--json", "--lake", str(lake)]
    arguments += ["--journal", str(journal), "--master", "local[2]"]
    pauses, counts = random.Random(575_012), [0]

    def committed() -> int:
        there = (lake / "samples" / "_delta_log").exists()
        return table_of(lake, "samples").totals().rows if there else 0

    def over(end: float) -> bool:
        return time.monotonic() > end or committed() == ROWS

    while counts[-1] < ROWS:
        assert len(counts) < 40, counts
        end = time.monotonic() + pauses.uniform(12.0, 28.0)
        with Program(*arguments) as program:
            # On a busy machine the start of Spark alone may take longer.
            program.says('{"ready": true}', 300)
            end = max(end, time.monotonic() + 2.0)
            until(partial(over, end), seconds=60.0)
            family = psutil.Process(program.process.pid).children(recursive=True)
            program.process.kill()
            program.process.wait()
            for one in family:
                with suppress(psutil.NoSuchProcess):
                    one.kill()
        counts.append(committed())
    assert counts == sorted(counts)
    assert len([n for n, at in enumerate(counts[1:]) if at == counts[n]]) <= len(counts) // 3
    with Program(*arguments, "--once") as program:
        assert program.ends() == 0
    for name in ("samples", "battery"):
        offsets = sorted(row["offset"] for row in rows_of(lake, name))
        assert offsets == list(range(ROWS)), name
