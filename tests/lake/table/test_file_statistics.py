from __future__ import annotations

import io
import json
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import given
from hypothesis import strategies as st

from zenlake.lake.table.file_statistics import LONGEST, statistics


def told(table: pa.Table) -> Any:
    sink = io.BytesIO()
    footers: list[Any] = []
    pq.write_table(table, sink, row_group_size=2, metadata_collector=footers)
    return json.loads(statistics(footers[0]))


def test_bounds_and_nulls_are_those_of_all_row_groups() -> None:
    when = datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=UTC)
    found = told(
        pa.table(
            {
                "key": ["b", "a", "c", None, None],
                "n": [3, 1, 2, None, 9],
                "time": pa.array([when] * 5, pa.timestamp("us", tz="UTC")),
                "value": [b"x"] * 5,
                "list": [[1], [], None, [2, 3], []],
                "on": [True] * 5,
                "none": pa.nulls(5, pa.int64()),
            }
        )
    )
    assert found["numRecords"] == 5
    assert found["minValues"] == {"key": "a", "n": 1, "time": "2026-01-02T03:04:05.678901Z"}
    assert found["maxValues"] == {"key": "c", "n": 9, "time": "2026-01-02T03:04:05.678901Z"}
    assert found["nullCount"]["key"] == 2
    assert found["nullCount"]["none"] == 5


def test_numbers_that_are_not_finite_leave_no_bound() -> None:
    found = told(pa.table({"x": [1.0, float("inf")], "y": [1.0, 2.0]}))
    assert found["maxValues"] == {"y": 2.0}


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=90), min_size=1))
def test_bounds_of_text_hold_every_value(texts: list[str]) -> None:
    found = told(pa.table({"key": pa.array(texts, pa.string())}))
    if "key" in found["minValues"]:
        for text in texts:
            assert found["minValues"]["key"].encode() <= text.encode()
            assert text.encode() <= found["maxValues"]["key"].encode()
        assert len(found["minValues"]["key"]) <= LONGEST
