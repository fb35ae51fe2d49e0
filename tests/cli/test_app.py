from __future__ import annotations

import json
import subprocess
import sys

import pytest
from typer.testing import CliRunner

import zenlake
from zenlake.cli import lean
from zenlake.cli.app import COMMANDS, application, main


def test_help_lists_every_command() -> None:
    told = CliRunner().invoke(application(), ["--help"])
    assert told.exit_code == 0
    for name in COMMANDS:
        assert name in told.output


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_a_help_page(name: str) -> None:
    told = CliRunner().invoke(application([name]), [name, "--help"])
    assert told.exit_code == 0
    assert f"zenlake {name}" in told.output or f" {name} " in told.output


def test_version_is_the_packages() -> None:
    told = CliRunner().invoke(application(), ["--version"])
    assert told.output == f"{zenlake.__version__}\n"


def test_an_unknown_command_is_refused() -> None:
    told = CliRunner().invoke(application(["wier"]), ["wier"])
    assert told.exit_code == 2
    assert "wier" in told.output


def test_a_command_imports_no_room_of_another() -> None:
    script = (
        "import json, sys\n"
        "from zenlake.cli.app import application\n"
        "application(['info'])\n"
        "print(json.dumps(sorted(n for n in sys.modules if n.startswith('zenlake'))))"
    )
    told = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert json.loads(told.stdout) == [
        "zenlake",
        "zenlake.cli",
        "zenlake.cli.app",
        "zenlake.cli.connection",
        "zenlake.cli.ending",
        "zenlake.cli.info",
        "zenlake.cli.lean",
        "zenlake.cli.pages",
        "zenlake.cli.shared_options",
        "zenlake.printable",
    ]


def test_what_leaves_pandas_out_is_a_command() -> None:
    assert set(COMMANDS) > lean.COMMANDS


def test_what_zenlake_refuses_is_told_in_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["zenlake", "info", "--cfg", "mdoe:'client'"])
    with pytest.raises(SystemExit) as stopped:
        main()
    assert stopped.value.code == 2
    [line] = capsys.readouterr().err.splitlines()
    assert line.startswith("zenlake: mdoe: ")
    assert "mode" in line
