from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable
from deltalake.exceptions import CommitFailedError

from zenlake.lake.table.data_files import DataFile, write_file, write_partitioned
from zenlake.lake.table.delta import CommitConflict, Table
from zenlake.lake.table.location import LakeLocation

SCHEMA = pa.schema([("key", pa.string()), ("hlc", pa.int64()), ("day", pa.string())])


def made(lake: Path) -> Table:
    return Table.create(LakeLocation(lake), "t", SCHEMA, "day", "made for a test")


def file(table: Table, name: str, keys: list[str]) -> DataFile:
    rows = pa.table({"key": keys, "hlc": list(range(len(keys)))})
    return write_file(table.place, rows, {"day": "d"}, name)


def test_the_same_range_is_committed_once(tmp_path: Path) -> None:
    table, other = made(tmp_path), made(tmp_path)
    assert table.committed("j/0") is None
    table.append([file(table, "a", ["x"])], {"j/0": (None, 5)})
    assert (table.committed("j/0"), table.version) == (5, 1)
    with pytest.raises(CommitConflict, match="at 5"):
        other.append([file(table, "b", ["x"])], {"j/0": (None, 5)})
    other.append([file(table, "c", ["y"])], {"j/0": (5, 7)})
    assert [f.rows for f in other.files()] == [1, 1]


def test_two_rewrites_of_one_file_do_not_both_succeed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = made(tmp_path)
    one.append([file(one, "a", ["x"]), file(one, "b", ["y"])], {"j/0": (None, 2)})
    two = made(tmp_path)
    old = one.files()
    one.rewrite([file(one, "ab", ["x", "y"])], old, False)
    with pytest.raises(CommitConflict, match="no file"):
        two.rewrite([file(two, "ab2", ["x", "y"])], old, False)
    with monkeypatch.context() as patch:
        # This one looks at the table before it changes, and never again.
        stale = Table.open(LakeLocation(tmp_path), "t")
        assert stale is not None
        new = one.files()
        one.rewrite([file(one, "abc", ["x", "y"])], new, False)
        patch.setattr(DeltaTable, "update_incremental", lambda self: None)
        with pytest.raises(CommitConflict, match="t"):
            stale.rewrite([file(one, "abd", ["x", "y"])], new, False)
    one.refresh()
    assert [f.path for f in one.files()] == ["day=d/abc.parquet"]


def test_an_append_does_not_stand_in_the_way_of_a_rewrite(tmp_path: Path) -> None:
    one, two = made(tmp_path), made(tmp_path)
    one.append([file(one, "a", ["x"]), file(one, "b", ["y"])], {"j/0": (None, 2)})
    old = one.files()
    two.append([file(two, "c", ["z"])], {"j/0": (2, 3)})
    one.rewrite([file(one, "ab", ["x", "y"])], old, False)
    assert sorted(f.path for f in one.files()) == ["day=d/ab.parquet", "day=d/c.parquet"]
    assert one.committed("j/0") == 3


def test_a_log_that_did_not_change_is_not_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, two = made(tmp_path), made(tmp_path)
    looks: list[DeltaTable] = []
    look = DeltaTable.update_incremental

    def counted(table: DeltaTable) -> None:
        looks.append(table)
        look(table)

    monkeypatch.setattr(DeltaTable, "update_incremental", counted)
    two.refresh()
    looks.clear()
    two.refresh()
    assert looks == []
    log = tmp_path / "t" / "_delta_log"
    before = log.stat()
    one.append([file(one, "a", ["x"])], {"j/0": (None, 1)})
    # As if it had come in the same tick of the clock.
    os.utime(log, ns=(before.st_atime_ns, before.st_mtime_ns))
    two.refresh()
    assert two.committed("j/0") == 1
    two.at(0)
    two.refresh()
    assert two.version == one.version


def test_columns_grow_once(tmp_path: Path) -> None:
    one, two = made(tmp_path), made(tmp_path)
    one.grow({"x": pa.float64()})
    before = one.version
    two.grow({"X": pa.float64(), "key": pa.string()})
    assert two.version == before
    assert two.schema.names == ["key", "hlc", "day", "x"]


def test_notes_and_versions_and_descriptions_are_kept(tmp_path: Path) -> None:
    table = made(tmp_path)
    table.append([], {"j/0": (None, 1)}, {"kind": "append", "quarantine": [{"path": "p"}]})
    table.rewrite([], [], False)
    note = table.last_note("append")
    assert note is not None
    assert note["quarantine"] == [{"path": "p"}]
    assert table.last_note("other") is None
    assert table.described == "made for a test"
    table.at(1)
    assert table.version == 1
    with pytest.raises(CommitConflict):
        table.at(99)
    assert Table.open(LakeLocation(tmp_path), "nothing") is None


def test_rows_of_several_days_become_several_files_sorted_by_key_and_time(tmp_path: Path) -> None:
    place = LakeLocation(tmp_path) / "t"
    rows = pa.table({"key": ["b", "a", "b", "a"], "hlc": [1, 2, 0, 1], "day": ["2", "1", "2", "1"]})
    one, two = write_partitioned(place, rows, "day", "attempt")
    assert (one.path, two.path) == ("day=1/attempt.parquet", "day=2/attempt.parquet")
    import pyarrow.parquet as pq

    first = pq.ParquetFile(tmp_path / "t" / two.path).read().to_pylist()
    assert first == [{"key": "b", "hlc": 0}, {"key": "b", "hlc": 1}]


def before_the_commit(patch: pytest.MonkeyPatch, act: Callable[[], object]) -> None:
    """Let another program do something between the last look at a table and our commit."""
    commits = DeltaTable.create_write_transaction
    acts = [act]

    def commit(self: DeltaTable, *args: Any, **more: Any) -> None:
        if acts:
            acts.pop()()
        commits(self, *args, **more)

    patch.setattr(DeltaTable, "create_write_transaction", commit)


def keys_of(lake: Path) -> list[str]:
    keys: list[str] = DeltaTable(str(lake / "t")).to_pyarrow_table()["key"].to_pylist()
    return sorted(keys)


def test_files_that_another_program_replaced_before_the_commit_are_not_replaced_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = made(tmp_path)
    table.append([file(table, "a", ["x"]), file(table, "b", ["y"])], {})
    old = table.files()
    merged = file(table, "ab", ["x", "y"])
    before_the_commit(monkeypatch, lambda: DeltaTable(str(tmp_path / "t")).optimize.compact())
    with pytest.raises(CommitConflict, match="no file"):
        table.rewrite([merged], old, False)
    assert keys_of(tmp_path) == ["x", "y"]


def test_a_rewrite_goes_behind_an_append_that_came_before_the_commit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table, other = made(tmp_path), made(tmp_path)
    table.append([file(table, "a", ["x"]), file(table, "b", ["y"])], {})
    more = file(table, "c", ["z"])
    before_the_commit(monkeypatch, lambda: other.append([more], {"j/0": (None, 1)}))
    table.rewrite([file(table, "ab", ["x", "y"])], table.files(), False)
    assert keys_of(tmp_path) == ["x", "y", "z"]
    assert (table.committed("j/0"), table.rewrites) == (1, 1)


def test_what_is_written_anew_as_a_whole_takes_the_place_of_the_version_it_was_made_from(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = made(tmp_path)
    table.append([file(table, "a", ["x", "y"])], {})
    planned = table.version
    again = [file(table, "a2", ["x", "y"])]

    def delete() -> None:
        DeltaTable(str(tmp_path / "t")).delete("key = 'x'")

    with monkeypatch.context() as patch:
        before_the_commit(patch, delete)
        with pytest.raises(CommitConflict):
            table.replace(again, table.schema, {}, {"kind": "rewrite"}, planned)
    with pytest.raises(CommitConflict, match="at version 2, not at 1"):
        table.replace(again, table.schema, {}, {"kind": "rewrite"}, planned)
    assert keys_of(tmp_path) == ["y"]


@pytest.mark.parametrize("act", ["compact", "z_order"])
def test_an_optimize_of_others_that_is_under_way_notices_that_files_were_merged(
    tmp_path: Path, act: str
) -> None:
    table = made(tmp_path)
    table.append([file(table, "a", ["x"]), file(table, "b", ["y"])], {})
    stale = DeltaTable(str(tmp_path / "t"))
    table.rewrite([file(table, "ab", ["x", "y"])], table.files(), False)
    with pytest.raises(CommitFailedError):
        stale.optimize.compact() if act == "compact" else stale.optimize.z_order(["key"])
    assert keys_of(tmp_path) == ["x", "y"]


def test_an_append_goes_behind_a_change_of_properties_and_not_of_columns(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table, other = made(tmp_path), made(tmp_path)
    with monkeypatch.context() as patch:
        before_the_commit(patch, lambda: other.remember(1e6))
        table.append([file(table, "a", ["x"])], {"j/0": (None, 1)})
    with monkeypatch.context() as patch:
        before_the_commit(patch, lambda: other.grow({"more": pa.int64()}))
        with pytest.raises(CommitConflict, match="other columns now"):
            table.append([file(table, "b", ["y"])], {"j/0": (1, 2)})
    assert keys_of(tmp_path) == ["x"]
    assert table.committed("j/0") == 1
