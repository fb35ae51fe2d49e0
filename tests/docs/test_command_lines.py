"""Command lines on pages that are shown and not run are ones that `zenlake` takes."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer

from tests.docs.test_prose import PAGES, blocks, named
from zenlake.cli.app import application


def command_lines(body: str) -> Iterator[str]:
    """The command lines of a block; one whose quotes are open goes on in the next."""
    held = ""
    for line in body.replace("\\\n", " ").splitlines():
        held = f"{held} {line}".strip()
        if held.count('"') % 2 == 0:
            yield held
            held = ""


LINES = [
    pytest.param(line, id=f"{named(page)}: {line[:40]}")
    for page in PAGES
    for body in blocks(page, "sh")
    for line in command_lines(body)
    if line.startswith(("zenlake ", "./zenlake "))
]


@pytest.mark.parametrize("line", LINES)
def test_a_command_line_is_one_that_zenlake_takes(line: str) -> None:
    line = re.sub(r"\s+#.*$", "", line).rpartition("| ")[2].partition(" > ")[0].removesuffix(" &")
    words = shlex.split(line)[1:]
    command: Any = typer.main.get_command(application(words))
    while getattr(command, "commands", None):
        command = command.commands[words.pop(0)]
    with command.make_context("zenlake", words):
        pass  # it parses


def test_completion_is_installed_with_one_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from typer.testing import CliRunner

    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr("shellingham.detect_shell", lambda: ("bash", "/bin/bash"))
    told = CliRunner().invoke(application(), ["--install-completion"], prog_name="zenlake")
    assert told.exit_code == 0, told.output
    found = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert any("_ZENLAKE_COMPLETE" in path.read_text("utf-8") for path in found), found
