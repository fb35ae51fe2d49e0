"""Cores that cancelled questions hold: when that is reason to end Spark."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.waiting import until
from zenlake.lake.query.lost_cores import (
    ALL_FOR,
    SOME_FOR,
    TOLD_AFTER,
    LostCores,
    LostCoresWatch,
    held_by_cancelled,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_all_cores_may_be_lost_for_half_a_minute() -> None:
    cores = LostCores(2)
    assert not cores.seen(0.0, 2)
    assert not cores.seen(ALL_FOR - 1, 3)
    assert cores.seen(ALL_FOR, 2)
    assert cores.sentence().startswith("2 of 2 cores of Spark are held by questions that were")


def test_threads_that_do_not_come_back_are_told_of_by_their_name() -> None:
    threads = LostCores(3, "threads that ask Spark")
    assert not threads.seen(0.0, 3)
    assert not threads.seen(TOLD_AFTER, 3)
    assert threads.sentence().startswith("3 of 3 threads that ask Spark are held by questions")
    assert threads.seen(ALL_FOR, 3), "before those that took their places are lost, too"


def test_some_may_be_lost_for_longer_and_come_back() -> None:
    cores = LostCores(4)
    assert not cores.seen(0.0, 1)
    assert cores.sentence() == "", "tasks that a limit makes needless end a moment later"
    assert not cores.seen(TOLD_AFTER, 1)
    assert cores.sentence().startswith("1 of 4 cores")
    assert not cores.seen(SOME_FOR - 1, 3)
    assert not cores.seen(SOME_FOR - 0.5, 0)
    assert cores.sentence() == ""
    assert not cores.seen(SOME_FOR, 1), "another one, just now"
    assert cores.seen(2 * SOME_FOR, 1)


def test_one_that_is_free_for_a_moment_is_not_lost() -> None:
    cores = LostCores(2)
    for second in range(int(SOME_FOR) - 1):
        assert not cores.seen(float(second), 2 if second % 10 else 1)


@given(st.lists(st.tuples(st.integers(0, 100), st.integers(0, 5)), max_size=50))
def test_spark_ends_only_if_all_were_lost_so_long_or_some(looks: list[tuple[int, int]]) -> None:
    cores, now = LostCores(3), 0
    last_free, last_some_free = 0, 0
    for pause, lost in looks:
        now += pause
        ends = cores.seen(float(now), lost)
        if lost == 0:
            last_free = now
        if lost < 3:
            last_some_free = now
        if ends:
            assert now - last_some_free >= ALL_FOR or now - last_free >= SOME_FOR
        if lost == 0:
            assert not ends


@pytest.mark.spark
@pytest.mark.timeout(300)
def test_a_core_that_a_cancelled_join_holds_is_seen_until_it_is_free(spark: SparkSession) -> None:
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    context: Any = spark.sparkContext
    # Some 12 s, and after the first moment no row is read.
    rows = [spark.range(0, 300, 1, 1).toDF(name) for name in ("a", "b", "c")]
    triples = rows[0].crossJoin(rows[1]).crossJoin(rows[2]).where("(a + b) % 7 != c % 11")

    def ask() -> None:
        context.setJobGroup("join", "a join", interruptOnCancel=True)
        triples.selectExpr("sum(a + b + c)").collect()

    ended: list[str] = []
    watch = LostCoresWatch(context, ended.append)
    with ThreadPoolExecutor(1) as other:
        # Joins of tests before this one, where these share a Spark, go on to their ends.
        until(lambda: held_by_cancelled(context) == 0, seconds=200.0)
        asked = other.submit(ask)
        tracker = context.statusTracker()
        begun: dict[int, float] = {}

        def joins() -> bool:
            """Whether a stage has run for so long that it is none of those before the join."""
            now = time.monotonic()
            return any(now - begun.setdefault(n, now) > 2.0 for n in tracker.getActiveStageIds())

        until(joins)
        assert held_by_cancelled(context) == 0, "it runs, but is wanted"

        def cancelled() -> bool:
            context.cancelJobGroup("join")
            return asked.done()

        until(cancelled)
        with pytest.raises((PySparkException, Py4JError)):
            asked.result()
    assert held_by_cancelled(context) == 1
    until(lambda: held_by_cancelled(context) == 0, seconds=200.0)
    assert "zenlake cores" in [one.name for one in threading.enumerate()]
    watch.close()
    assert ended == []
    assert "zenlake cores" not in [one.name for one in threading.enumerate()]
