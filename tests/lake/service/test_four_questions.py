"""A lake on a bus, asked what would keep Spark planning for ever, answers others all the same."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.journal.recording import until_rows
from tests.lake.service.test_bus import opened

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.interop, pytest.mark.spark, pytest.mark.timeout(240)]

FOUR = (
    r"SELECT regexp_like(concat(repeat('a',60),'!'), '^(a+)+\\1$')",
    r"SELECT regexp_like(concat(repeat('a',60),'!'), '(a|aa)+$')",
    "SELECT regexp_like(repeat('a',10000),'a*a*b')",
    "SELECT x FROM (VALUES ('aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!' RLIKE '(a+)+$')) t(x)",
)
TOLD = "SELECT CAST(value AS string) AS told FROM samples WHERE key = 'robot/1'"


def test_four_questions_of_seventy_bytes_hold_nobody_else_up(
    tmp_path: Path, spark: SparkSession
) -> None:
    with opened(tmp_path, "robot/**", spark=spark) as world:
        world.put("robot/1", {"battery": 7})
        until_rows(world.recorder, 1)
        world.pipeline.step()

        def refused(sql: str) -> str:
            (reply,) = world.client.get("@lake/sql", payload=sql, timeout=200)
            assert reply.err is not None
            return str(json.loads(reply.err.payload.to_bytes())["error"])

        with ThreadPoolExecutor(2 * len(FOUR)) as askers:
            waiting = [askers.submit(refused, sql) for sql in (*FOUR, *FOUR)]
            answered = [askers.submit(world.rows, f"@lake/sql?_sql={TOLD}") for _ in range(3)]
            for one in answered:
                assert one.result() == [("@lake/sql", [{"told": '{"battery": 7}'}])]
            reasons = [one.result() for one in waiting]
        assert all("; " in reason or "at most" in reason for reason in reasons), reasons
        assert world.service.executor.lost == 0
