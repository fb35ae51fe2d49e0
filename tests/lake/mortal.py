"""Views and alerts in a process of their own, which `kill -9` ends in a phase of their work.

The process is forked from one that has imported everything, and uses the Java of the tests' Spark:
a life costs a second or two instead of ten. Nothing of what it runs is changed. It watches its own
calls, and kills itself where the phase says: at the call of a function, or when it returns.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

from tests.api.sessions import config
from zenlake.lake import read_config
from zenlake.lake.continuous.manager import ContinuousQueries
from zenlake.lake.continuous.requests import ContinuousRequests
from zenlake.lake.query.lake import Lake
from zenlake.lake.service.service import Service
from zenlake.lake.table.location import LakeLocation
from zenlake.spark import jvm

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CONFIG = '{tables: {battery: {format: "robot/${id}/battery"}}}'


@dataclass(frozen=True)
class Phase:
    """A moment in the work of one view or alert."""

    event: str
    """`call` or `return`."""
    function: str
    of: str
    """The name of the view or alert."""

    def is_now(self, frame: FrameType, event: str) -> bool:
        return (
            event == self.event
            and frame.f_code.co_qualname == self.function
            and self.of in _words(frame.f_locals["self"])
        )


def _words(of: Any) -> tuple[str, ...]:
    """What tells whose object it is."""
    table = getattr(of, "table", None)
    definition = getattr(of, "definition", None)
    return (
        getattr(of, "root", "").partition("/")[2],
        getattr(table, "name", ""),
        getattr(definition, "name", ""),
    )


Watch = Callable[[FrameType, str, Any], None]


@contextmanager
def watching(watch: Watch) -> Iterator[None]:
    """Have threads that begin meanwhile watched at every call and return."""
    threading.setprofile(watch)
    try:
        yield
    finally:
        threading.setprofile(None)


def live(folder: Path, endpoint: str, gateway: tuple[int, str], phase: Phase | None) -> None:
    """Run all views and alerts of a lake, until the phase or for ever."""
    import zenlake
    from zenlake.journal import Journal

    if phase is not None:
        dying = phase

        def watch(frame: FrameType, event: str, _: Any) -> None:
            if dying.is_now(frame, event):
                os.kill(os.getpid(), signal.SIGKILL)

        threading.setprofile(watch)
    spark = attached(*gateway)
    session = zenlake.open(config(mode='"client"', connect__endpoints=f'["{endpoint}"]'))
    lake = Lake(LakeLocation(folder / "lake"), spark, read_config(CONFIG))
    journal = Journal.open(folder / "journal")
    service = Service(lake, [journal], session)
    queries = ContinuousQueries(service, lambda line: print(line, file=sys.stderr, flush=True))
    service.add(queries)
    service.add(ContinuousRequests(service, queries))
    threading.Event().wait()


def attached(port: int, secret: str) -> SparkSession:
    """The Spark that runs in another process's Java."""
    from pyspark import SparkConf, SparkContext, java_gateway
    from pyspark.sql import SparkSession

    os.environ |= {"PYSPARK_GATEWAY_PORT": str(port), "PYSPARK_GATEWAY_SECRET": secret}
    launch: Any = java_gateway.launch_gateway
    gateway = launch()
    running = gateway.jvm.org.apache.spark.SparkContext.getOrCreate()
    java = gateway.jvm.JavaSparkContext.fromSparkContext(running)
    context = SparkContext(gateway=gateway, jsc=java, conf=SparkConf(_jconf=java.getConf()))
    return SparkSession(context)


@contextmanager
def lives(spark: SparkSession) -> Iterator[Any]:
    """Makes processes that use this Spark: called with folder, endpoint and phase."""
    from py4j.java_gateway import JavaObject

    context: Any = spark.sparkContext
    client = jvm.gateway()
    server: Any = JavaObject("GATEWAY_SERVER", jvm.gateway_client(context))
    own = server.getCallbackClient()
    address, port = own.getAddress(), own.getPort()
    parameters = client.java_parameters
    forks = multiprocessing.get_context("forkserver")
    forks.set_forkserver_preload(
        ["tests.lake.mortal", "zenlake.lake.continuous.running_query", "pyspark.sql"]
    )
    begun: list[Any] = []

    def begin(folder: Path, endpoint: str, phase: Phase | None) -> Any:
        # What Java keeps in memory would have died with the process.
        packages = jvm.java_packages(context)
        state = getattr(packages, "org.apache.spark.sql.execution.streaming.state.StateStore$")
        getattr(state, "MODULE$").stop()
        gateway = (parameters.port, parameters.auth_token)
        process = forks.Process(target=live, args=(folder, endpoint, gateway, phase), daemon=True)
        process.start()
        begun.append(process)
        return process

    try:
        yield begin
    finally:
        for process in begun:
            process.kill()
            process.join()
        # Java calls this process again.
        server.resetCallbackClient(address, port)
