from __future__ import annotations

import threading
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.lake.journals import Here, rows_of, table_of, write
from tests.lake.rowsof import Row
from tests.waiting import until
from zenlake.errors import LocalError
from zenlake.journal import Journal
from zenlake.lake import LakeConfig, Pipeline
from zenlake.lake import run as running
from zenlake.lake.delta import Overtaken
from zenlake.lake.run import Ran, run
from zenlake.lake.tasks import Work


def has_rows(lake: Path, rows: int) -> bool:
    return len(rows_of(lake, "samples")) == rows


def test_once_reads_all_that_is_there_and_ends(tmp_path: Path) -> None:
    write(tmp_path / "j", [Row("a", b"", n) for n in range(50)])
    config = LakeConfig(batch_rows=20)
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


def test_it_follows_the_journal_keeps_tables_in_shape_and_survives_failures(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(running, "UPKEEP", 0.05)
    monkeypatch.setattr(running, "VACUUM", 0.0)
    monkeypatch.setattr(running, "RETAIN", 0.0)

    class Moody(Here):
        failures = 2

        def run(self, items: Sequence[Work], what: str) -> list[dict[str, Any]]:
            if what == "journal to tables" and self.failures:
                self.failures -= 1
                raise Overtaken("not now") if self.failures else OSError("the disk said no")
            return super().run(items, what)

    write(tmp_path / "j", [Row("a", b"", 0)])
    lake = tmp_path / "lake"
    config = LakeConfig(compact_files=3, gaps_every=0.2, vacuum_age=0.5)
    tasks = Moody()
    pipeline = Pipeline(str(lake), str(tmp_path / "j"), tasks, config)
    stop = threading.Event()
    results: list[Ran] = []
    loop = threading.Thread(
        target=lambda: results.append(run(pipeline, tasks, stop=stop, every=0.01))
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


def test_once_does_not_hide_what_failed(tmp_path: Path) -> None:
    class Broken(Here):
        def run(self, items: Sequence[Work], what: str) -> list[dict[str, Any]]:
            raise OSError("the disk said no")

    write(tmp_path / "j", [Row("a", b"", 0)])
    pipeline = Pipeline(str(tmp_path / "lake"), str(tmp_path / "j"), Broken())
    with pytest.raises(OSError, match="said no"):
        run(pipeline, Broken(), stop=threading.Event(), once=True)


def test_a_journal_that_lacks_rows_is_an_error_and_not_a_gap_in_the_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path / "j", [Row("a", b"", n) for n in range(5)], 1)
    pipeline = Pipeline(str(tmp_path / "lake"), str(tmp_path / "j"), Here())
    scan = Journal.scan
    monkeypatch.setattr(Journal, "scan", lambda self, *a, **k: list(scan(self, *a, **k))[1:])
    with pytest.raises(Exception, match="lacks 5 rows"):
        pipeline.step()
    assert rows_of(tmp_path / "lake", "samples") == []


def test_a_spark_that_has_ended_ends_the_loop(tmp_path: Path) -> None:
    class Dead(Here):
        def run(self, items: Sequence[Work], what: str) -> list[dict[str, Any]]:
            self.alive = False
            raise ConnectionRefusedError

    write(tmp_path / "j", [Row("a", b"", 0)])
    tasks = Dead()
    pipeline = Pipeline(str(tmp_path / "lake"), str(tmp_path / "j"), tasks)
    with pytest.raises(LocalError, match="Spark has ended"):
        run(pipeline, tasks, stop=threading.Event())
