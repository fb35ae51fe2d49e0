"""Runs work on Spark: one task for each item, and only facts come back.

A job that fails raises `WorkFailed`, which says in words what Spark says in a page of Java.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from zenlake.lake.ingest.failure_reason import WorkFailed, failure_of
from zenlake.spark.jvm import is_stopped
from zenlake.spark.session import is_connect

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["ConnectTasks", "SparkTasks", "Tasks", "Work", "described", "tasks_on"]

R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)


class Work(Protocol[R_co]):
    """A unit of work for a task of Spark. The work and its result must be picklable.

    Work that has an attribute `subject` is named by that when it fails.
    """

    def run(self) -> R_co:
        """Do it; what comes back are facts, a dataclass, never rows."""


class Tasks(Protocol):
    """Where work is done."""

    @property
    def parallel(self) -> int:
        """How many tasks run at once."""

    @property
    def alive(self) -> bool:
        """Whether work can still be done at all."""

    def run(self, items: Sequence[Work[R]], what: str) -> list[R]:
        """Do all of it; the results are in the order of the items.

        Raises `WorkFailed` if a task failed as often as Spark tries one.
        """


class SparkTasks:
    """Work as the tasks of Spark jobs."""

    def __init__(self, spark: SparkSession) -> None:
        """On this session."""
        self.spark = spark

    @property
    def parallel(self) -> int:
        """How many cores Spark has for us."""
        return int(self.spark.sparkContext.defaultParallelism)

    @property
    def alive(self) -> bool:
        """Whether Spark is still there; no patience brings back one that has ended."""
        try:
            return not is_stopped(self.spark.sparkContext)
        except Exception:  # the connection to a Java that is gone fails in many ways
            return False

    def warm(self) -> None:
        """Start the workers and let them import what they need, before anybody waits for it."""
        self.run([_Warm()] * self.parallel, "warm up")

    def run(self, items: Sequence[Work[R]], what: str) -> list[R]:
        """One job: a partition for each item.

        A plain job over the items, not a frame: there is nothing for SQL to plan, and Spark's
        functions over Arrow batches demand pandas, which nothing here needs.
        """
        if not items:
            return []
        context = self.spark.sparkContext
        # Spark's pages list jobs by these; the thread keeps them, so they are set for every job.
        context.setJobGroup(f"zenlake {what}", f"zenlake: {described(items, what)}")
        numbered = context.parallelize(list(enumerate(items)), len(items))
        try:
            return list(numbered.map(_perform).collect())
        except Exception as error:
            raise _failed(error, items, what) from error


class ConnectTasks:
    """Work as data frame jobs, on a Spark that is reached by Spark Connect: it knows no RDDs.

    Its workers need zenlake, and the function over Arrow batches pandas, in their environment.
    """

    def __init__(self, spark: Any) -> None:
        """On this session, a `pyspark.sql.connect.session.SparkSession`."""
        self.spark = spark
        self._parallel = 0

    @property
    def parallel(self) -> int:
        """How many partitions Spark makes unless it is told a number: as many as it has cores."""
        if not self._parallel:
            frame = self.spark.range(1 << 12).selectExpr("spark_partition_id() AS p")
            self._parallel = int(frame.distinct().count())
        return self._parallel

    @property
    def alive(self) -> bool:
        """Whether the session was not ended; the server may still be out of reach."""
        return not self.spark.is_stopped

    def warm(self) -> None:
        """Start the workers and let them import what they need, before anybody waits for it."""
        self.run([_Warm()] * self.parallel, "warm up")

    def run(self, items: Sequence[Work[R]], what: str) -> list[R]:
        """One job: a row for each item, in a partition of its own."""
        if not items:
            return []
        works = [pickle.dumps(item) for item in items]

        def perform(batches: Iterator[Any]) -> Iterator[Any]:
            import pyarrow as pa

            for batch in batches:
                numbers = batch.column(0).to_pylist()
                done = [pickle.dumps(_perform((n, pickle.loads(works[n])))) for n in numbers]
                yield pa.record_batch({"id": batch.column(0), "done": pa.array(done, pa.binary())})

        rows = self.spark.range(0, len(works), 1, len(works))
        try:
            columns = rows.mapInArrow(perform, "id bigint, done binary").toArrow().to_pydict()
        except Exception as error:
            raise _failed(error, items, what) from error
        results: dict[int, R] = {
            n: pickle.loads(done) for n, done in zip(columns["id"], columns["done"], strict=True)
        }
        return [results[n] for n in range(len(works))]


def tasks_on(spark: SparkSession) -> SparkTasks | ConnectTasks:
    """Where a session does work: by its context, or by Spark Connect, which has none."""
    return ConnectTasks(spark) if is_connect(spark) else SparkTasks(spark)


def described(items: Sequence[object], what: str) -> str:
    """Return what a job does, for Spark's pages: its kind, its tasks, and of what they are."""
    tasks = "1 task" if len(items) == 1 else f"{len(items)} tasks"
    subjects = [str(getattr(item, "subject", "")) for item in (items[0], items[-1])]
    named = [one for one in dict.fromkeys(subjects) if one]
    return f"{what}, {tasks}{': ' if named else ''}{' … '.join(named)}"


def _perform(numbered: tuple[int, Work[R]]) -> R:
    number, item = numbered
    try:
        return item.run()
    except Exception as error:
        error.add_note(f"zenlake, task {number}")  # `failure_of` looks for it
        raise


def _failed(error: Exception, items: Sequence[Work[R]], what: str) -> WorkFailed:
    """Return the error of a job in words."""
    failure = failure_of(error)
    known = failure.task is not None and failure.task < len(items)
    subject = getattr(items[failure.task or 0], "subject", "") if known else ""
    return WorkFailed(failure, what, subject)


class _Warm:
    """Nothing, but where the work is done."""

    def run(self) -> None:
        """Import what tasks need."""
        import zenlake.lake.ingest.latest_tasks
        import zenlake.lake.ingest.task  # noqa: F401
