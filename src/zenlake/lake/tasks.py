"""Runs work on Spark: one task for each item, and only facts come back."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["SparkTasks", "Tasks", "Work"]


class Work(Protocol):
    """Something that a task can do; it can be pickled."""

    def run(self) -> dict[str, Any]:
        """Do it; what comes back can be written as JSON."""


class Tasks(Protocol):
    """Where work is done."""

    @property
    def parallel(self) -> int:
        """How many tasks run at once."""

    @property
    def alive(self) -> bool:
        """Whether work can still be done at all."""

    def run(self, items: Sequence[Work], what: str) -> list[dict[str, Any]]:
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

    def run(self, items: Sequence[Work], what: str) -> list[dict[str, Any]]:
        """One job: a partition for each item.

        A plain job over the items, not a frame: there is nothing for SQL to plan, and Spark's
        functions over Arrow batches demand pandas, which nothing here needs.
        """
        if not items:
            return []
        context = self.spark.sparkContext
        context.setJobDescription(f"zenlake: {what}")
        told = context.parallelize(list(items), len(items)).map(_perform).collect()
        return [json.loads(one) for one in told]


def _perform(item: Work) -> str:
    return json.dumps(item.run())


class _Warm:
    """Nothing, but where the work is done."""

    def run(self) -> dict[str, Any]:
        """Import what tasks need."""
        import zenlake.lake.work  # noqa: F401

        return {}
