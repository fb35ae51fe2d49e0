from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

from zenlake.errors import JournalError
from zenlake.lake.ingest.failure_reason import WorkFailed
from zenlake.lake.ingest.spark_tasks import SparkTasks, described

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.timeout(180)]


@dataclass(frozen=True)
class Mortal:
    """Says what it is, or fails."""

    subject: str
    fails: str = ""

    def run(self) -> str:
        if self.fails == "dies":
            os._exit(1)
        if self.fails:
            raise JournalError(self.fails)
        return self.subject


@pytest.mark.parametrize(
    ("fails", "words"),
    [
        ("dies", "a Python worker of Spark died (look at letters, the letter c, 4 times in a row)"),
        ("there is\nno c", "there is (look at letters, the letter c)"),
    ],
)
def test_a_job_that_fails_says_why_with_which_work_and_how_often(
    spark: SparkSession, fails: str, words: str
) -> None:
    items = [Mortal("the letter a"), Mortal("the letter b"), Mortal("the letter c", fails)]
    with pytest.raises(WorkFailed) as raised:
        SparkTasks(spark).run(items, "look at letters")
    assert str(raised.value) == words
    assert raised.value.died == (fails == "dies")
    assert SparkTasks(spark).run(items[:2], "again") == ["the letter a", "the letter b"]


def test_spark_lists_a_job_by_its_kind_and_what_it_reads(spark: SparkSession) -> None:
    items = [Mortal(f"offsets {n} to {n + 9}") for n in (0, 10, 20)]
    words = "journal to tables, 3 tasks: offsets 0 to 9 … offsets 20 to 29"
    assert described(items, "journal to tables") == words
    assert described(items[:1], "gaps") == "gaps, 1 task: offsets 0 to 9"
    assert described([object()], "ledger") == "ledger, 1 task"
    SparkTasks(spark).run(items, "journal to tables")
    context = spark.sparkContext
    assert context.getLocalProperty("spark.jobGroup.id") == "zenlake journal to tables"
    assert context.getLocalProperty("spark.job.description") == f"zenlake: {words}"
