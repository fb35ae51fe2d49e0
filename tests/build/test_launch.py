"""The command at the root of a checkout: `./zenlake`."""

from __future__ import annotations

import fcntl
import json
import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.checkout import base_system, checkout
from tests.cli.programs import Program, endpoint
from tools.compiled_tree import ROOT

#: A program that needs no package but Python's own, in place of zenlake.
TINY = """
import json, os, sys

def main():
    print(json.dumps({"arguments": sys.argv[1:], "path": __file__}))
    sys.exit(7)
"""
TINY_PROJECT = """
[project]
name = "zenlake"
dependencies = []

[dependency-groups]
run = []
"""


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A checkout below a folder with a space in its name, without a compiled tree."""
    folder = checkout(tmp_path / "my checkout")
    shutil.rmtree(folder / "build", ignore_errors=True)
    return folder


def run(
    command: str, cwd: Path, *arguments: str, **settings: str
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [command, *arguments],
        cwd=cwd,
        env=base_system(ZENLAKE_BUILD="pure") | settings,
        capture_output=True,
        text=True,
        check=False,
    )


def package(tree: Path, **settings: str) -> str:
    """Return the folder below the checkout that the command runs from."""
    done = run("./zenlake", tree, "info", "--json", **settings)
    assert done.returncode == 0, done.stderr
    return str(Path(json.loads(done.stdout)["path"]).relative_to(tree))


def pretend_compiled(tree: Path) -> None:
    """Leave what a compilation leaves: a tree, and the fingerprint of what it was made from."""
    shutil.copytree(tree / "src", tree / "build" / "compiled", dirs_exist_ok=True)
    script = "from tools.compiled_tree import MARK, fingerprint; MARK.write_text(fingerprint())"
    subprocess.run([tree / ".venv" / "bin" / "python", "-c", script], cwd=tree, check=True)


def test_the_command_works_from_another_folder_and_through_links(
    tree: Path, tmp_path: Path
) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "relative").symlink_to("../my checkout/zenlake")
    (tmp_path / "bin" / "zl").symlink_to(tmp_path / "bin" / "relative")
    for command in ("../my checkout/zenlake", str(tree / "zenlake"), "./relative", "./zl"):
        done = run(command, tmp_path / "bin", "info", "--json")
        assert done.stderr == ""
        assert json.loads(done.stdout)["path"] == str(tree / "src" / "zenlake")
    found = run("/bin/sh", tree, "-c", "zl info", PATH=f"/usr/bin:/bin:{tmp_path / 'bin'}")
    assert f"path      {tree / 'src' / 'zenlake'}\n" in found.stdout
    assert run("/bin/sh", tree, "zenlake", "info").stdout == found.stdout


def test_exit_codes_errors_and_signals_are_those_of_the_program(tree: Path) -> None:
    done = run("./zenlake", tree, "wire", "zz")
    assert (done.returncode, done.stdout) == (2, "")
    assert "'zz' is not a hexadecimal digit" in done.stderr
    words = ("sub", "-k", "a/**", "-l", endpoint(), "--no-multicast-scouting")
    pure = base_system(ZENLAKE_BUILD="pure")  # nothing is compiled behind it
    with Program(*words, folder=tree, program="./zenlake", environment=pure) as program:
        program.says("subscribed")
        assert program.interrupt(signal.SIGINT) == 130


def test_a_file_in_the_working_folder_shadows_no_module(tree: Path) -> None:
    (tree / "json.py").write_text("raise SystemExit('the wrong json')")
    assert package(tree) == "src/zenlake"


def test_the_compiled_tree_runs_as_long_as_it_matches_the_sources(tree: Path) -> None:
    pretend_compiled(tree)
    source = tree / "src" / "zenlake" / "errors.py"
    text, compiled = source.read_text(), {"ZENLAKE_BUILD": "compiled"}
    assert package(tree, **compiled) == "build/compiled/zenlake"
    assert package(tree, **compiled) == "build/compiled/zenlake"  # as it was found before
    source.write_text(f"{text}\n")
    assert package(tree, **compiled) == "src/zenlake"
    assert package(tree, **compiled) == "src/zenlake"
    source.write_text(text)
    assert package(tree, **compiled) == "build/compiled/zenlake"
    (tree / "src" / "zenlake" / "added.py").touch()
    assert package(tree, **compiled) == "src/zenlake"
    (tree / "src" / "zenlake" / "added.py").unlink()
    assert package(tree, **compiled) == "build/compiled/zenlake"
    assert package(tree, ZENLAKE_BUILD="pure") == "src/zenlake"


def test_an_edit_that_keeps_size_and_hour_is_noticed(tree: Path) -> None:
    pretend_compiled(tree)
    source = tree / "src" / "zenlake" / "errors.py"
    assert package(tree, ZENLAKE_BUILD="compiled") == "build/compiled/zenlake"
    before = source.stat()
    source.write_text(source.read_text().replace("a", "e", 1))
    os.utime(source, ns=(before.st_atime_ns, before.st_mtime_ns + 1))
    assert source.stat().st_size == before.st_size
    assert package(tree, ZENLAKE_BUILD="compiled") == "src/zenlake"


@pytest.mark.slow
def test_the_first_call_makes_the_environment_and_says_so_beside_the_output(
    tmp_path: Path,
) -> None:
    shutil.copy2(ROOT / "zenlake", tmp_path)
    shutil.copytree(ROOT / "tools", tmp_path / "tools")
    (tmp_path / "pyproject.toml").write_text(TINY_PROJECT)
    program = tmp_path / "src" / "zenlake" / "cli" / "app.py"
    program.parent.mkdir(parents=True)
    program.write_text(TINY)
    expected = json.dumps({"arguments": ["put", "a b", ""], "path": str(program)}) + "\n"

    first = run("./zenlake", tmp_path, "put", "a b", "", PYTHON=sys.executable)
    assert (first.returncode, first.stdout) == (7, expected)
    said = first.stderr.splitlines()
    assert said[0].startswith("zenlake: making an environment of Python ")
    assert said[-1].startswith("zenlake: the environment is ready after ")

    again = run("./zenlake", tmp_path, "put", "a b", "", PYTHON="/bin/false")
    assert (again.returncode, again.stdout, again.stderr) == (7, expected, "")


def test_a_python_that_is_missing_ends_the_command(tree: Path) -> None:
    shutil.rmtree(tree / ".venv")
    done = run("./zenlake", tree, "info", PYTHON="no-such-python")
    assert done.returncode == 127
    assert "no-such-python" in done.stderr


def test_an_environment_for_development_is_enough_to_run(tree: Path) -> None:
    marks = tree / ".venv"
    (marks / "ready-to-run").unlink()
    (marks / "bin" / "pip").symlink_to(sys.executable)
    (marks / "ready").touch()
    script = [sys.executable, "tools/needs.py", "dev"]
    needs = subprocess.run(script, cwd=tree, capture_output=True, text=True, check=True).stdout
    (marks / "needs-to-develop.txt").write_text(needs)
    assert run("./zenlake", tree, "info").stderr == ""
    assert (marks / "ready-to-run").exists()


@pytest.mark.slow
@pytest.mark.timeout(300)  # the compiler has the lowest priority, and tests beside it take the CPU
def test_what_make_up_prints_works_as_it_is_printed_though_compiling_fails(tree: Path) -> None:
    (tree / "hatch_build.py").write_text("raise OSError('the compiler is on holiday')")
    settings = base_system(ZENLAKE_BUILD="", PYTHON=sys.executable)
    options = "--no-lake --plain --http none --rest-http-port none"
    options += f" -l {endpoint()} --no-multicast-scouting"
    with Program(
        "up", f"ARGS={options}", folder=tree, program="make", environment=settings
    ) as make:
        try:
            assert "the next start is compiled" in make.says("zenlake: interpreted for now")
            put, get = [make.says(f"./zenlake {word} ").strip() for word in ("put", "get")]
            for line in (put, get):
                done = run("/bin/sh", tree, "-c", f"{line} --no-multicast-scouting")
                assert (done.returncode, done.stderr) == (0, "")
            assert done.stdout.startswith("put demo/hello: hello from zenlake")
            failed = make.says("compiling failed", 240)
            log = tree / "build" / "compiling.log"
            assert failed.endswith(f"see {log}")
            assert "the compiler is on holiday" in log.read_text()
        finally:
            make.interrupt(signal.SIGTERM)
    assert "zenlake: stopped; everything is kept in zenlake-data" in make.lines


def test_nobody_compiles_where_another_process_does(tree: Path) -> None:
    build = tree / "build"
    build.mkdir()
    python = str(tree / ".venv" / "bin" / "python")
    with (build / "compiling.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        lock.write(str(os.getpid()))
        lock.flush()
        script = "from tools.compiled_tree import compiled_tree; compiled_tree(wait=False)"
        done = run(python, tree, "-c", script)
        assert (done.returncode, done.stderr) == (0, "")
        assert [path.name for path in build.iterdir()] == ["compiling.lock"]
        first = run("./zenlake", tree, "info", ZENLAKE_BUILD="")
        assert "compiling goes on in the background" in first.stderr
        with Program(
            "tools/compiled_tree.py", folder=tree, program=python, environment=base_system()
        ) as waiting:
            waiting.says("another process is compiling; waiting for it")
            pretend_compiled(tree)
            lock.close()
            assert waiting.ends() == 0
    assert not re.search("compiling the hot modules", "\n".join(waiting.lines))
