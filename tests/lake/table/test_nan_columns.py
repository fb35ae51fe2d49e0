from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

from zenlake.lake.table.data_files import write_file
from zenlake.lake.table.location import LakeLocation
from zenlake.lake.table.nan_columns import measurable

ROWS = pa.table(
    {
        "key": ["a", "b", "c"],
        "sound": [1.0, 2.0, None],
        "odd": [1.0, math.nan, 3.0],
        "narrow": pa.array([1.0, math.nan, None], pa.float32()),
        "inside": [{"x": 1.0, "y": math.nan}, None, {"x": 2.0, "y": 3.0}],
        "listed": [[1.0], [math.nan], None],
        "named": pa.array([[("k", math.nan)], [], None], pa.map_(pa.string(), pa.float64())),
    }
)


def test_columns_with_a_nan_have_no_bounds_and_others_keep_theirs(tmp_path: Path) -> None:
    file = write_file(LakeLocation(str(tmp_path)), ROWS, {}, "part")
    stats: Any = json.loads(file.stats)
    assert stats["minValues"] == {"key": "a", "sound": 1.0}
    assert stats["maxValues"] == {"key": "c", "sound": 2.0}
    group = pq.ParquetFile(tmp_path / file.path).metadata.row_group(0)
    bounded = {
        column.path_in_schema
        for column in map(group.column, range(group.num_columns))
        if column.statistics is not None and column.statistics.has_min_max
    }
    assert bounded == {"key", "sound", "inside.x", "named.key_value.key"}


def test_all_columns_are_measured_where_none_has_a_nan() -> None:
    assert measurable(ROWS.select(["key", "sound"])) is True


@pytest.mark.parametrize("column", ["odd", "narrow"])
def test_a_reader_of_bounds_finds_the_row_with_the_nan(tmp_path: Path, column: str) -> None:
    duckdb = pytest.importorskip("duckdb")
    file = write_file(LakeLocation(str(tmp_path)), ROWS, {}, "part")
    assert ds.dataset(tmp_path / file.path, format="parquet").count_rows() == 3
    found = duckdb.sql(f"SELECT key FROM '{tmp_path / file.path}' WHERE {column} > 5").fetchall()
    assert found == [("b",)]
