from __future__ import annotations

import threading
from pathlib import Path

import pytest

from tests.lake.journals import Here, write
from tests.lake.rowsof import Row
from zenlake.lake import LakeConfig, Pipeline
from zenlake.lake.maintain.status_file import read_status
from zenlake.lake.service.loop import run
from zenlake.lake.service.step_progress import IDLE_SECONDS, StepProgress


def rates(progress: StepProgress, now: float) -> tuple[float, float]:
    found = progress.now(now)
    return found.input_rows_per_second, found.processed_rows_per_second


def test_rates_are_those_of_a_micro_batch() -> None:
    progress = StepProgress("zenlake-data/journal")
    assert rates(progress, 0.0) == (0.0, 0.0)
    progress.on_step(10.0, 0.5, 100, ((0,), (100,), (150,)))
    assert rates(progress, 10.5) == (0.0, 200.0)  # there is none before the first
    progress.on_step(20.0, 2.0, 500, ((100,), (600,), (650,)))
    assert rates(progress, 22.0) == (50.0, 250.0)


def test_a_step_without_rows_changes_nothing_and_after_a_minute_rates_are_zero() -> None:
    progress = StepProgress("j")
    progress.on_step(10.0, 1.0, 100, ((0,), (100,), (100,)))
    progress.on_step(20.0, 1.0, 100, ((100,), (200,), (200,)))
    progress.on_step(30.0, 1.0, 0, ((200,), (200,), (200,)))
    assert rates(progress, 31.0) == (10.0, 100.0)
    assert rates(progress, 20.0 + IDLE_SECONDS) == (0.0, 0.0)
    assert progress.now(20.0 + IDLE_SECONDS).num_input_rows == 100


def test_the_status_has_progress_in_the_words_of_spark(tmp_path: Path) -> None:
    write(tmp_path / "j", [Row("a", b"", n) for n in range(50)], 1)
    config = LakeConfig(batch_rows=30, families=False)
    pipeline = Pipeline(str(tmp_path / "lake"), str(tmp_path / "j"), Here(), config)
    run(pipeline, Here(), stop=threading.Event(), once=True)
    said = read_status(tmp_path / "lake")
    assert said is not None
    (progress,) = said.progress
    plain = progress.plain()
    assert plain["description"] == str(tmp_path / "j")
    assert (plain["startOffset"], plain["endOffset"], plain["latestOffset"]) == ([30], [50], [50])
    assert plain["numInputRows"] == 20
    assert plain["inputRowsPerSecond"] > 0
    seconds = plain["durationMs"]["triggerExecution"] / 1000
    assert plain["processedRowsPerSecond"] == pytest.approx(20 / seconds, rel=0.05)
