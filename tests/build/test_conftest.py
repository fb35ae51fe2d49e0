from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

import zenlake
from tests.conftest import TESTS
from tools.compiled_tree import ROOT
from tools.nightly import nightly_tests

PYTEST = (sys.executable, "-m", "pytest", "-q", "-p", "tests.conftest", "-p", "no:cacheprovider")
SKIPS = """
import pytest

@pytest.mark.skip(reason="no such machine here")
def test_that_skips(): ...

@pytest.mark.xfail(strict=True)
def test_that_is_expected_to_fail(): raise AssertionError
"""
SKIPS_WHOLE = "import pytest; pytest.skip('nothing to see', allow_module_level=True)"


def run(
    folder: Path, body: str, *options: str, also: str = "", **settings: str
) -> subprocess.CompletedProcess[str]:
    (folder / "test_it.py").write_text(body)
    if also:
        (folder / "test_also.py").write_text(also)
    ours = ("CI", "ZENLAKE_", "PYTEST_")
    kept = {name: text for name, text in os.environ.items() if not name.startswith(ours)}
    workers = ("-p", "xdist.plugin") if "-n" in options else ()
    return subprocess.run(
        [*PYTEST, f"--rootdir={folder}", "-c", os.devnull, *workers, *options, str(folder)],
        cwd=ROOT,
        # Other plugins that are installed take longer to load than these tests to run.
        env=kept | settings | {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
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


SLOW = "import pytest\n\ndef test_first(): ...\n\n@pytest.mark.slow\ndef test_slow(): ..."
ASKING = "def test_asking(spark): ..."
SPARK = "import pytest\n@pytest.fixture(scope='session')\ndef spark(): ..."


def test_a_run_begins_with_spark_and_has_what_is_slow_among_the_rest(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text(SPARK)
    (tmp_path / "test_a_quick.py").write_text("def test_quick(): ...")
    (tmp_path / "test_b_quick.py").write_text("def test_quick_too(): ...")
    (tmp_path / "test_x_slow.py").write_text(SLOW)
    (tmp_path / "test_z_asking.py").write_text(ASKING)
    done = run(tmp_path, SLOW, "-vv")
    order = re.findall(r"::(test_\w+) PASSED", done.stdout)
    slow = ["test_first", "test_slow"]
    expected = ["test_asking", "test_quick", *slow, *slow, "test_quick_too"]
    assert order == expected, done.stdout


@pytest.mark.parametrize("fixture", ["", "spark"])
def test_a_file_and_all_tests_with_the_warm_spark_stay_with_one_worker(
    tmp_path: Path, fixture: str
) -> None:
    (tmp_path / "conftest.py").write_text(SPARK)
    body = f"""
import os, pytest

@pytest.mark.parametrize("n", range(6))
def test_where({", ".join(filter(None, ["n", fixture]))}):
    with open({str(tmp_path / "workers")!r}, "a") as file:
        file.write(os.environ["PYTEST_XDIST_WORKER"] + "\\n")
"""
    other = body if fixture else "def test_other(): ..."
    done = run(tmp_path, body, "-n", "2", "--dist=loadfile", also=other)
    workers = (tmp_path / "workers").read_text().split()
    assert len(workers) == (12 if fixture else 6), done.stdout
    assert len(set(workers)) == 1


SERVING = """
from pathlib import Path
from tests.volumes.servers import Server

def test_serving(tmp_path):
    server = Server(["sleep", "1000"], tmp_path, lambda: True)
    Path({file!r}).write_text(str(server._process.pid))
"""


def test_servers_end_with_the_worker_that_started_them(tmp_path: Path) -> None:
    file = tmp_path / "pid"
    done = run(tmp_path, SERVING.format(file=str(file)), "-n", "1")
    assert done.returncode == 0, done.stdout
    assert not psutil.pid_exists(int(file.read_text()))


def test_nightly_tests_name_tests_that_run_by_day() -> None:
    found = list(nightly_tests())
    whole = {place for place, _ in found if "::" not in place}
    assert found
    for place, day in found:
        for name in day:
            assert (TESTS / name).is_file(), f"{place} names {name}"
            assert name not in whole, f"{place} is covered by {name}, which runs by night itself"
