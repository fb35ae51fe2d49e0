"""What a command may import: nobody waits for rooms and libraries that it does not use."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

#: Rooms of ours that each command may load, by the second word of a module's name. What is not
#: listed costs time before the first letter is printed.
ROOMS = {
    "--version": {"cli", "errors", "printable"},
    "put --help": {"cli", "errors", "printable"},
    "sql --help": {"cli", "errors", "printable"},
    "lake run --help": {"cli", "errors", "printable"},
    "wire 00": {"cli", "clock", "errors", "keys", "lazy", "printable", "values", "wire", "xrce"},
}
#: Libraries that none of them needs; a page of help is drawn by rich.
NOT_WANTED = {"asyncio", "numpy", "pandas", "pyarrow", "pyspark", "ssl", "uvloop", "yaml"}

LOADED = (
    "import json, sys\n"
    "from zenlake.cli.app import main\n"
    "sys.argv = ['zenlake', *sys.argv[1:]]\n"
    "try:\n"
    "    main()\n"
    "finally:\n"
    "    print(json.dumps(sorted(sys.modules)), file=sys.stderr)\n"
)


def loaded(*arguments: str) -> set[str]:
    """The modules that a run of the command has loaded when it ends."""
    told = subprocess.run(
        [sys.executable, "-c", LOADED, *arguments], capture_output=True, text=True, check=False
    )
    return set(json.loads(told.stderr.splitlines()[-1]))


def rooms(modules: set[str]) -> set[str]:
    return {name.split(".")[1] for name in modules if name.startswith("zenlake.")}


@pytest.mark.parametrize("line", ROOMS)
def test_a_command_loads_only_what_it_uses(line: str) -> None:
    modules = loaded(*line.split())
    assert rooms(modules) - ROOMS[line] == set()
    assert modules & NOT_WANTED == set()
    if "--help" not in line:
        assert "rich" not in modules


def test_putting_a_value_loads_what_a_session_takes_and_no_service() -> None:
    modules = loaded("put", "-k", "a", "-p", "b", "--wait", "0", "--no-multicast-scouting")
    assert rooms(modules) & {"admin", "aio", "demo", "ext", "journal", "lake", "spark"} == set()
    assert modules & {"numpy", "pandas", "pyarrow", "pyspark", "rich", "yaml"} == set()


def test_the_version_is_told_with_little_more_than_the_library_of_the_command_line() -> None:
    program = "import typer, typer.main, sys; print(*sys.modules)"
    told = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    modules = loaded("--version")
    assert len(modules) < 1.3 * len(told.stdout.split())
