"""What every test run agrees on: the build under test, hypothesis profiles, no skips in CI.

ZENLAKE_EXPECT=compiled|interpreted   refuse to run on the other build
HYPOTHESIS_PROFILE=dev|ci|night       how long properties are searched; `ci` when CI is set
"""

from __future__ import annotations

import importlib
import logging
import os
import tomllib
from collections.abc import Generator
from fnmatch import fnmatchcase
from functools import cache
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path

import hypothesis
import pytest

import zenlake
from tests.spark.machine import machine, no_java, spark

__all__ = ["machine", "no_java", "spark"]

TESTS = Path(__file__).resolve().parent
ROOT = TESTS.parent
COLLECTED = pytest.StashKey[set[Path]]()
#: What both builds run from the same sources, far from the compiled rooms: one of them is enough.
ONCE = (
    "agents", "build", "cli", "config", "demo", "deploy", "docs/test_docstrings.py",
    "docs/test_prose.py", "examples", "lake", "remote", "replay", "replication", "rest", "ros2",
    "spark", "supervise", "volumes", "web",
)  # fmt: skip
# Every Spark of the suite lives for seconds: what the better compiler of Java makes of its code
# comes too late to be of use, and takes half of all its CPU.
os.environ.setdefault("ZENLAKE_JAVA_OPTIONS", "-XX:TieredStopAtLevel=1")
CI = os.environ.get("CI", "").lower() in {"1", "true", "yes"}

# Properties have no deadline: two busy cores say nothing about an algorithm. In CI the examples
# are derived from the test itself, so that a red run means a change and never bad luck; `dev`
# and `night` go looking for new ones.
hypothesis.settings.register_profile("dev", deadline=None, max_examples=100)
# What is interpreted is the source of what is compiled, and twenty times as slow.
hypothesis.settings.register_profile(
    "ci",
    deadline=None,
    max_examples=100 if zenlake.compiled else 40,
    derandomize=True,
    database=None,
    print_blob=True,
)
hypothesis.settings.register_profile(
    "night",
    deadline=None,
    max_examples=20_000,
    suppress_health_check=[hypothesis.HealthCheck.too_slow],
)
hypothesis.settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci" if CI else "dev"))


def pytest_runtest_teardown() -> None:
    # Commands set up logging for their process; here the process is everybody's.
    for name in ("zenlake", *logging.Logger.manager.loggerDict):
        if name.partition(".")[0] == "zenlake":
            logger = logging.getLogger(name)
            logger.setLevel(logging.NOTSET)
            logger.handlers.clear()


def pytest_configure(config: pytest.Config) -> None:
    expected = os.environ.get("ZENLAKE_EXPECT")
    if expected not in {None, "compiled", "interpreted"}:
        raise pytest.UsageError(f"ZENLAKE_EXPECT={expected}: write 'compiled' or 'interpreted'")
    if expected == "interpreted" and zenlake.compiled:
        raise pytest.UsageError(f"{zenlake.__file__} is compiled; run with PYTHONPATH=src")
    if expected == "compiled":
        _demand_extensions()


@cache
def of_compiled(path: Path) -> bool:
    """Whether a file has the tests of a module that is compiled."""
    # Not by `hatch_build`: what builds a wheel is not there wherever tests run.
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    rooms = path.relative_to(TESTS).with_name(path.stem.removeprefix("test_")).parts
    module = ".".join(("zenlake", *rooms))
    return any(fnmatchcase(module, one) for one in project["tool"]["zenlake"]["compiled"])


@pytest.hookimpl(tryfirst=True)  # before -m and -k take items away
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    config.stash[COLLECTED] = {item.path for item in items}
    once = [TESTS / name for name in ONCE]
    for item in items:
        if any(item.path.is_relative_to(place) for place in once) and not of_compiled(item.path):
            item.add_marker(pytest.mark.once)
    long = {item.path for item in items if is_long(item)}
    workers = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    if workers > 1:
        items[:] = [items[n] for n in long_ones_first([item.path for item in items], long, workers)]


def is_long(item: pytest.Item) -> bool:
    """Whether a test starts a Spark, or says that it takes its time."""
    return any(item.get_closest_marker(name) for name in ("slow", "spark"))


def long_ones_first(paths: list[Path], long: set[Path], workers: int) -> list[int]:
    """The order in which each of some workers begins with its share of the long tests.

    Each worker has as many tests in a row, and takes from the end of another's row when its own is
    done: what takes minutes must not stand there. Tests of one file stay together.
    """
    numbers: dict[Path, list[int]] = {}
    for number, path in enumerate(paths):
        numbers.setdefault(path, []).append(number)
    files = [path for path in numbers if path in long]
    rows = [[n for path in files[one::workers] for n in numbers[path]] for one in range(workers)]
    short = [number for number, path in enumerate(paths) if path not in long]
    share = -(-len(paths) // workers)
    for row in rows:
        room = max(0, share - len(row))
        row += short[:room]
        del short[:room]
    return [number for row in rows for number in row]


@pytest.fixture
def collected(pytestconfig: pytest.Config) -> set[Path]:
    """The files that tests were found in, those taken away by -m and -k too."""
    return pytestconfig.stash[COLLECTED]


def pytest_report_header() -> str:
    kind = "compiled" if zenlake.compiled else "interpreted"
    return f"zenlake: {zenlake.__version__} {kind}, from {zenlake.__path__[0]}"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if CI and report.skipped and not hasattr(report, "wasxfail"):
        report.outcome = "failed"
        report.longrepr = f"a test may not be skipped in CI: {_reason(report.longrepr)}"
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    report = yield
    if CI and report.outcome == "skipped":
        report.outcome = "failed"
        report.longrepr = f"a module may not be skipped in CI: {_reason(report.longrepr)}"
    return report


def _reason(longrepr: object) -> object:
    return longrepr[-1] if isinstance(longrepr, tuple) else longrepr


def _demand_extensions() -> None:
    from hatch_build import compiled_modules

    modules = compiled_modules(ROOT)
    sources = {module: str(importlib.import_module(module).__file__) for module in modules}
    plain = [name for name, file in sources.items() if not file.endswith(tuple(EXTENSION_SUFFIXES))]
    if not zenlake.compiled or not modules or plain:
        raise pytest.UsageError(
            f"ZENLAKE_EXPECT=compiled, but {zenlake.__path__[0]} is not: "
            f"compiled={zenlake.compiled}, not extensions: {', '.join(plain) or 'none'}"
        )
