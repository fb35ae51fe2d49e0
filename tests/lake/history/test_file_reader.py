"""Rows of data files by key and time: bounds are exact, and no row group is read in vain."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.lake.journals import Here, write
from tests.lake.rowsof import START, Row
from zenlake.keys import ResolvedRange
from zenlake.lake import LakeConfig, Pipeline
from zenlake.lake.history.file_reader import COLUMNS, DataFiles, RowRange
from zenlake.lake.table import data_files as files
from zenlake.lake.table.location import LakeLocation


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> tuple[DataFiles, str]:
    """Forty keys with ten values each, in row groups of some keys each."""
    folder = tmp_path_factory.mktemp("reading")
    rows = [Row(f"k/{key:02}", b"%d" % n, at=float(n)) for n in range(10) for key in range(40)]
    write(folder / "journal", rows)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(files, "GROUP_ROWS", 50)
        pipeline = Pipeline(str(folder / "lake"), str(folder / "journal"), Here(), LakeConfig())
        pipeline.step()
    place = LakeLocation(folder / "lake" / "samples")
    [path] = [name for name, _, _ in place.files() if name.endswith(".parquet")]
    return DataFiles(place), path


def test_only_row_groups_that_may_have_the_key_are_read(
    lake: tuple[DataFiles, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    found, path = lake
    read: list[int] = []
    was = pq.ParquetFile.read_row_group

    def counted(self: pq.ParquetFile, number: int, columns: list[str]) -> object:
        read.append(number)
        return was(self, number, columns)

    monkeypatch.setattr(pq.ParquetFile, "read_row_group", counted)
    [rows] = found.rows(path, RowRange("k/07"))
    assert rows["value"].to_pylist() == [b"%d" % n for n in range(10)]
    assert set(read) == {1}  # 400 rows in groups of 50: keys 5 to 9
    read.clear()
    assert list(found.rows(path, RowRange("other/07"))) == []
    assert read == []


def test_columns_that_are_the_same_in_all_rows_of_a_group_are_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One encoding in the first group and two in the next, null with and without exceptions."""
    encodings = ["a/b"] * 4 + ["a/b", "c/d"] * 2
    attached = [None] * 6 + [b"", None]
    rows = pa.table(
        {
            **{name: pa.nulls(8, COLUMNS.field(name).type) for name in COLUMNS.names},
            "key": [f"k/{n // 4}" for n in range(8)],
            "encoding": encodings,
            "attachment": pa.array(attached, pa.binary()),
            "hlc": pa.array(range(8), pa.int64()),
        }
    )
    pq.write_table(rows.drop_columns(["source_sn"]), tmp_path / "one.parquet", row_group_size=4)
    read: list[set[str]] = []
    was = pq.ParquetFile.read_row_group

    def noted(self: pq.ParquetFile, number: int, columns: list[str]) -> object:
        read.append(set(columns))
        return was(self, number, columns)

    monkeypatch.setattr(pq.ParquetFile, "read_row_group", noted)
    found = DataFiles(LakeLocation(tmp_path)).take("one.parquet", np.array([0, 2, 3, 4, 5, 6, 7]))
    assert read == [{"hlc"}, {"hlc", "encoding", "attachment"}]
    assert found.equals(rows.take([0, 2, 3, 4, 5, 6, 7]).select(COLUMNS.names).cast(COLUMNS))


def test_the_newest_rows_of_a_file_are_found_once_and_kept(
    lake: tuple[DataFiles, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    found, path = lake
    places = found.newest(path, RowRange("**"))
    values = found.take(path, places.rows)
    assert values["value"].to_pylist() == [b"9"] * 40
    until = ResolvedRange(None, round((START + 4) * 1e9))
    then = found.newest(path, RowRange.within("k/*", until))
    assert found.take(path, then.rows)["value"].to_pylist() == [b"4"] * 40
    monkeypatch.setattr(pq.ParquetFile, "read_row_group", None)
    assert len(found.newest(path, RowRange("k/*")).rows) == 40
