from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

from zenlake.errors import JournalError
from zenlake.lake.ingest.failure_reason import WorkFailed
from zenlake.lake.ingest.spark_tasks import SparkTasks

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
