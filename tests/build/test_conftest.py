from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import zenlake
from tests.conftest import long_ones_first
from tools.compiled_tree import ROOT

PYTEST = (sys.executable, "-m", "pytest", "-q", "-p", "tests.conftest", "-p", "no:cacheprovider")
SKIPS = """
import pytest

@pytest.mark.skip(reason="no such machine here")
def test_that_skips(): ...

@pytest.mark.xfail(strict=True)
def test_that_is_expected_to_fail(): raise AssertionError
"""
SKIPS_WHOLE = "import pytest; pytest.skip('nothing to see', allow_module_level=True)"


def run(folder: Path, body: str, **settings: str) -> subprocess.CompletedProcess[str]:
    (folder / "test_it.py").write_text(body)
    kept = {name: text for name, text in os.environ.items() if name not in {"CI", "ZENLAKE_EXPECT"}}
    return subprocess.run(
        [*PYTEST, f"--rootdir={folder}", "-c", os.devnull, str(folder)],
        cwd=ROOT,
        env=kept | settings,
        capture_output=True,
        text=True,
        check=False,
    )


def test_outside_ci_a_skip_is_a_skip(tmp_path: Path) -> None:
    done = run(tmp_path, SKIPS)
    assert done.returncode == 0
    assert "1 skipped, 1 xfailed" in done.stdout


def test_in_ci_a_skipped_test_fails_the_run_and_an_expected_failure_does_not(
    tmp_path: Path,
) -> None:
    done = run(tmp_path, SKIPS, CI="true")
    assert done.returncode == 1
    assert "may not be skipped in CI: Skipped: no such machine here" in done.stdout
    assert "1 xfailed" in done.stdout


def test_in_ci_a_skipped_module_fails_the_run(tmp_path: Path) -> None:
    done = run(tmp_path, SKIPS_WHOLE, CI="true")
    assert done.returncode != 0
    assert "may not be skipped in CI: Skipped: nothing to see" in done.stdout


def test_a_run_on_the_other_build_is_refused(tmp_path: Path) -> None:
    other = "interpreted" if zenlake.compiled else "compiled"
    done = run(tmp_path, "def test_nothing(): ...", ZENLAKE_EXPECT=other)
    assert done.returncode == pytest.ExitCode.USAGE_ERROR


def test_each_worker_begins_with_its_share_of_the_long_tests() -> None:
    files = ["a", "a", "long", "long", "b", "c", "longer", "d", "longest", "e"]
    paths = [Path(name) for name in files]
    long = {path for path in paths if path.name.startswith("long")}
    order = long_ones_first(paths, long, 2)
    assert [files[n] for n in order[:5]] == ["long", "long", "longest", "a", "a"]
    assert [files[n] for n in order[5:]] == ["longer", "b", "c", "d", "e"]
    assert long_ones_first(paths, set(), 3) == list(range(len(paths)))
    everything = set(paths)
    assert sorted(long_ones_first(paths, everything, 3)) == list(range(len(paths)))
