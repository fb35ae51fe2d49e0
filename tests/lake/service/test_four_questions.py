"""A lake on a bus, asked what would keep Spark planning for ever, answers others all the same."""

from __future__ import annotations

import json
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import zenoh

from tests.api.sessions import where
from tests.journal.recording import until_rows
from tests.lake.service.test_bus import World, opened
from tests.waiting import SECONDS
from zenlake.lake.service.bus import SQL_LIMITS

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
ROWS = [{"told": '{"battery": 7}'}]


def another(world: World) -> zenoh.Session:
    """One more client of the router that the lake is behind."""
    config = zenoh.Config()
    config.insert_json5("mode", '"client"')
    config.insert_json5("connect/endpoints", json.dumps([where(world.node)]))
    return zenoh.open(config)


def test_four_questions_of_seventy_bytes_hold_nobody_else_up(
    tmp_path: Path, spark: SparkSession
) -> None:
    with opened(tmp_path, "robot/**", spark=spark) as world, another(world) as honest:
        world.put("robot/1", {"battery": 7})
        until_rows(world.recorder, 1)
        world.pipeline.step()
        over = threading.Event()
        asked = threading.Semaphore(0)

        def ask_again_and_again(sql: str) -> list[str]:
            """Have a question refused until the other is through, once more after that."""
            reasons = []
            while True:
                is_last = over.is_set()
                asked.release()
                (reply,) = world.client.get("@lake/sql", payload=sql, timeout=200)
                assert reply.err is not None
                reasons.append(str(json.loads(reply.err.payload.to_bytes())["error"]))
                if is_last:
                    return reasons

        def answer() -> str:
            # No longer than one question of the others may take: it is not waited for to end.
            (reply,) = honest.get(f"@lake/sql?_sql={TOLD}", timeout=SQL_LIMITS.seconds)
            told = reply.err if reply.ok is None else reply.ok
            assert told is not None
            return str(told.payload.to_string())

        # The first question of a Spark takes long, whoever asks it.
        assert world.rows(f"@lake/sql?_sql={TOLD}") == [("@lake/sql", ROWS)]
        bad = (*FOUR, *FOUR)
        with ThreadPoolExecutor(len(bad)) as askers:
            waiting = [askers.submit(ask_again_and_again, sql) for sql in bad]
            try:
                for _ in bad:
                    assert asked.acquire(timeout=SECONDS)
                assert [json.loads(answer()) for _ in range(3)] == [ROWS] * 3
                assert not any(one.done() for one in waiting)
            finally:
                over.set()
            reasons = [why for one in waiting for why in one.result()]
        assert all("; " in reason or "at most" in reason for reason in reasons), reasons
        assert world.service.executor.lost == 0
