"""The pipelines among the examples pass the tests that lie beside them, as strangers run them."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

EXAMPLES = Path(__file__).resolve().parents[2] / "examples" / "pipelines"
#: What the others show besides is tried by day in tests/lake/pipelines and tests/testing.
BY_DAY = ("energy", "robots")
BY_NIGHT = pytest.mark.nightly(day="examples/test_pipelines.py")
FOLDERS = [
    pytest.param(one, id=one.name, marks=() if one.name in BY_DAY else BY_NIGHT)
    for one in sorted(EXAMPLES.iterdir())
    if any(one.glob("test_*.py"))
]


class Reports:
    """What the tests of an example did."""

    def __init__(self) -> None:
        self.passed: list[str] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "call" and report.passed:
            self.passed.append(report.nodeid)


@pytest.mark.timeout(300)
@pytest.mark.parametrize("folder", FOLDERS)
def test_the_tests_of_an_example_pass(spark: SparkSession, folder: Path, tmp_path: Path) -> None:
    # A run of pytest of its own, which joins the Spark of this process.
    reports = Reports()
    plain = ["-q", "--no-header", "-o", "addopts=", "-c", "/dev/null", "--rootdir", str(folder)]
    # PySpark warns of pandas 3, and in this process warnings are errors.
    without = ["-p", "no:cacheprovider", "-p", "no:xdist", "-W", "default"]
    basetemp = f"--basetemp={tmp_path / 'runs'}"
    code = pytest.main([*plain, *without, basetemp, str(folder)], plugins=[reports])
    assert code == pytest.ExitCode.OK
    assert reports.passed
