from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest
from typer.testing import CliRunner, Result

from zenlake.cli.app import application

INIT_SYN = "c109f2035f0e01d717c5ebc8c813226f66cb470ac8ff812701"


def run(*arguments: str, given: str | None = None) -> Result:
    return CliRunner().invoke(application(["wire"]), ["wire", *arguments], input=given)


def test_bytes_are_shown_as_a_tree() -> None:
    told = run(INIT_SYN)
    assert told.exit_code == 0
    assert "InitSyn" in told.output
    assert "whatami  2             client" in told.output


@pytest.mark.parametrize(
    "written",
    [["c1 09 00 01"], ["c1", "09", "00", "01"], ["0xc1", "0x09,0x00,0x01"], ["C1:09:00:01"],
     ["c109\n0001\n"], ["0xc1090001"]],
)  # fmt: skip
def test_hexadecimal_is_read_as_people_write_it(written: list[str]) -> None:
    told = json.loads(run("--json", *written).output)
    assert told["size"] == 4
    assert told["messages"][0]["bytes"].startswith("c109")


@pytest.mark.parametrize("arguments", [[], ["-"]])
def test_bytes_come_from_the_standard_input(arguments: list[str]) -> None:
    told = run(*arguments, given="04\n")
    assert told.exit_code == 0
    assert "KeepAlive" in told.output


def test_json_has_the_whole_tree() -> None:
    told = json.loads(run("--json", INIT_SYN).output)
    assert told["form"] == "batch"
    assert told["error"] is None
    version = told["messages"][0]["children"][1]
    assert version == {
        "offset": 1,
        "bytes": "09",
        "name": "version",
        "value": 9,
        "meaning": "of the protocol that is spoken",
        "children": [],
    }


def test_broken_bytes_say_where_and_why_and_end_with_1() -> None:
    told = run(INIT_SYN[:42])
    assert told.exit_code == 1
    assert told.output.splitlines()[-1] == (
        "✗ broken at offset 20, in InitSyn.batch_size: 2 bytes wanted, 1 left"
    )


def test_broken_bytes_in_json_say_the_same() -> None:
    told = run("--json", INIT_SYN[:42])
    assert told.exit_code == 1
    assert json.loads(told.output)["error"] == {
        "offset": 20,
        "field": "InitSyn.batch_size",
        "reason": "2 bytes wanted, 1 left",
    }


@pytest.mark.parametrize(
    ("written", "complaint"),
    [
        ("c10", "'c10' has 3 digits"),
        ("c1 0", "'0' has 1 digit;"),
        ("c1xy", "'x' in 'c1xy' is not a hexadecimal digit"),
        ("", "no bytes"),
        ("0x", "no bytes"),
    ],
)
def test_what_is_not_hexadecimal_is_refused_with_2(written: str, complaint: str) -> None:
    told = run(written)
    assert told.exit_code == 2
    assert complaint in told.output


def test_what_the_bytes_are_can_be_said() -> None:
    assert run("--scouting", "010903").exit_code == 0
    assert run("--network", "9a01210d").exit_code == 0
    assert run("--batch", "9a01210d").exit_code == 1


def test_what_the_bytes_are_can_be_said_once_only() -> None:
    told = run("--scouting", "--batch", "010903")
    assert told.exit_code == 2
    assert "--batch and --scouting" in told.output


def test_the_2018_protocol_is_read_too() -> None:
    told = run("--2018", "b3460001010c062f6c61622f3f")
    assert told.exit_code == 0
    for word in ("Conduit", "Declare", "Resource", '"/lab/?"'):
        assert word in told.output


@pytest.mark.parametrize(
    ("said", "coloured"),
    [({"TERM": "xterm-256color"}, True), ({"TERM": "dumb"}, False), ({"NO_COLOR": "1"}, False)],
)
def test_a_terminal_gets_colours_unless_it_wants_none(said: dict[str, str], coloured: bool) -> None:
    ours, theirs = os.openpty()
    environment = {**os.environ, "TERM": "xterm-256color"}
    environment.pop("NO_COLOR", None)
    environment |= said
    command = [sys.executable, "-m", "zenlake", "wire", "0302"]
    subprocess.run(command, stdout=theirs, env=environment, check=True)
    told = os.read(ours, 65536).decode()
    os.close(ours)
    os.close(theirs)
    assert ("\x1b[" in told) is coloured
    assert "Close" in told
