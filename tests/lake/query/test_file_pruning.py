from __future__ import annotations

import datetime

import pyarrow as pa
import pytest
import sqlglot

from zenlake.expr.tree import Comparison, Moment, Node
from zenlake.lake.model.sample_rows import SAMPLES
from zenlake.lake.query.file_pruning import conditions_of

NOW = datetime.datetime(2026, 1, 31, 12, tzinfo=datetime.UTC)
THEN = datetime.datetime(2026, 1, 31, 11, 50, tzinfo=datetime.UTC)


def found(query: str, **others: pa.Schema) -> list[list[Node]]:
    trees = [tree for tree in sqlglot.parse(query, read="spark") if tree is not None]
    return conditions_of(trees, {"samples": SAMPLES, **others}, NOW).get("samples", [])


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ("key = 'a'", ["key = 'a'"]),
        ("'a' < KEY AND (offset >= 3 AND 5 > offset)", ["key > 'a'", "offset >= 3", "offset < 5"]),
        ("key LIKE 'a/%'", ["key LIKE 'a/%'"]),
        ("key LIKE 'a\\\\%'", []),
        ("offset LIKE '5%'", []),
        ("key IN ('a', 'b')", ["key IN ('a', 'b')"]),
        ("key IN ('a', upper('b'))", []),
        ("key IN (SELECT 'a')", []),
        ("offset BETWEEN -2 AND 7", ["offset >= -2", "offset <= 7"]),
        ("offset BETWEEN rand() AND 7", ["offset <= 7"]),
        ("time < now()", []),
        ("key = 5", []),
        ("offset = '5'", []),
        ("key = 'a' OR (offset > 3 AND rand() < 1)", ["key = 'a' OR offset > 3"]),
        ("key = 'a' OR rand() < 1", []),
        ("NOT key = 'a'", []),
        ("other.key = 'a'", []),
    ],
)  # fmt: skip
def test_conditions_that_every_row_must_meet_are_found(where: str, expected: list[str]) -> None:
    (conditions,) = found(f"SELECT * FROM samples WHERE {where}")
    assert [one.sql() for one in conditions] == expected


@pytest.mark.parametrize(
    ("where", "operator", "instant"),
    [
        ("time > now() - INTERVAL 10 MINUTES", ">", THEN),
        ("time >= timestamp_seconds(1769860200)", ">=", THEN),
        ("time = TIMESTAMP'2026-01-31 11:50:00'", "=", THEN),
        ("day = DATE'2026-01-31'", "=", datetime.datetime(2026, 1, 31, tzinfo=datetime.UTC)),
    ],
)
def test_instants_are_known_without_spark(
    where: str, operator: str, instant: datetime.datetime
) -> None:
    ((condition,),) = found(f"SELECT * FROM samples WHERE {where}")
    assert isinstance(condition, Comparison)
    assert isinstance(condition.right, Moment)
    assert condition.operator == operator
    assert condition.right.micros == round(instant.timestamp()) * 1_000_000


def test_each_place_that_a_table_is_read_in_counts() -> None:
    def told(query: str) -> list[list[str]]:
        return [[one.sql() for one in conditions] for conditions in found(query)]

    both = "SELECT * FROM samples a JOIN samples b USING (offset) WHERE a.key = 'x' AND key = 'y'"
    assert told(both) == [["key = 'x'"], []]
    assert told("SELECT * FROM (SELECT * FROM samples) WHERE key = 'a'") == [[]]
    assert told("SELECT 1 FROM samples WHERE key = 'a' UNION SELECT 1 FROM samples") == [
        ["key = 'a'"],
        [],
    ]
    assert told("WITH samples AS (SELECT 1 AS key) SELECT * FROM samples WHERE key = 'a'") == []
