from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

from tests.lake.journals import Here, R, write
from tests.lake.rowsof import Row
from zenlake.errors import LocalError
from zenlake.journal import Journal
from zenlake.lake import Pipeline
from zenlake.lake.ingest.cluster_probe import probe
from zenlake.lake.ingest.spark_tasks import Work
from zenlake.lake.table.location import LakeLocation


class Elsewhere(Here):
    """A worker that has other folders where ours are."""

    def __init__(self, **other: str) -> None:
        super().__init__()
        self.other = other

    def run(self, items: Sequence[Work[R]], what: str) -> list[R]:
        works: list[Any] = [replace(cast("Any", one), **self.other) for one in items]
        return super().run(works, what)


@pytest.fixture
def folders(tmp_path: Path) -> tuple[LakeLocation, Journal]:
    write(tmp_path / "journal", [Row("a")])
    write(tmp_path / "other", [Row("a")])
    (tmp_path / "empty").mkdir()
    return LakeLocation(tmp_path / "lake"), Journal.open(tmp_path / "journal")


def test_workers_that_see_both_folders_are_no_reason_to_speak(
    folders: tuple[LakeLocation, Journal],
) -> None:
    lake, journal = folders
    probe(Here(), lake, journal)
    assert lake.folders() == []


@pytest.mark.parametrize(
    ("field", "name", "words"),
    [
        ("journal", "gone", "does not see the journal"),
        ("journal", "other", "sees another journal in"),
        ("lake", "empty", "does not see the lake"),
        ("lake", "gone", "does not see the lake"),
    ],
)
def test_what_a_worker_does_not_see_is_said_in_words_with_the_cure(
    folders: tuple[LakeLocation, Journal], tmp_path: Path, field: str, name: str, words: str
) -> None:
    lake, journal = folders
    with pytest.raises(LocalError) as told:
        probe(Elsewhere(**{field: str(tmp_path / name)}), lake, journal)
    assert words in str(told.value)
    assert "a shared filesystem" in str(told.value)
    assert "\n" not in str(told.value)


def test_workers_without_zenlake_are_told_apart(folders: tuple[LakeLocation, Journal]) -> None:
    class Bare(Here):
        def run(self, items: Sequence[Work[R]], what: str) -> list[R]:
            raise ModuleNotFoundError("No module named 'zenlake'")

    with pytest.raises(LocalError, match=r"No module named 'zenlake'.*install it on each"):
        probe(Bare(), *folders)


def test_tasks_are_sent_absolute_paths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path / "journal", [Row("a")])
    monkeypatch.chdir(tmp_path)
    pipeline = Pipeline("lake", "journal", Here())
    assert pipeline.journal.path == str(tmp_path / "journal")
    assert pipeline.place.uri == str(tmp_path / "lake")
