"""The tables go on, whatever dies: steps shrink after a failure, and grow again."""

from __future__ import annotations

import errno
import json
from pathlib import Path

import pytest

from tests.lake.crashing import Killed
from tests.lake.failing_tasks import Weak
from tests.lake.journals import Here, rows_of, write
from tests.lake.rowsof import Row
from zenlake.errors import JournalError
from zenlake.lake import LakeConfig, Pipeline
from zenlake.lake.ingest.step_note import NotedStep, StepNote
from zenlake.lake.table.delta import CommitConflict
from zenlake.lake.table.location import LakeLocation

CONFIG = LakeConfig(batch_rows=1000, task_rows=10)


def journal_of(folder: Path, rows: int) -> str:
    write(folder, [Row(f"k/{n % 7}", b"%d" % n, at=n) for n in range(rows)], 1)
    return str(folder)


def offsets(lake: Path) -> list[int]:
    return sorted(row["offset"] for row in rows_of(lake, "samples"))


def notes(lake: Path) -> list[Path]:
    return sorted(lake.glob(".step-*.json"))


def test_steps_shrink_until_they_get_through_and_grow_again(tmp_path: Path) -> None:
    lake, tasks = tmp_path / "lake", Weak(30, JournalError("too much"))
    pipeline = Pipeline(str(lake), journal_of(tmp_path / "j", 400), tasks, CONFIG)
    failures = 0
    while pipeline.behind():
        try:
            pipeline.step()
        except JournalError:
            failures += 1
            assert notes(lake), "a process that dies now must not begin with all of it again"
    assert offsets(lake) == list(range(400))
    assert tasks.tried[:5] == [400, 200, 100, 50, 25]
    assert failures < len(tasks.tried) * 2 / 3
    assert notes(lake) == []
    tasks.bears = 1000
    write(tmp_path / "j", [Row("k/1", b"", at=n) for n in range(400)], 1)
    before = len(tasks.tried)
    while pipeline.behind():
        pipeline.step()
    assert tasks.tried[before:] == [100, 200, 100]


@pytest.mark.parametrize(
    "error", [CommitConflict("another one"), OSError(errno.ENOSPC, "No space left on device")]
)
def test_a_step_does_not_shrink_for_what_a_smaller_one_meets_too(
    tmp_path: Path, error: Exception
) -> None:
    tasks = Weak(30, error)
    pipeline = Pipeline(str(tmp_path / "lake"), journal_of(tmp_path / "j", 100), tasks, CONFIG)
    for _ in range(3):
        with pytest.raises(type(error)):
            pipeline.step()
    assert tasks.tried == [100, 100, 100]


def test_the_count_grows_though_every_long_step_is_killed(tmp_path: Path) -> None:
    lake, journal = tmp_path / "lake", journal_of(tmp_path / "j", 400)
    counts = [0]
    for _ in range(40):
        pipeline = Pipeline(str(lake), journal, Weak(60, Killed()), CONFIG)
        try:
            while pipeline.behind():
                pipeline.step()
        except Killed:
            assert len(notes(lake)) == 1
        counts.append(len(offsets(lake)))
        if counts[-1] == 400:
            break
    assert offsets(lake) == list(range(400))
    assert counts[4:] == sorted(set(counts[4:])), "some deaths made no progress"
    assert notes(lake) == []


def test_a_lake_where_nothing_died_begins_with_a_whole_step(tmp_path: Path) -> None:
    lake, journal = tmp_path / "lake", journal_of(tmp_path / "j", 400)
    Pipeline(str(lake), journal, Here(), CONFIG).step()
    write(tmp_path / "j", [Row("k/1", b"", at=n) for n in range(400)], 1)
    tasks = Weak(1000, Killed())
    Pipeline(str(lake), journal, tasks, CONFIG).step()
    assert tasks.tried == [400]


def test_a_note_that_was_torn_tells_of_a_death(tmp_path: Path) -> None:
    lake, journal = tmp_path / "lake", journal_of(tmp_path / "j", 100)
    with pytest.raises(Killed):
        Pipeline(str(lake), journal, Weak(0, Killed()), CONFIG).step()
    (note,) = notes(lake)
    assert json.loads(note.read_text())["rows"] == 100
    note.write_text('{"ro')
    assert Pipeline(str(lake), journal, Here(), CONFIG).step_size.rows == 500


def test_a_store_of_objects_gets_a_note_only_after_a_failure(tmp_path: Path) -> None:
    store = LakeLocation(tmp_path)
    store.remote = True
    note = StepNote(store, "id")
    note.begin(NotedStep(10))
    assert notes(tmp_path) == []
    note.failed(NotedStep(10))
    assert StepNote(store, "id").found == NotedStep(10, ())
    note.begin(NotedStep(5))
    assert StepNote(store, "id").found == NotedStep(5, ())
    note.succeeded()
    assert StepNote(store, "id").found is None
    note.begin(NotedStep(5))
    assert notes(tmp_path) == []
