"""The same pipeline on a Spark that is not ours: a master and two workers, each a process."""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

import zenlake
from tests.lake.conftest import STATE
from tests.lake.journals import rows_of, write
from tests.lake.rowsof import Row
from zenlake.lake.place import Place
from zenlake.spark.java import find_java, write_shim
from zenlake.spark.session import cache_folder, spark_home

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(600)]

DEADLINE = 180.0


def environment() -> dict[str, str]:
    source = str(Path(zenlake.__file__).resolve().parents[1])
    return {
        **os.environ,
        "JAVA_HOME": str(write_shim(find_java(), cache_folder(STATE))),
        "SPARK_HOME": str(spark_home()),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "PYSPARK_PYTHON": sys.executable,
        "PYTHONPATH": source,
    }


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
        return port


@contextmanager
def service(name: str, folder: Path, *arguments: str) -> Iterator[Path]:
    """A part of a cluster, and the file that it writes its log to."""
    log = folder / f"{name}-{arguments[-1].rpartition(':')[2]}-{time.monotonic_ns()}.log"
    with log.open("wb") as out:
        process = subprocess.Popen(
            [
                str(spark_home() / "bin" / "spark-class"),
                f"org.apache.spark.deploy.{name.lower()}.{name}",
                "--host",
                "127.0.0.1",
                *arguments,
            ],
            stdout=out,
            stderr=subprocess.STDOUT,
            cwd=folder,
            env=environment(),
        )
        try:
            yield log
        finally:
            process.terminate()
            process.wait()


def wait_for(log: Path, words: str) -> str:
    deadline = time.monotonic() + DEADLINE
    while True:
        found = re.search(words, log.read_text(errors="replace"))
        if found:
            return found[0]
        assert time.monotonic() < deadline, log.read_text(errors="replace")
        time.sleep(0.1)


@contextmanager
def cluster(folder: Path) -> Iterator[str]:
    port = free_port()
    master = f"spark://127.0.0.1:{port}"
    work = str(folder / "work")
    with ExitStack() as running:
        log = running.enter_context(
            service("Master", folder, "--webui-port", "0", "--port", str(port))
        )
        wait_for(log, "I have been elected leader|Starting Spark master")
        workers = [
            running.enter_context(
                service(
                    "Worker", folder, "--cores", "1", "--memory", "1g", "--webui-port", "0",
                    "--work-dir", work, master,
                )
            )
            for _ in range(2)
        ]  # fmt: skip
        for worker in workers:
            wait_for(worker, "Successfully registered with master")
        yield master


def test_the_pipeline_runs_on_a_cluster_by_its_url(tmp_path: Path) -> None:
    lake, journal = tmp_path / "lake", tmp_path / "journal"
    count = 3000
    write(
        journal,
        [
            Row(f"robot/{n % 9}/pose", json.dumps({"n": n}).encode(), n, encoding=5)
            for n in range(count)
        ],
    )
    config = tmp_path / "lake.json5"
    config.write_text('{tables: {pose: {format: "robot/${id}/pose"}}, batch: {task_rows: 500}}')
    with cluster(tmp_path) as master:
        told = subprocess.run(
            [
                sys.executable, "-m", "zenlake", "lake", "run", "--once", "--json",
                "--lake", str(lake), "--journal", str(journal), "--config", str(config),
                "--master", master, "--conf", "spark.executor.memory=512m",
                "--conf", "spark.default.parallelism=4",
            ],
            capture_output=True,
            text=True,
            env=environment(),
            check=False,
        )  # fmt: skip
        assert told.returncode == 0, told.stderr
    ready, *steps = [json.loads(line) for line in told.stdout.splitlines()]
    assert ready == {"ready": True}
    assert sum(step.get("rows", 0) for step in steps) == count
    # Each worker had an executor for it.
    executors = {path.parent for path in (tmp_path / "work").glob("*/*/stderr")}
    assert len(executors) == 2
    samples = rows_of(lake, "samples")
    assert len({(row["partition"], row["offset"]) for row in samples}) == len(samples) == count
    assert sum(row["n"] for row in rows_of(lake, "pose")) == sum(range(count))
    assert len(rows_of(lake, "latest")) == 9
    assert Place(lake).exists("samples/_delta_log")
