"""What is read from the text of views and alerts."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zenlake.errors import LocalError
from zenlake.keys import KeyExpr, intersects
from zenlake.lake.continuous.query_shape import (
    ResultShape,
    chunks_of,
    conditional,
    needed_columns,
    reads_every_column,
    shape_of,
)
from zenlake.lake.continuous.table_stream import OffsetRange, pieces


@pytest.mark.parametrize(
    ("query", "shape"),
    [
        ("SELECT key, value FROM samples", ResultShape(("key",), False, False, False)),
        ("SELECT value FROM samples WHERE kind = 'put'", ResultShape((), False, False, False)),
        ("SELECT id, count(*) AS n FROM battery GROUP BY id",
         ResultShape(("id",), True, False, True)),
        ("SELECT count(*) AS n FROM battery", ResultShape((), True, False, True)),
        ("SELECT id, window(time, '1 minute') AS w, avg(p) AS m FROM b GROUP BY id, "
         "window(time, '1 minute')", ResultShape(("id",), True, False, True)),
        ("SELECT id, window.end AS w, avg(p) AS m FROM b GROUP BY id, window(time, '1 minute')",
         ResultShape(("id",), True, False, True)),
        ("SELECT id, window.start, avg(p) AS m FROM b GROUP BY id, window(time, '1 minute')",
         ResultShape(("id",), True, False, True)),
        ("SELECT a.key, b.p FROM samples a JOIN b ON a.key = b.key",
         ResultShape(("key",), False, True, True)),
        ("SELECT a.key, l.value FROM samples a JOIN latest l ON a.key = l.key",
         ResultShape(("key",), False, True, False)),
        ("SELECT DISTINCT id FROM battery", ResultShape((), False, True, True)),
        ("SELECT key FROM b WHERE id IN (SELECT id FROM samples)",
         ResultShape(("key",), False, False, True)),
    ],
)  # fmt: skip
def test_rows_are_about_what_they_are_grouped_by(query: str, shape: ResultShape) -> None:
    assert shape_of(query) == shape


@pytest.mark.parametrize(
    ("query", "columns"),
    [
        ("SELECT id, percent FROM battery WHERE volts < 2", "id key time percent volts"),
        ("SELECT key, count(*) AS n FROM battery GROUP BY key", "key time"),
        ("SELECT b.`A B`.c AS x FROM battery b", "key time a b"),
        ("SELECT * EXCEPT (id) FROM battery", None),
        ("SELECT b.*, 1 AS one FROM battery b", None),
        ("SELECT count(DISTINCT *) AS n FROM battery", None),
        ("SELECT a.key FROM battery a NATURAL JOIN samples", None),
    ],
)
def test_a_query_needs_the_columns_that_it_names(query: str, columns: str | None) -> None:
    every = ["id", "key", "time", "percent", "volts", "a b"]
    found = needed_columns(query, every)
    assert " ".join(found) == (" ".join(every) if columns is None else columns)
    assert reads_every_column(query) is (columns is None)


@pytest.mark.parametrize(
    ("query", "named"),
    [
        ("SELECT key FROM samples ORDER BY key", "ORDER BY"),
        ("SELECT key FROM samples LIMIT 5", "LIMIT"),
        ("SELECT 1 UNION SELECT 2", "one SELECT"),
        ("DROP TABLE samples", "one SELECT"),
        ("SELECT key FROM (", "cannot be read"),
    ],
)
def test_what_cannot_stand_is_refused(query: str, named: str) -> None:
    with pytest.raises(LocalError, match=named):
        shape_of(query)


def test_an_alerts_condition_becomes_a_column() -> None:
    assert conditional("SELECT id, p FROM battery AS b WHERE p < 20") == (
        "SELECT id, p, b.time AS _time, (p < 20) AS _holds, b.key AS _subject FROM battery AS b"
    )
    assert conditional("SELECT id FROM b WHERE kind = 'put' GROUP BY id HAVING avg(p) < 20") == (
        "SELECT id, MAX(b.time) AS _time, (AVG(p) < 20) AS _holds FROM b "
        "WHERE kind = 'put' GROUP BY id"
    )
    noon = datetime(2026, 1, 31, 12, tzinfo=UTC)
    asked = conditional("SELECT p FROM b WHERE p < 20", noon)
    assert "b`.time >= CAST('2026-01-31 12:00:00.000000Z' AS TIMESTAMP)" in asked.replace("`b", "b")
    for query in ("SELECT id FROM b", "SELECT id, avg(p) AS m FROM b WHERE p > 1 GROUP BY id"):
        with pytest.raises(LocalError, match="needs a condition"):
            conditional(query)
    with pytest.raises(LocalError, match="'_holds'"):
        conditional("SELECT p AS _holds FROM b WHERE p < 20")


VALUES = st.one_of(st.none(), st.text(), st.integers(), st.binary(), st.booleans())


@given(st.lists(VALUES, min_size=1, max_size=4))
def test_whatever_rows_are_about_is_a_key(values: list[Any]) -> None:
    row = {str(n): value for n, value in enumerate(values)}
    key = f"view/x/{chunks_of(row, list(row))}"
    assert str(KeyExpr(key)) == key
    assert intersects("view/x/**", key)
    assert not set("*$?#") & set(key)


def test_keys_stay_as_they_are() -> None:
    assert chunks_of({"key": "robot/1/battery", "n": 3}, ("key",)) == "robot/1/battery"
    assert chunks_of({"a": None, "b": "50%*"}, ("a", "b")) == "null/50%25%2A"
    assert chunks_of({"a": "/x"}, ("a",)) == "%2Fx"


def test_positions_make_ranges_that_are_bounded_and_meet() -> None:
    start, end = {"j": [5, 0]}, {"j": [30, 0], "k": [4]}
    found, reached = pieces(start, end, most=10)
    assert found == [OffsetRange("j", 0, 5, 15), OffsetRange("k", 0, 0, 4)]
    assert reached == {"j": [15, 0], "k": [4]}
    found, reached = pieces(reached, end, most=100)
    assert found == [OffsetRange("j", 0, 15, 30)]
    # A table that was set back has nothing new, and is not read twice.
    assert pieces({"j": [9]}, {"j": [3]}) == ([], {"j": [9]})
