"""Rows of `samples` whose files are lost come again from the journal, each once."""

from __future__ import annotations

import shutil
import tempfile
from contextlib import closing
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.lake.journals import Here, rows_of, table_of, write
from tests.lake.rowsof import Row, batch
from tests.waiting import until
from zenlake.journal import Journal, JournalWriter
from zenlake.lake import LakeConfig, Pipeline
from zenlake.lake.maintain.repair import repair
from zenlake.lake.maintain.upkeep import compact
from zenlake.lake.table.location import LakeLocation

DAY = 86_400.0


def fed(lake: Path, *journals: Path) -> None:
    """Bring the lake up to date."""
    for journal in journals:
        pipeline = Pipeline(str(lake), str(journal), Here())
        while pipeline.step().behind:
            pass
        pipeline.finish()


def ordered(lake: Path, name: str = "samples") -> list[dict[str, Any]]:
    """All rows of a table, in an order of their own."""
    places = ("journal", "partition", "offset")
    return sorted(rows_of(lake, name), key=lambda row: [row[name] for name in places])


def files(lake: Path) -> list[Path]:
    return sorted(lake / "samples" / file.path for file in table_of(lake, "samples").files())


def fill(folder: Path, name: str = "journal", steps: int = 3) -> Path:
    """A journal with samples of two days, some of them in each step, and its lake."""
    lake, journal = folder / "lake", folder / name
    for step in range(steps):
        rows = [
            Row(f"robot/{n}/pose", b"%d" % step, at=step, heard=DAY * (n % 2)) for n in range(8)
        ]
        write(journal, rows)
        fed(lake, journal)
    return lake


def test_rows_of_a_lost_file_come_again_from_the_journal(tmp_path: Path) -> None:
    lake = fill(tmp_path)
    before, latest = ordered(lake), ordered(lake, "latest")
    one, other, *_ = files(lake)
    one.unlink()
    other.write_bytes(other.read_bytes()[:-5])
    journals = [str(tmp_path / "journal")]
    told = repair(LakeLocation(lake), "samples", journals=journals, dry=True)
    assert told.restored_rows == 8
    assert "8 of their rows come again from the journal, 0 are not there any more" in told.done
    assert not one.exists()
    told = repair(LakeLocation(lake), "samples", journals=journals)
    assert (told.restored_rows, told.lost_rows) == (8, 0)
    assert ordered(lake) == before
    assert repair(LakeLocation(lake), "samples", journals=journals).found == []
    write(tmp_path / "journal", [Row("robot/1/pose", b"new", at=9.0)])
    fed(lake, tmp_path / "journal")
    assert len(ordered(lake)) == len(before) + 1
    assert len(ordered(lake, "latest")) == len(latest)


def test_nothing_is_given_up_while_a_journal_cannot_be_looked_into(tmp_path: Path) -> None:
    lake = fill(tmp_path)
    fill(tmp_path, "second", 1)
    before = ordered(lake)
    lost = {file: file.read_bytes() for file in files(lake)}
    for file in lost:
        file.unlink()
    journal, second = str(tmp_path / "journal"), str(tmp_path / "second")
    for named, word in (([journal, str(tmp_path / "no")], "no"), ([second], "was not named")):
        told = repair(LakeLocation(lake), "samples", journals=named)
        assert word in told.found[-1]
        assert "--journal none" in told.done[-1]
        assert sorted(lost) == files(lake)
    told = repair(LakeLocation(lake), "samples", journals=[second, journal])
    assert (told.restored_rows, told.lost_rows) == (32, 0)
    assert ordered(lake) == before


def test_a_journal_and_its_copy_give_each_row_once(tmp_path: Path) -> None:
    lake = fill(tmp_path, steps=2)
    journal, copy = tmp_path / "journal", tmp_path / "copy"
    shutil.copytree(journal, copy)
    fill(tmp_path, steps=1)  # which the copy has not
    before = ordered(lake)
    for file in files(lake):
        file.unlink()
    told = repair(LakeLocation(lake), "samples", journals=[str(copy), str(journal), str(copy)])
    assert (told.restored_rows, told.lost_rows) == (24, 0)
    assert ordered(lake) == before


def test_a_journal_between_two_others_of_one_file_is_asked_for(tmp_path: Path) -> None:
    for name in ("journal", "second", "third"):
        lake = fill(tmp_path, name, 1)
    compact(table_of(lake, "samples"), Here(), LakeConfig(compact_files=2))
    before, places = ordered(lake), {}
    for name in ("journal", "second", "third"):
        places[Journal.open(tmp_path / name).id] = str(tmp_path / name)
    first, middle, last = (places[one] for one in sorted(places))
    for file in files(lake):
        file.unlink()
    told = repair(LakeLocation(lake), "samples", journals=[first, last])
    assert "was not named" in told.found[-1]
    table_of(lake, "samples")._table.create_checkpoint()
    for commit in sorted((lake / "samples" / "_delta_log").glob("*.json"))[:-1]:
        commit.unlink()  # only the checkpoint knows now
    told = repair(LakeLocation(lake), "samples", journals=[first, last])
    assert "was not named" in told.found[-1]
    repair(LakeLocation(lake), "samples", journals=[first, last, middle])
    assert ordered(lake) == before


def test_what_the_journal_has_let_go_is_told_as_lost(tmp_path: Path) -> None:
    lake = fill(tmp_path)
    before = ordered(lake)
    for file in files(lake):
        file.unlink()
    # The first seals the segment, the second may let it go.
    for _ in range(2):
        row = batch([Row("k", at=9.0)]).drop_columns(["offset"])
        with closing(
            JournalWriter.open(tmp_path / "journal", segment_bytes=1, retain_bytes=1)
        ) as writer:
            writer.append(0, row)
            writer.flush()
    journal = Journal.open(str(tmp_path / "journal"))
    until(lambda: any(journal.earliest()))
    told = repair(LakeLocation(lake), "samples", journals=[str(tmp_path / "journal")])
    kept = [row for row in before if row["offset"] >= journal.earliest()[row["partition"]]]
    assert ordered(lake) == kept
    assert (told.restored_rows, told.lost_rows) == (len(kept), 24 - len(kept))
    assert len(kept) < 24


def test_without_a_journal_the_rest_can_be_read(tmp_path: Path) -> None:
    lake = fill(tmp_path)
    files(lake)[0].unlink()
    told = repair(LakeLocation(lake), "samples", journals=None)
    assert (told.restored_rows, told.lost_rows) == (0, 4)
    assert len(ordered(lake)) == 20


@settings(max_examples=8)
@given(
    lost=st.lists(st.integers(0, 40), max_size=8),
    compacted=st.booleans(),
    steps=st.integers(1, 3),
)
def test_whatever_files_are_lost_all_rows_are_there_again(
    lost: list[int], compacted: bool, steps: int
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        lake = fill(Path(folder), steps=steps)
        fill(Path(folder), "second", 1)
        if compacted:
            compact(table_of(lake, "samples"), Here(), LakeConfig(compact_files=2))
        before = ordered(lake)
        for at in lost:
            there = files(lake)
            there[at % len(there)].unlink(missing_ok=True)
        journals = [str(Path(folder) / name) for name in ("journal", "second")]
        repair(LakeLocation(lake), "samples", journals=journals)
        assert ordered(lake) == before
