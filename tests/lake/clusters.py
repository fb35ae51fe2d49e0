"""Sparks that are not ours, in processes of their own: a cluster, a server of Spark Connect."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import zenlake
from tests.ports import free_port
from tests.spark.machine import STATE
from tests.waiting import until
from zenlake.spark.classes import ClassArchive
from zenlake.spark.java import find_java, write_shim
from zenlake.spark.session import cache_folder, spark_home

DEADLINE = 180.0
HOST = "127.0.0.1"


def environment() -> dict[str, str]:
    """What programs of Spark and their workers need to find each other, Java and zenlake."""
    source = Path(zenlake.__file__).resolve().parents[1]
    java, folder = find_java(), cache_folder(STATE)
    archive = ClassArchive(java, spark_home() / "jars", folder)
    options = [os.environ["ZENLAKE_JAVA_OPTIONS"], *archive.options()]
    return {
        **os.environ,
        "JAVA_HOME": str(write_shim(java, folder)),
        "JDK_JAVA_OPTIONS": " ".join(options) if archive.file.is_file() else options[0],
        "SPARK_HOME": str(spark_home()),
        "SPARK_LOCAL_IP": HOST,
        "PYSPARK_PYTHON": sys.executable,
        "PYTHONPATH": str(source),
    }


@contextmanager
def _program(log: Path, *arguments: str, host: str = HOST) -> Iterator[subprocess.Popen[bytes]]:
    with log.open("wb") as out:
        process = subprocess.Popen(
            arguments,
            stdout=out,
            stderr=subprocess.STDOUT,
            cwd=log.parent,
            env=environment() | {"SPARK_LOCAL_IP": host},
        )
        try:
            yield process
        finally:
            process.terminate()
            process.wait()


def _said(log: Path, words: str) -> None:
    until(lambda: words in log.read_text(errors="replace"), f"{log} does not say it", DEADLINE)


@contextmanager
def cluster(folder: Path) -> Iterator[str]:
    """A master with two workers of a core each, at its address; they work in `folder`/work.

    Each is a host of its own to Spark, which copies no task to another executor of the same one.
    """
    master = f"spark://{HOST}:{free_port()}"
    run = str(spark_home() / "bin" / "spark-class")

    def part(name: str, host: str, *arguments: str) -> Path:
        main = f"org.apache.spark.deploy.{name.lower()}.{name}"
        log = folder / f"{name}-{host}.log"
        own = ("--host", host, "--webui-port", "0")
        running.enter_context(_program(log, run, main, *own, *arguments, host=host))
        return log

    with ExitStack() as running:
        _said(part("Master", HOST, "--port", master.rpartition(":")[2]), "elected leader")
        workers = [
            part(
                "Worker", host, "--cores", "1", "--memory", "1g",
                "--work-dir", str(folder / "work"), master,
            )
            for host in (HOST, "127.0.0.2")
        ]  # fmt: skip
        for worker in workers:
            _said(worker, "Successfully registered with master")
        yield master


@contextmanager
def connect_server(folder: Path) -> Iterator[str]:
    """Spark Connect with two cores, at an address where it will be soon: see `until_connected`."""
    port = free_port()
    with _program(
        folder / "connect.log",
        str(spark_home() / "bin" / "spark-submit"),
        *("--class", "org.apache.spark.sql.connect.service.SparkConnectServer"),
        *("--master", "local[2]", "--conf", "spark.ui.enabled=false"),
        *("--conf", "spark.connect.grpc.binding.address=127.0.0.1"),
        *("--conf", f"spark.connect.grpc.binding.port={port}"),
        "spark-internal",
    ):
        yield f"sc://127.0.0.1:{port}"


def until_connected(master: str) -> None:
    """Wait for a server of Spark Connect."""
    host, _, port = master.removeprefix("sc://").rpartition(":")

    def is_there() -> bool:
        with socket.socket() as line:
            return line.connect_ex((host, int(port))) == 0

    until(is_there, "Spark Connect does not listen", DEADLINE)
