"""The compiler in the background, as `zenlake up` shows it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from zenlake.supervise.compiling import Compilation
from zenlake.supervise.screen import compiling

NOW = 1_800_000_000.0


def write(folder: Path, process: int | None, words: str) -> None:
    (folder / "compiling.lock").write_text("" if process is None else str(process))
    (folder / "compiling.txt").write_text(words)


def test_a_compiler_at_work_is_shown_and_its_end_is_told_once(tmp_path: Path) -> None:
    compilation = Compilation(tmp_path, NOW)
    assert compilation.look(NOW) is None  # no process has begun yet
    write(tmp_path, os.getpid(), "compiled 3 of 4 files")
    assert compilation.look(NOW + 60) is None
    assert compilation.words == "compiled 3 of 4 files, for 60 s"
    assert compilation.process() == os.getpid()
    write(tmp_path, None, "compiled in 90 s")
    ended = compilation.look(NOW + 90)
    assert ended is not None
    assert (ended.words, ended.bad) == ("compiled in 90 s; the next start is faster", False)
    assert (compilation.words, compilation.process()) == ("", 0)
    assert compilation.look(NOW + 91) is None


def test_words_that_are_being_written_are_not_taken_for_none(tmp_path: Path) -> None:
    compilation = Compilation(tmp_path, NOW)
    write(tmp_path, os.getpid(), "compiled 3 of 4 files")
    compilation.look(NOW + 12)
    (tmp_path / "compiling.txt").write_text("")
    compilation.look(NOW + 13)
    assert compilation.words == "compiled 3 of 4 files, for 12 s"


def test_the_time_left_is_that_of_the_files_since_the_first_was_counted(tmp_path: Path) -> None:
    compilation = Compilation(tmp_path, NOW)
    write(tmp_path, os.getpid(), "reading types")
    compilation.look(NOW + 40)
    assert compilation.words == "reading types, for 40 s"
    write(tmp_path, os.getpid(), "compiled 10 of 100 files")
    compilation.look(NOW + 50)
    write(tmp_path, os.getpid(), "compiled 40 of 100 files")
    compilation.look(NOW + 80)  # a file a second
    assert compilation.words == "compiled 40 of 100 files, 60 s left"


@pytest.mark.parametrize("words", ["compiled 3 of 4 files", "starting the compiler", ""])
def test_a_compiler_that_ended_early_is_told_with_its_log(tmp_path: Path, words: str) -> None:
    compilation = Compilation(tmp_path, NOW)
    write(tmp_path, 1 << 30, words)  # no process has this number
    assert compilation.look(NOW + 9) is None
    ended = compilation.look(NOW + 10)
    assert ended is not None
    assert ended.bad
    assert ended.words.startswith("compiling failed")
    assert ended.words.endswith(str(tmp_path / "compiling.log"))


def test_only_an_environment_that_names_a_folder_has_a_compiler(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("ZENLAKE_COMPILING", raising=False)
    assert Compilation.of_environment(NOW) is None
    monkeypatch.setenv("ZENLAKE_COMPILING", str(tmp_path))
    write(tmp_path, os.getpid(), "")
    found = Compilation.of_environment(NOW)
    assert found is not None
    assert found.process() == os.getpid()


def test_the_row_of_the_compiler_has_a_bar_where_there_are_numbers() -> None:
    assert compiling("reading types") == "compiling  reading types"
    assert (
        compiling("compiled 1 of 4 files")
        == f"compiling  {'█' * 5}{'░' * 15} compiled 1 of 4 files"
    )
    assert compiling("4 of 4") == f"compiling  {'█' * 20} 4 of 4"
    assert compiling("0 of 0 files") == "compiling  0 of 0 files"
