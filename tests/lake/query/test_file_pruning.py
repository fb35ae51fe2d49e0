from __future__ import annotations

import datetime
from typing import Any

import pyarrow as pa
import pytest
import sqlglot

from zenlake.lake.model.sample_rows import SAMPLES
from zenlake.lake.query.file_pruning import conditions_of

NOW = datetime.datetime(2026, 1, 31, 12, tzinfo=datetime.UTC)
THEN = datetime.datetime(2026, 1, 31, 11, 50, tzinfo=datetime.UTC)


def found(query: str, **others: pa.Schema) -> list[list[Any]]:
    trees = [tree for tree in sqlglot.parse(query, read="spark") if tree is not None]
    return conditions_of(trees, {"samples": SAMPLES, **others}, NOW).get("samples", [])


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ("key = 'a'", [("key", "=", "a")]),
        ("'a' < KEY AND (offset >= 3 AND 5 > offset)",
         [("key", ">", "a"), ("offset", ">=", 3), ("offset", "<", 5)]),
        ("key LIKE 'a/%'", [("key", "starts", "a/")]),
        ("key LIKE '%a'", []),
        ("key IN ('a', 'b')", [("key", "in", ["a", "b"])]),
        ("key IN (SELECT 'a')", []),
        ("offset BETWEEN -2 AND 7", [("offset", ">=", -2), ("offset", "<=", 7)]),
        ("time > now() - INTERVAL 10 MINUTES", [("time", ">", THEN)]),
        ("time < now()", []),
        ("time >= timestamp_seconds(1769860200)", [("time", ">=", THEN)]),
        ("time = TIMESTAMP'2026-01-31 11:50:00'", [("time", "=", THEN)]),
        ("day = DATE'2026-01-31'", [("day", "=", datetime.date(2026, 1, 31))]),
        ("key = 5", []),
        ("offset = '5'", []),
        ("key = 'a' OR key = 'b'", []),
        ("NOT key = 'a'", []),
        ("other.key = 'a'", []),
    ],
)  # fmt: skip
def test_conditions_that_every_row_must_meet_are_found(where: str, expected: list[Any]) -> None:
    assert found(f"SELECT * FROM samples WHERE {where}") == [expected]


def test_each_place_that_a_table_is_read_in_counts() -> None:
    both = "SELECT * FROM samples a JOIN samples b USING (offset) WHERE a.key = 'x' AND key = 'y'"
    assert found(both) == [[("key", "=", "x")], []]
    assert found("SELECT * FROM (SELECT * FROM samples) WHERE key = 'a'") == [[]]
    assert found("SELECT 1 FROM samples WHERE key = 'a' UNION SELECT 1 FROM samples") == [
        [("key", "=", "a")],
        [],
    ]
    assert found("WITH samples AS (SELECT 1 AS key) SELECT * FROM samples WHERE key = 'a'") == []
