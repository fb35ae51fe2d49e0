"""Data files are written as small as their values let them be, and read as the table says."""

from __future__ import annotations

import ast
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import zenlake
from zenlake.lake.table.data_files import open_file, read_table, write_file
from zenlake.lake.table.location import LakeLocation


def test_only_values_that_repeat_get_a_dictionary(tmp_path: Path) -> None:
    rows = pa.table(
        {
            "unlike": [n / 7 for n in range(5000)],
            "alike": [float(n % 10) for n in range(5000)],
            "word": [f"r{n % 9}" for n in range(5000)],
            "value": [b"%d" % (n % 3) for n in range(5000)],
        }
    )
    file = write_file(LakeLocation(tmp_path), rows, {}, "a")
    group = pq.ParquetFile(tmp_path / file.path).metadata.row_group(0)
    having = {
        group.column(n).path_in_schema
        for n in range(group.num_columns)
        if group.column(n).has_dictionary_page
    }
    assert having == {"alike", "word"}
    assert read_table(LakeLocation(tmp_path), file.path, rows.schema).equals(rows)


INNER = pa.struct({"n": pa.int32(), "s": pa.string_view()})
WRITTEN = pa.table(
    {
        "late": pa.array([1, None], pa.int64()),
        "key": pa.array(["a", "b"], pa.string_view()),
        "value": pa.array([b"1", None], pa.binary_view()),
        "text": pa.array(["long", None], pa.large_string()),
        "words": pa.array([["x"], None], pa.list_(pa.field("element", pa.string_view()))),
        "inner": pa.array([{"n": 1, "s": "x"}, None], INNER),
        "labels": pa.array([[("k", "v")], None], pa.map_(pa.string_view(), pa.string_view())),
        "time": pa.array([1_700_000_000_000_001, None], pa.timestamp("us")),
    }
)  # fmt: skip
WANTED = pa.schema(
    {
        "key": pa.string(),
        "value": pa.binary(),
        "text": pa.string(),
        "words": pa.list_(pa.string()),
        "inner": pa.struct({"s": pa.string(), "n": pa.int64(), "later": pa.float64()}),
        "labels": pa.map_(pa.string(), pa.string()),
        "time": pa.timestamp("us", "UTC"),
        "late": pa.int64(),
        "later": pa.list_(pa.string()),
    }
)


@pytest.mark.parametrize("int96", [False, True])
def test_what_other_programs_wrote_has_the_types_of_the_table(tmp_path: Path, int96: bool) -> None:
    pq.write_table(WRITTEN, tmp_path / "a.parquet", use_deprecated_int96_timestamps=int96)
    place = LakeLocation(tmp_path)
    rows = read_table(place, "a.parquet", WANTED, WANTED.names)
    assert rows.schema == WANTED
    first, second = rows.to_pylist()
    assert first == {
        "key": "a", "value": b"1", "text": "long", "words": ["x"],
        "inner": {"s": "x", "n": 1, "later": None}, "labels": [("k", "v")],
        "time": datetime.fromtimestamp(1_700_000_000, UTC) + timedelta(microseconds=1),
        "late": 1, "later": None,
    }  # fmt: skip
    assert second == dict.fromkeys(WANTED.names) | {"key": "b"}
    assert read_table(place, "a.parquet", WANTED).column_names == WANTED.names[:-1]
    with open_file(place, "a.parquet", WANTED, coded=["key"]) as file:
        (batch, _) = file.batches(1, ["key", "later"])
        assert batch.schema.types == [pa.dictionary(pa.int32(), pa.string()), WANTED[-1].type]
        assert file.read_row_group(0, ["text"]).to_pydict() == {"text": ["long", None]}


def test_a_value_that_the_type_of_the_table_cannot_hold_is_an_error(tmp_path: Path) -> None:
    pq.write_table(pa.table({"n": [0.5]}), tmp_path / "a.parquet")
    with pytest.raises(pa.ArrowInvalid, match=r"0\.5"):
        read_table(LakeLocation(tmp_path), "a.parquet", pa.schema({"n": pa.int64()}))


def test_one_module_of_the_lake_reads_parquet() -> None:
    """Files of other programs have other types; who reads them elsewhere stumbles over those."""
    found = set()
    for path in sorted(LAKE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.ImportFrom):
                names = [f"{node.module}.{alias.name}" for alias in node.names]
            elif isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
                names = [f"{node.value.id}.{node.attr}"]
            else:
                continue
            found |= {(path.name, name) for name in names if name in READERS}
    # A stream looks at files that it wrote itself, for Spark alone.
    streams = {("table_stream.py", "pq.ParquetFile")}
    own = {("data_files.py", "pq.ParquetFile"), ("data_files.py", "pq.read_table")}
    assert found == own | streams


LAKE = Path(zenlake.__file__).parent / "lake"
READERS = frozenset(
    [
        "pyarrow.dataset", "pa.dataset", "pa.parquet", "ds.dataset", "pq.ParquetFile",
        "pq.ParquetDataset", "pq.read_table", "pq.read_metadata", "pq.read_schema",
        "pyarrow.parquet.ParquetFile", "pyarrow.parquet.ParquetDataset",
        "pyarrow.parquet.read_table", "pyarrow.parquet.read_metadata",
    ]
)  # fmt: skip
