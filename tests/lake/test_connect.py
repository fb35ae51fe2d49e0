"""The pipeline on a Spark that only Spark Connect reaches: a server of PySpark's package."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.lake.journals import rows_of, write
from tests.lake.rowsof import Row
from tests.lake.test_cluster import environment, free_port
from zenlake.spark.session import spark_home

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(400)]

DEADLINE = 180.0


@contextmanager
def connect_server(folder: Path) -> Iterator[str]:
    """Spark Connect with two cores, at its address."""
    port = free_port()
    log = folder / "connect.log"
    with log.open("wb") as out:
        process = subprocess.Popen(
            [
                str(spark_home() / "bin" / "spark-submit"),
                "--class", "org.apache.spark.sql.connect.service.SparkConnectServer",
                "--master", "local[2]",
                "--conf", "spark.connect.grpc.binding.address=127.0.0.1",
                "--conf", f"spark.connect.grpc.binding.port={port}",
                "--conf", "spark.ui.enabled=false",
                "spark-internal",
            ],
            stdout=out, stderr=subprocess.STDOUT, cwd=folder, env=environment(),
        )  # fmt: skip
        try:
            deadline = time.monotonic() + DEADLINE
            while True:
                with socket.socket() as line:
                    if line.connect_ex(("127.0.0.1", port)) == 0:
                        break
                assert process.poll() is None, log.read_text(errors="replace")
                assert time.monotonic() < deadline, log.read_text(errors="replace")
                time.sleep(0.1)
            yield f"sc://127.0.0.1:{port}"
        finally:
            process.terminate()
            process.wait()


def test_a_spark_without_rdds_fills_the_lake(tmp_path: Path) -> None:
    lake, journal = tmp_path / "lake", tmp_path / "journal"
    count = 1000
    write(
        journal,
        [
            Row(f"robot/{n % 9}/pose", json.dumps({"n": n}).encode(), n, encoding=5)
            for n in range(count)
        ],
    )
    config = tmp_path / "lake.json5"
    config.write_text('{tables: {pose: {format: "robot/${id}/pose"}}, batch: {task_rows: 200}}')
    with connect_server(tmp_path) as master:
        for _ in range(2):  # the second finds nothing to do
            ran = subprocess.run(
                [
                    sys.executable, "-m", "zenlake", "lake", "run", "--once",
                    "--master", master, "--lake", str(lake), "--journal", str(journal),
                    "--config", str(config),
                ],
                capture_output=True, text=True, timeout=300, env=environment(),
            )  # fmt: skip
            assert ran.returncode == 0, ran.stderr
        asked = subprocess.run(
            [sys.executable, "-m", "zenlake", "sql", "SELECT count(*) FROM pose",
             "--lake", str(lake), "--master", master],
            capture_output=True, text=True, timeout=300, env=environment(),
        )  # fmt: skip
        assert asked.returncode != 0
        assert "Spark Connect hides it" in asked.stderr
    assert sorted(row["n"] for row in rows_of(lake, "pose")) == list(range(count))
    assert len(rows_of(lake, "samples")) == count
