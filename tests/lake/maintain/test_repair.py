from __future__ import annotations

from pathlib import Path

import pytest
from deltalake import DeltaTable

from tests.lake.journals import Here, rows_of, write
from tests.lake.rowsof import Row
from zenlake.errors import LocalError
from zenlake.lake import Pipeline, read_config
from zenlake.lake.maintain.repair import repair
from zenlake.lake.table.location import LakeLocation

CONFIG = read_config('{tables: {pose: {format: "robot/${id}/pose"}}}')


def fill(folder: Path, steps: int = 3) -> Path:
    for step in range(steps):
        rows = [Row(f"robot/{n}/pose", b'{"x": 1}', at=step, encoding=5) for n in range(4)]
        write(folder / "journal", rows)
        Pipeline(str(folder / "lake"), str(folder / "journal"), Here(), CONFIG).step()
    return folder / "lake"


def again(folder: Path) -> None:
    pipeline = Pipeline(str(folder / "lake"), str(folder / "journal"), Here(), CONFIG)
    while pipeline.step().behind:
        pass


def commits(lake: Path, name: str) -> list[Path]:
    return sorted((lake / name / "_delta_log").glob("*.json"))


def test_a_torn_last_commit_is_taken_back_and_its_rows_come_again(tmp_path: Path) -> None:
    lake = fill(tmp_path)
    newest = commits(lake, "pose")[-1]
    newest.write_bytes(newest.read_bytes()[:-40])
    told = repair(LakeLocation(lake), "pose", journals=None, dry=True)
    assert "cannot be read" in told.found[0]
    assert "taken back" in told.done[0]
    assert newest.exists()
    repair(LakeLocation(lake), "pose", journals=None)
    assert len(rows_of(lake, "pose")) == 8
    again(tmp_path)
    assert len(rows_of(lake, "pose")) == 12


def test_what_a_commit_refused_that_is_taken_back_is_in_quarantine_once(tmp_path: Path) -> None:
    lake, journal = tmp_path / "lake", tmp_path / "journal"
    bad = Row("robot/7/pose", b'{"x": "\\ud800"}', encoding=5)
    good = Row("robot/8/pose", b'{"x": "fine"}', encoding=5)
    write(journal, [good, bad])
    again(tmp_path)
    newest = commits(lake, "pose")[-1]
    newest.write_bytes(newest.read_bytes()[:-40])
    repair(LakeLocation(lake), "pose", journals=None)
    write(journal, [good, bad, good])
    again(tmp_path)
    for table, many in (("quarantine", 2), ("pose", 3)):
        places = [(row["partition"], row["offset"]) for row in rows_of(lake, table)]
        assert len(places) == len(set(places)) == many


def test_a_log_that_is_broken_in_the_middle_sets_the_table_aside(tmp_path: Path) -> None:
    lake = fill(tmp_path)
    commits(lake, "pose")[1].unlink()
    told = repair(LakeLocation(lake), "pose", journals=None)
    assert "set aside" in told.done[-1]
    assert "lake rebuild pose" in told.done[-1]
    assert not (lake / "pose").exists()
    again(tmp_path)
    assert len(rows_of(lake, "pose")) == 12  # the journal had them still


def test_a_damaged_checkpoint_is_left_out_where_all_commits_are_there(tmp_path: Path) -> None:
    lake = fill(tmp_path)
    DeltaTable(str(lake / "samples")).create_checkpoint()
    (point,) = (lake / "samples" / "_delta_log").glob("*.checkpoint.parquet")
    point.write_bytes(point.read_bytes()[:-9])
    assert "checkpoint" in repair(LakeLocation(lake), "samples", journals=None).done[0]
    assert len(rows_of(lake, "samples")) == 12


def test_a_lost_file_leaves_the_table_and_the_rest_can_be_read(tmp_path: Path) -> None:
    lake = fill(tmp_path)
    files = sorted((lake / "pose").rglob("*.parquet"))
    files[0].unlink()
    files[1].write_bytes(files[1].read_bytes()[:-5])
    told = repair(LakeLocation(lake), "pose", journals=None)
    assert "2 of its files are lost or cut" in told.found[0]
    assert told.lost_rows == 12 - len(rows_of(lake, "pose"))
    assert repair(LakeLocation(lake), "pose", journals=None).found == []


def test_a_table_that_is_not_there_is_told(tmp_path: Path) -> None:
    lake = fill(tmp_path, 1)
    with pytest.raises(LocalError, match="has no folder 'pos'"):
        repair(LakeLocation(lake), "pos", journals=None)
