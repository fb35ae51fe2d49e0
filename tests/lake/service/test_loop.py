from __future__ import annotations

import errno
import threading
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from tests.lake.failing_tasks import Weak
from tests.lake.journals import Here, R, rows_of, table_of, write
from tests.lake.rowsof import Row
from tests.waiting import until
from zenlake.errors import JournalError
from zenlake.journal import Journal
from zenlake.journal.disk.files import LocalFiles
from zenlake.journal.disk.layout import INFO, JournalInfo
from zenlake.journal.writing.readers import read_by_all
from zenlake.lake import LakeConfig, Pipeline, read_config
from zenlake.lake.ingest.plan import JournalRange
from zenlake.lake.ingest.spark_tasks import Work
from zenlake.lake.ingest.task import IngestTask
from zenlake.lake.maintain.status_file import read_status
from zenlake.lake.model.status import LakeStatus
from zenlake.lake.service.loop import Loop, LoopReport, Schedule, SparkEnded, opened, run
from zenlake.lake.table.delta import CommitConflict


def has_rows(lake: Path, rows: int) -> bool:
    return len(rows_of(lake, "samples")) == rows


def known_to(journal: Path) -> tuple[int, ...] | None:
    """Up to where a journal may let go of its rows."""
    info = JournalInfo.from_json((journal / INFO).read_bytes(), "")
    return read_by_all(LocalFiles(journal), info)


def test_once_reads_all_that_is_there_and_ends(tmp_path: Path) -> None:
    write(tmp_path / "j", [Row("a", b"", n) for n in range(50)])
    config = LakeConfig(batch_rows=20, families=False)
    pipeline = Pipeline(str(tmp_path / "lake"), str(tmp_path / "j"), Here(), config)
    told: list[tuple[int, int]] = []
    done = run(
        pipeline,
        Here(),
        stop=threading.Event(),
        once=True,
        tell=lambda done, step: told.append((done.rows, step.behind)),
    )
    assert (done.rows, done.steps, done.behind) == (50, 5, 0)
    assert told[-1] == (50, 0)
    assert len(rows_of(tmp_path / "lake", "gaps")) == 1


def test_the_status_names_the_views_that_do_not_go_on(tmp_path: Path) -> None:
    write(tmp_path / "j", [Row("a")])
    pipeline = Pipeline(str(tmp_path / "lake"), str(tmp_path / "j"), Here(), LakeConfig())
    run(pipeline, Here(), stop=threading.Event(), once=True, stopped=lambda: {"low": "for a bug"})
    said = read_status(str(tmp_path / "lake"))
    assert said is not None
    assert said.stopped_queries == {"low": "for a bug"}


def test_journals_of_several_recorders_feed_one_lake_once_and_latest_is_of_all(
    tmp_path: Path,
) -> None:
    config = read_config(
        """{tables: {pose: {format: "robot/${id}/pose"}}, rollups: true,
            latest: {remember: "36500d"}}"""
    )
    lake, here, there = tmp_path / "lake", tmp_path / "here", tmp_path / "there"

    def poses(journal: Path, source: bytes, *told: tuple[int, int]) -> None:
        """Of each robot its pose at a time, which is also its value; -1 is a deletion."""
        rows = [
            Row(
                f"robot/{robot}/pose",
                b"" if at < 0 else f'{{"x": {at}}}'.encode(),
                abs(at),
                kind=int(at < 0),
                encoding=5,
                sn=n,
                source=source,
            )
            for n, (robot, at) in enumerate(told)
        ]
        write(journal, rows)

    poses(here, b"\x0a", (1, 10), (2, 40), (3, 5))
    poses(there, b"\x0b", (1, 20), (2, 30), (3, -6), (4, 1))

    def filled(batch_rows: int = 2) -> LakeStatus:
        small = replace(config, batch_rows=batch_rows)
        first, second = [Pipeline(str(lake), str(one), Here(), small) for one in (here, there)]
        run(first, Here(), stop=threading.Event(), once=True, others=[second])
        said = read_status(str(lake))
        assert said is not None
        return said

    for _ in range(2):  # the second time finds nothing new
        said = filled()
        assert (said.lag, said.state) == (0, "stopped")
        assert len(said.committed) == 2
        (samples,) = [one for one in said.tables if one.name == "samples"]
        assert (samples.behind, {*samples.at}) == (0, {*said.committed})
        rows = rows_of(lake, "samples")
        whole = {(row["journal"], row["partition"], row["offset"]) for row in rows}
        assert len(rows) == len(whole) == 7
        poses_there = [row["x"] for row in rows_of(lake, "pose")]
        assert sorted(x for x in poses_there if x is not None) == [1, 5, 10, 20, 30, 40]
        assert len(poses_there) == 7
        for journal in (here, there):  # it may let go of what the lake has
            ends = Journal.open(journal).watermark().offsets
            assert known_to(journal) == ends
    latest = {row["key"]: row["value"] for row in rows_of(lake, "latest")}
    assert latest == {
        "robot/1/pose": b'{"x": 20}',
        "robot/2/pose": b'{"x": 40}',
        "robot/4/pose": b'{"x": 1}',
    }
    minutes = [row for row in rows_of(lake, "rollups") if row["width"] == "minute"]
    assert sum(row["count"] for row in minutes) == 6
    gaps = {(row["journal"], row["source"]): row["received"] for row in rows_of(lake, "gaps")}
    assert sorted(gaps.values()) == [3, 4]
    # What comes to either goes on where it was.
    poses(here, b"\x0a", (3, 7))
    poses(there, b"\x0b", (1, 50))
    assert sum(known_to(here) or ()) == 3, "not of what came since"
    filled(1000)
    assert len(rows_of(lake, "samples")) == 9
    latest = {row["key"]: row["value"] for row in rows_of(lake, "latest")}
    assert (latest["robot/1/pose"], latest["robot/3/pose"]) == (b'{"x": 50}', b'{"x": 7}')


def test_small_steps_follow_each_other_at_once(tmp_path: Path) -> None:
    write(tmp_path / "j", [Row("a", b"", n) for n in range(60)], 1)
    tasks, config = Weak(10, JournalError("too much")), LakeConfig(batch_rows=100)
    told: list[str] = []
    pipeline = Pipeline(str(tmp_path / "lake"), str(tmp_path / "j"), tasks, config)
    loop = Loop(pipeline, tasks, complain=told.append)
    now = 100.0
    pauses: list[float] = []
    while pipeline.behind():
        pause = loop.turn(now)
        assert pause is not None
        if not loop.commit_schedule.failures and pipeline.behind() >= pipeline.step_size.rows:
            pauses.append(pause)
        now += pause
    assert len(rows_of(tmp_path / "lake", "samples")) == 60
    assert len(pauses) > 1
    assert max(pauses) <= 0.1, "steps that leave rows waiting are not paced"
    assert told == ["too much; next try in 0.5 s, of 30 rows at most"]


def test_it_follows_the_journal_keeps_tables_in_shape_and_survives_failures(
    tmp_path: Path,
) -> None:
    class Moody(Here):
        failures = 2

        def run(self, items: Sequence[Work[R]], what: str) -> list[R]:
            if what == "journal to tables" and self.failures:
                self.failures -= 1
                raise CommitConflict("not now") if self.failures else OSError("the disk said no")
            return super().run(items, what)

    write(tmp_path / "j", [Row("a", b"", 0)])
    lake = tmp_path / "lake"
    config = LakeConfig(compact_files=3, gaps_every=0.2, vacuum_age=0.5, families=False)
    tasks = Moody()
    pipeline = Pipeline(str(lake), str(tmp_path / "j"), tasks, config)
    stop = threading.Event()
    results: list[LoopReport] = []
    throttle: list[str] = []
    loop = threading.Thread(
        target=lambda: results.append(
            run(
                pipeline,
                tasks,
                stop=stop,
                every=0.01,
                complain=throttle.append,
                schedule=Schedule(0.05, 0.05, 0.05, 0.0, 0.0, 0.05),
            )
        )
    )
    loop.start()
    try:
        for n in range(1, 9):
            write(tmp_path / "j", [Row("a", b"", n)])
            until(partial(has_rows, lake, n + 1))
        until(lambda: len(table_of(lake, "samples").files()) < 4)
        until(lambda: sum(row["rows"] for row in rows_of(lake, "gaps")) == 9)
    finally:
        stop.set()
        loop.join()
    (done,) = results
    assert (done.rows, done.failures) == (9, 1)
    assert throttle == ["OSError: the disk said no; next try in 1 s, of one row at most"]
    status = read_status(lake)
    assert status is not None
    assert (status.state, status.rows, status.lag, status.failures) == ("stopped", 9, 0, 1)
    assert status.error == "OSError: the disk said no"
    assert status.committed == {pipeline.journal.id: pipeline.ends()}
    assert status.bytes_total > status.bytes_live > 0


def test_gaps_are_told_while_rows_come_without_end(tmp_path: Path) -> None:
    write(tmp_path / "j", [Row("a", b"", 0)])
    lake = tmp_path / "lake"
    tasks = Here()
    pipeline = Pipeline(str(lake), str(tmp_path / "j"), tasks)
    loop = Loop(pipeline, tasks, every=1.0)
    for second in range(25):
        write(tmp_path / "j", [Row("a", b"", second)])
        loop.turn(float(second))
    counted = sum(row["rows"] for row in rows_of(lake, "gaps"))
    assert counted >= 20
    assert loop.done.steps <= 25


def test_an_interval_is_obeyed_though_more_has_come_meanwhile(tmp_path: Path) -> None:
    write(tmp_path / "j", [Row("a", b"", 0)])

    class Busy(Here):
        """Something comes while it works, always."""

        def run(self, items: Sequence[Work[R]], what: str) -> list[R]:
            write(tmp_path / "j", [Row("a", b"", 1)])
            return super().run(items, what)

    tasks = Busy()
    pipeline = Pipeline(str(tmp_path / "lake"), str(tmp_path / "j"), tasks)
    loop = Loop(pipeline, tasks, every=10.0)
    now = 0.0
    while now < 30.0:
        now += max(0.01, loop.turn(now) or 0.0)
    assert loop.done.steps == 3


def test_a_full_disk_is_one_line_a_minute_and_work_goes_on_when_there_is_room(
    tmp_path: Path,
) -> None:
    class Full(Here):
        full = True

        def run(self, items: Sequence[Work[R]], what: str) -> list[R]:
            if self.full:
                raise OSError(errno.ENOSPC, "No space left on device", "/lake/samples")
            return super().run(items, what)

    write(tmp_path / "j", [Row("a", b"", 0)])
    tasks = Full()
    pipeline = Pipeline(str(tmp_path / "lake"), str(tmp_path / "j"), tasks)
    lines: list[str] = []
    loop = Loop(pipeline, tasks, complain=lines.append)
    now, tries = 0.0, 0
    while now < 100.0:
        now += loop.turn(now) or 0.0
        tries += 1
    assert [line.partition(";")[0] for line in lines] == [
        "the disk is full: /lake/samples",
        f"the disk is full: /lake/samples ({loop.done.failures - 3} more since the last such line)",
    ]
    assert tries < 15
    status = read_status(tmp_path / "lake")
    assert status is not None
    assert (status.state, status.error) == ("retrying", "the disk is full: /lake/samples")
    tasks.full = False
    loop.turn(now + 60.0)
    assert len(rows_of(tmp_path / "lake", "samples")) == 1


def test_a_lake_that_cannot_be_written_is_tried_again_until_it_can(tmp_path: Path) -> None:
    write(tmp_path / "j", [Row("a", b"", 0)])
    (tmp_path / "lake").write_text("no folder")
    lines: list[str] = []

    def complain(line: str) -> None:
        lines.append(line)
        (tmp_path / "lake").unlink()

    pipeline = opened(
        lambda: Pipeline(str(tmp_path / "lake"), str(tmp_path / "j"), Here()),
        threading.Event(),
        complain,
    )
    assert pipeline is not None
    assert len(lines) == 1
    assert lines[0].startswith("the lake cannot be opened: ")
    assert "\n" not in lines[0]


def test_what_waits_for_its_interval_is_read_before_the_end(tmp_path: Path) -> None:
    write(tmp_path / "j", [Row("a", b"", 0)])
    tasks = Here()
    pipeline = Pipeline(str(tmp_path / "lake"), str(tmp_path / "j"), tasks)
    loop = Loop(pipeline, tasks, every=60.0)
    loop.turn(0.0)
    write(tmp_path / "j", [Row("a", b"", 1)])
    loop.turn(1.0)
    loop.end(2.0)
    assert len(rows_of(tmp_path / "lake", "samples")) == 2
    status = read_status(tmp_path / "lake")
    assert status is not None
    assert (status.state, status.lag) == ("stopped", 0)


def test_once_does_not_hide_what_failed(tmp_path: Path) -> None:
    class Broken(Here):
        def run(self, items: Sequence[Work[R]], what: str) -> list[R]:
            raise OSError("the disk said no")

    write(tmp_path / "j", [Row("a", b"", 0)])
    pipeline = Pipeline(str(tmp_path / "lake"), str(tmp_path / "j"), Broken())
    with pytest.raises(OSError, match="said no"):
        run(pipeline, Broken(), stop=threading.Event(), once=True)


def test_a_journal_that_lacks_rows_is_an_error_and_not_a_gap_in_the_table(tmp_path: Path) -> None:
    write(tmp_path / "j", [Row("a", b"", n) for n in range(5)], 1)
    pipeline = Pipeline(str(tmp_path / "lake"), str(tmp_path / "j"), Here())
    stretch = JournalRange(0, 7, {"samples": 0})
    work = IngestTask(pipeline.place.uri, pipeline.journal.path, pipeline.journal.id, (stretch,))
    with pytest.raises(JournalError, match="lacks 2 rows before offset 7"):
        work.run()


def test_a_spark_that_has_ended_ends_the_loop(tmp_path: Path) -> None:
    class Dead(Here):
        def run(self, items: Sequence[Work[R]], what: str) -> list[R]:
            self.alive = False
            raise ConnectionRefusedError

    write(tmp_path / "j", [Row("a", b"", 0)])
    tasks = Dead()
    pipeline = Pipeline(str(tmp_path / "lake"), str(tmp_path / "j"), tasks)
    with pytest.raises(SparkEnded, match="Spark has ended"):
        run(pipeline, tasks, stop=threading.Event())


def test_a_spark_that_ends_while_nothing_is_new_ends_the_loop(tmp_path: Path) -> None:
    write(tmp_path / "j", [Row("a", b"", 0)])
    tasks = Here()
    loop = Loop(Pipeline(str(tmp_path / "lake"), str(tmp_path / "j"), tasks), tasks)
    for now in (100.0, 110.0):
        loop.turn(now)
    tasks.alive = False
    with pytest.raises(SparkEnded, match="Spark has ended"):
        loop.turn(120.0)
