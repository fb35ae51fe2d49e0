"""Runs work on Spark: one task for each item, and only facts come back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol, TypeVar

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["SparkTasks", "Tasks", "Work"]

R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)


class Work(Protocol[R_co]):
    """Something that a task can do; it and what comes back can be pickled."""

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
        """Do all of it; the results are in the order of the items."""


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
            return not self.spark.sparkContext._jsc.sc().isStopped()
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
        context.setJobDescription(f"zenlake: {what}")
        return list(context.parallelize(list(items), len(items)).map(_perform).collect())


def _perform(item: Work[R]) -> R:
    return item.run()


class _Warm:
    """Nothing, but where the work is done."""

    def run(self) -> None:
        """Import what tasks need."""
        import zenlake.lake.newest
        import zenlake.lake.work  # noqa: F401
