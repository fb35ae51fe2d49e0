from __future__ import annotations

import errno

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zenlake.errors import JournalError
from zenlake.lake.ingest.failure_reason import reason_of

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
