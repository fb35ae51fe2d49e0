"""Starts the service of a lake: everything that it offers beside filling its tables.

    with serve_lake(spark, pipeline, session, complain) as service: ...

The socket for programs on this machine, the answers on the bus, the tables for Spark's own
clients, views and alerts.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol, final

from zenlake.errors import ZError
from zenlake.lake.ingest.quarantine import waiting_for
from zenlake.lake.ingest.spark_tasks import Tasks, tasks_on
from zenlake.lake.query.lake import Lake
from zenlake.lake.query.lost_cores import LostCoresWatch
from zenlake.lake.query.planner import Planner
from zenlake.lake.service.service import Service
from zenlake.lake.service.table_commands import TableCommands
from zenlake.spark.session import kill_spark

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from zenlake.api.session import Session
    from zenlake.lake.ingest.pipeline import Pipeline

__all__ = ["SPARK", "SharedTables", "listen_only", "serve_lake"]

log = logging.getLogger("zenlake.lake")

SPARK: Final = (
    # Questions run beside the pipeline's jobs, not behind them.
    "spark.scheduler.mode=FAIR",
    # What an answer may take of the driver's memory, whichever program asks.
    "spark.driver.maxResultSize=512m",
    # Files are listed here: a job for it costs more than it saves.
    "spark.sql.sources.parallelPartitionDiscovery.threshold=100000",
)
"""The settings of a Spark that fills tables and answers at once."""


@contextmanager
def serve_lake(
    spark: SparkSession,
    pipeline: Pipeline,
    session: Session | None,
    complain: Callable[[str], None],
    *,
    connect: bool = False,
    others: Sequence[Pipeline] = (),
    pipelines: Path | None = None,
) -> Iterator[Service]:
    """Answer questions for as long as the block runs.

    `session`: the bus, if the lake is on one; it is closed by who opened it. `others`: the
    pipelines of other journals into the same lake. `pipelines`: the folder with the files of a
    user's pipeline.
    """
    lake = Lake(pipeline.place, spark, pipeline.config)
    journals = [one.journal for one in (pipeline, *others)]
    service = Service(lake, journals, session)

    def end(why: str) -> None:
        complain(f"{why}: Spark is ended")
        kill_spark()

    try:
        executor = service.executor
        cores = LostCoresWatch(spark.sparkContext, end, lambda: executor.lost, executor.at_once)
        service.on_status(cores.problems)
        service.add(cores)
        if "://" not in pipeline.place.uri:
            from zenlake.lake.continuous.manager import ContinuousQueries
            from zenlake.lake.continuous.requests import ContinuousRequests

            continuous = ContinuousQueries(service, complain)
            service.on_status(continuous.problems, continuous.restarts, continuous.stopped)
            service.add(continuous)
            service.add(ContinuousRequests(service, continuous))
            if pipelines is not None:
                from zenlake.lake.pipelines.manager import Pipelines

                # With Spark Connect `lake` is the database of views that its clients see.
                database = "lake_tables" if connect else "lake"
                running = Pipelines(pipeline.place, spark, pipelines, complain, database, session)
                service.on_status(running.problems, stopped=running.stopped)
                service.on_flows(running.flows)
                service.handle("pipeline", running.handle)
                service.add(running)
        tables = TableCommands(pipeline.place, pipeline.config, pipeline.found, tasks_on(spark))
        service.handle("table", tables.handle)
        service.on_status(tables.problems)
        service.add(tables)
        if session is not None:
            from zenlake.lake.service.bus import BusAnswers
            from zenlake.lake.service.missing_tables import MissingTables
            from zenlake.lake.service.sample_decoder import SampleDecoder

            service.add(BusAnswers(service, session))
            service.add(SampleDecoder(session, pipeline.types, lambda: tuple(pipeline.specs)))
            service.add(MissingTables(session, pipeline.found))
            for listener in _listeners(session, pipeline, tasks_on(spark), complain):
                service.on_status(listener.problems)
                service.add(listener)
        if connect:
            shared = SharedTables(lake)
            service.on_commit(shared.look)
            service.add(shared)
        _warm(service, complain)
        yield service
    finally:
        service.close()


@contextmanager
def listen_only(
    tasks: Tasks, pipeline: Pipeline, session: Session, complain: Callable[[str], None]
) -> Iterator[Callable[[], tuple[str, ...]]]:
    """Hear what the bus tells of nodes and types, and answer nothing; gives what is wrong.

    For a Spark that cannot be asked: its lake learns types of ROS 2 all the same.
    """
    with ExitStack() as held:
        listeners = list(_listeners(session, pipeline, tasks, complain))
        for one in listeners:
            held.callback(one.close)
        yield lambda: tuple(sentence for one in listeners for sentence in one.problems())


class BusListener(Protocol):
    """Something that hears the bus for a lake."""

    def problems(self) -> Sequence[str]:
        """What is wrong, a sentence each."""

    def close(self) -> None:
        """End it."""


def _listeners(
    session: Any, pipeline: Pipeline, tasks: Tasks, complain: Callable[[str], None]
) -> Iterator[BusListener]:
    """What a lake hears beside its journal, as its configuration says."""
    if pipeline.config.ros2.tables:
        from zenlake.lake.service.ros2 import Ros2Service

        again = RedecodeThread(Lake(pipeline.place, None, pipeline.config), tasks, complain)
        yield again
        yield Ros2Service(session, pipeline.types, again.learnt)
    if pipeline.config.network is not None:
        from zenlake.lake.service.network import NetworkService

        keep = pipeline.config.network_keep
        yield NetworkService(session, pipeline.place, pipeline.config.network, keep)


WARMING: Final = (
    "SELECT key, count(*) AS n FROM samples WHERE key LIKE 'a/%' GROUP BY key ORDER BY n LIMIT 1",
    "SELECT key, value FROM latest LIMIT 1",
)
"""Questions whose ways through Spark are those of most others."""


def _warm(service: Service, complain: Callable[[str], None]) -> None:
    """Let Spark answer before anybody waits for it: the first plan takes seconds."""

    def ask() -> None:
        try:
            # As strangers ask, and what takes a job: a plain count does not.
            for query in WARMING:
                service.executor.ask(query, "warm up")
        except ZError as error:
            complain(f"the lake does not answer yet: {error}")
        except Exception as error:
            # The lake ended meanwhile, and its Java with it: nobody waits for this.
            log.debug("the lake was not warmed up: %s", type(error).__name__)

    threading.Thread(target=ask, name="zenlake warm up", daemon=True).start()


@final
class RedecodeThread:
    """Decodes tables again whose samples waited in quarantine for a definition."""

    def __init__(self, lake: Lake, tasks: Tasks, complain: Callable[[str], None]) -> None:
        """One table after the other, on a thread."""
        self._lake = lake
        self._tasks = tasks
        self._complain = complain
        self._pool = ThreadPoolExecutor(1, "zenlake decode")

    def learnt(self, type: str) -> None:
        """A type became known."""
        self._pool.submit(self._decode, type)

    def _decode(self, type: str) -> None:
        try:
            for name in waiting_for(self._lake.place, type):
                done = self._lake.rebuild(name, tasks=self._tasks)
                log.info("%s was decoded again: %d rows", name, done.rows)
        except Exception as error:  # told, and `zenlake lake decode` does it by hand
            self._complain(f"samples of {type} could not be decoded again: {error}")

    def problems(self) -> tuple[str, ...]:
        """None: what failed was told then."""
        return ()

    def close(self) -> None:
        """Finish the table at hand."""
        self._pool.shutdown(wait=True, cancel_futures=True)


@final
class SharedTables:
    """The tables as views that every session of Spark sees: `lake.samples`, `lake.latest`, …

    They are made anew after each commit, on a thread of their own.
    """

    def __init__(self, lake: Lake) -> None:
        """Made at once."""
        # One of its own: questions of others do not wait while views are planned.
        self._planner = Planner(lake.spark, lake.catalog)
        self._news = threading.Event()
        self._over = False
        self._thread = threading.Thread(target=self._follow, name="zenlake tables", daemon=True)
        self._news.set()
        self._thread.start()

    def look(self) -> None:
        """The tables may have changed."""
        self._news.set()

    def close(self) -> None:
        """Make no more of them."""
        self._over = True
        self._news.set()
        self._thread.join(30.0)

    def _follow(self) -> None:
        while True:
            self._news.wait()
            self._news.clear()
            if self._over:
                return
            try:
                self._planner.share()
            except Exception as error:
                log.warning("the tables of Spark's clients are not up to date: %s", error)
