"""The help pages: every command has one, with examples that its own options understand."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from collections.abc import Iterator
from itertools import takewhile
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from zenlake.cli.app import application

WIDTH = 80


def pages(command: Any, *names: str) -> Iterator[tuple[tuple[str, ...], Any]]:
    yield names, command
    for name, below in getattr(command, "commands", {}).items():
        yield from pages(below, *names, name)


ROOT: Any = typer.main.get_command(application())
PAGES = dict(pages(ROOT))
LEAVES = [names for names, command in PAGES.items() if not hasattr(command, "commands")]


def examples(command: Any) -> list[str]:
    """The example lines of a page; one that ends with a backslash goes on in the next."""
    lines = (command.epilog or "").partition("Examples:\n")[2].replace("\\\n", " ").splitlines()
    return [line.strip() for line in lines]


@pytest.mark.parametrize("names", PAGES, ids=" ".join)
def test_every_page_fits_a_terminal_and_begins_with_what_the_command_does(
    names: tuple[str, ...],
) -> None:
    told = CliRunner(env={"COLUMNS": str(WIDTH)}).invoke(application(names), [*names, "--help"])
    lines = told.output.splitlines()
    assert told.exit_code == 0
    assert lines[0].startswith(" ".join(["Usage: zenlake", *names]))
    assert [line for line in lines if len(line) > WIDTH] == []
    # One sentence that fits the list of commands whole.
    summary = " ".join(PAGES[names].help.partition("\n\n")[0].split())
    if names:
        assert summary.endswith(".")
        assert len(summary) <= WIDTH - 16


@pytest.mark.parametrize("names", LEAVES, ids=" ".join)
def test_every_option_is_explained(names: tuple[str, ...]) -> None:
    for param in PAGES[names].params:
        assert getattr(param, "help", None), param.name


@pytest.mark.parametrize("names", LEAVES, ids=" ".join)
def test_the_examples_of_a_command_are_command_lines_that_it_takes(names: tuple[str, ...]) -> None:
    lines = examples(PAGES[names])
    assert lines
    for line in lines:
        words = list(
            takewhile(lambda word: word not in "<>", shlex.split(line.rpartition("| ")[2]))
        )
        assert words[: len(names) + 1] == ["zenlake", *names]
        with PAGES[names].make_context("zenlake", words[len(names) + 1 :]):
            pass  # it parses


def test_a_word_that_is_no_command_is_told_in_one_line() -> None:
    told = CliRunner().invoke(application(["wier"]), ["wier"])
    assert told.exit_code == 2
    assert (
        told.output == "zenlake: No such command 'wier'. Did you mean 'wire'?; see zenlake --help\n"
    )


def test_without_a_word_the_page_is_shown() -> None:
    told = CliRunner().invoke(application(), [])
    assert told.exit_code == 2
    assert "Commands:" in told.output


@pytest.mark.parametrize(
    ("shell", "script"), [("bash", ".bash_completions/zenlake.sh"), ("zsh", ".zfunc/_zenlake")]
)
def test_completion_is_installed_for_the_shell_that_is_named_whatever_runs_the_command(
    shell: str, script: str, tmp_path: Path
) -> None:
    environment = os.environ | {"HOME": str(tmp_path)}
    environment.pop("_ZENLAKE_COMPLETE", None)
    command = [sys.executable, "-m", "zenlake", "--install-completion", shell]
    subprocess.run(command, env=environment, check=True, capture_output=True, timeout=60)
    assert "_ZENLAKE_COMPLETE" in (tmp_path / script).read_text("utf-8")


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        ("zenlake che", "check-config"),
        ("zenlake liveliness ", "token"),
        ("zenlake put --pri", "--priority"),
        ("zenlake put --priority real", "real_time"),
        ("zenlake put --encoding application/js", "application/json"),
        ("zenlake journal ver", "verify"),
        ("zenlake top --so", "--sort"),
        ("zenlake lake reb", "rebuild"),
        ("zenlake lake alert te", "test"),
        ("zenlake lake retain --ol", "--older"),
    ],
)
def test_a_shell_is_offered_what_can_come_next(
    typed: str, offered: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from zenlake.cli.app import main

    words = typed.split(" ")
    monkeypatch.setenv("_ZENLAKE_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", typed)
    monkeypatch.setenv("COMP_CWORD", str(len(words) - 1))
    monkeypatch.setattr("sys.argv", ["zenlake"])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 0
    assert offered in capsys.readouterr().out.split()
