from __future__ import annotations

import errno
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zenlake.errors import JournalError
from zenlake.lake.ingest.failure_reason import (
    Cause,
    WorkFailed,
    failure_of,
    is_disk_full,
    reason_of,
)

TEXTS = Path(__file__).parent / "spark_failures"

WORKER = """An error occurred while calling z:org.apache.spark.api.python.PythonRDD.collect.
: org.apache.spark.SparkException: Job aborted due to stage failure: Task 0 in stage 2.0 failed
Traceback (most recent call last):
  File "/opt/zenlake/lake/files.py", line 98, in write_file
    out.write(data)
{}

\tat org.apache.spark.api.python.BasePythonRunner.java:600)
"""


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (OSError(errno.ENOSPC, "No space left on device", "/lake/x"), "the disk is full: /lake/x"),
        (PermissionError(errno.EACCES, "no", "/lake"), "permission denied: /lake"),
        (OSError(errno.EROFS, "Read-only file system"), "the filesystem is read-only"),
        (OSError("[Errno 28] Cannot write '/lake/a b'. No space left on device"),
         "the disk is full: /lake/a b"),
        (RuntimeError(WORKER.format("zenlake.errors.JournalError: partition 0 lacks 5 rows")),
         "partition 0 lacks 5 rows"),
        (RuntimeError(WORKER.format("ValueError: what is that?")), "ValueError: what is that?"),
        (JournalError("there is no journal"), "there is no journal"),
        (ValueError("one\ntwo"), "ValueError: one"),
        (ConnectionRefusedError(), "ConnectionRefusedError"),
    ],
)  # fmt: skip
def test_a_reason_is_one_line_in_words(error: BaseException, words: str) -> None:
    assert reason_of(error) == words


@given(st.text(max_size=2000))
def test_whatever_failed_its_reason_is_one_short_line(text: str) -> None:
    told = reason_of(RuntimeError(text))
    assert told
    assert len(told.splitlines()) <= 1
    assert len(told) <= 400


@pytest.mark.parametrize(
    ("name", "cause", "words"),
    [
        ("worker_died", Cause.DIED, "a Python worker of Spark died (job, rows, 4 times in a row)"),
        ("executor_lost", Cause.DIED,
         "an executor of Spark died: Command exited with code 137 (job, rows, 4 times in a row)"),
        ("memory", Cause.MEMORY, "too little memory (job, rows)"),
        ("arrow_memory", Cause.MEMORY,
         "too little memory: malloc of size 4611686018427387904 failed (job, rows)"),
        ("java_memory", Cause.MEMORY,
         "too little memory: Java heap space (job, rows, 4 times in a row)"),
        ("raised", Cause.OTHER, "ValueError: two (job, rows)"),
        ("journal", Cause.OTHER,
         "partition 0 of /j lacks 3 rows before offset 9; nothing was committed (job, rows)"),
        ("disk_full", Cause.OTHER, "the disk is full: /lake/x.parquet (job, rows)"),
        ("refused", Cause.OTHER, "Job 3 cancelled because SparkContext was shut down (job, rows)"),
    ],
)  # fmt: skip
def test_what_spark_raises_is_told_in_words(name: str, cause: Cause, words: str) -> None:
    failure = failure_of(RuntimeError((TEXTS / f"{name}.txt").read_text()))
    assert failure.cause is cause
    error = WorkFailed(failure, "job", "rows")
    assert reason_of(error) == words
    assert error.died == (cause is Cause.DIED)
    assert is_disk_full(error) == (name == "disk_full")


def test_the_task_that_failed_is_known_by_its_number() -> None:
    died = failure_of(RuntimeError((TEXTS / "worker_died.txt").read_text()))
    assert (died.task, died.times) == (1, 4)
    raised = failure_of(RuntimeError((TEXTS / "raised.txt").read_text() + "zenlake, task 7\n"))
    assert (raised.task, raised.reason) == (7, "ValueError: two")
    assert failure_of(ConnectionRefusedError()).task is None


@given(st.text(max_size=2000))
def test_whatever_a_job_fails_with_there_are_words_for_it(text: str) -> None:
    error = WorkFailed(failure_of(RuntimeError(text)), "job")
    assert reason_of(error).endswith("(job)")
