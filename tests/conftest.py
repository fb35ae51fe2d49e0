"""What every test run agrees on: the build under test, hypothesis profiles, no skips in CI.

ZENLAKE_EXPECT=compiled|interpreted   refuse to run on the other build
HYPOTHESIS_PROFILE=dev|ci|night       how long properties are searched; `ci` when CI is set
ZENLAKE_SHUFFLE=7                     run files and their tests in a random order, of this seed
"""

from __future__ import annotations

import ast
import gc
import importlib
import logging
import os
import random
import sys
import tomllib
from collections.abc import Generator
from fnmatch import fnmatchcase
from functools import cache
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path
from typing import Any

import hypothesis
import pytest

import zenlake
from tests.spark.machine import machine, no_java, spark

__all__ = ["machine", "no_java", "spark"]

TESTS = Path(__file__).resolve().parent
ROOT = TESTS.parent
COLLECTED = pytest.StashKey[set[Path]]()
#: Rooms that are compiled, and tests that tell the builds apart: these run on both builds. Of
#: other rooms only the files that are named after a compiled module do.
BOTH = (
    "api", "clock", "engine", "hostile", "journal/ingest", "keys", "newest", "node", "routing",
    "storage_manager", "transport", "values", "wire", "xrce", "xrce_io",
)  # fmt: skip
# Every Spark of the suite lives for seconds: what the better compiler of Java makes of its code
# comes too late to be of use, and takes half of all its CPU. Collecting garbage with one thread
# takes a tenth less of it than with several.
os.environ.setdefault("ZENLAKE_JAVA_OPTIONS", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")
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


def pytest_sessionfinish() -> None:
    servers = sys.modules.get("tests.volumes.servers")
    for server in servers.RUNNING if servers is not None else ():
        server.end()


def pytest_configure(config: pytest.Config) -> None:
    expected = os.environ.get("ZENLAKE_EXPECT")
    if expected not in {None, "compiled", "interpreted"}:
        raise pytest.UsageError(f"ZENLAKE_EXPECT={expected}: write 'compiled' or 'interpreted'")
    if expected == "interpreted" and zenlake.compiled:
        raise pytest.UsageError(f"{zenlake.__file__} is compiled; run with PYTHONPATH=src")
    if expected == "compiled":
        _demand_extensions()


@cache
def compiled_patterns() -> list[str]:
    # Not by `hatch_build`: what builds a wheel is not there wherever tests run.
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    found: list[str] = project["tool"]["zenlake"]["compiled"]
    return found


@cache
def runs_on_both(path: Path) -> bool:
    """Return True if the tests of a file run interpreted, too."""
    if not path.is_relative_to(TESTS):
        return False
    if any(path.is_relative_to(TESTS / name) for name in BOTH):
        return True
    rooms = path.relative_to(TESTS).with_name(path.stem.removeprefix("test_")).parts
    module = ".".join(("zenlake", *rooms))
    return any(fnmatchcase(module, pattern) for pattern in compiled_patterns())


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Do not import the test files of which `make interpreted` runs nothing: most of them."""
    unwanted = "not once" in config.option.markexpr and collection_path.name.startswith("test_")
    return True if unwanted and not runs_on_both(collection_path) else None


@pytest.hookimpl(tryfirst=True)  # before -m and -k take items away
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    config.stash[COLLECTED] = {item.path for item in items}
    for item in items:
        if not runs_on_both(item.path):
            item.add_marker(pytest.mark.once)
    shuffle = os.environ.get("ZENLAKE_SHUFFLE")
    if shuffle:
        shuffle_files(items, int(shuffle))
    else:
        spread_files(items)


def pytest_collection_finish() -> None:
    # Collecting garbage walks over all that lives: over ten thousand tests, each time.
    gc.collect()
    gc.freeze()


#: The part of a run's files within which the slow ones are begun.
SLOW_FILES_WITHIN = 0.6


@cache
def uses_warm_spark(path: Path) -> bool:
    """Return True if a function of a test file asks for the fixture `spark`."""
    source = path.read_bytes()
    return b"spark" in source and any(
        isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and any(argument.arg == "spark" for argument in node.args.args)
        for node in ast.walk(ast.parse(source))
    )


def spread_files(items: list[pytest.Item]) -> None:
    """Put the files of the warm Spark first, and slow files evenly among the first of the rest.

    Workers take files in this order. Slow files wait for other programs while quick ones need the
    processor, so both run side by side; no slow file is left for the end.
    """
    slow = {item.path for item in items if any(map(item.get_closest_marker, ("slow", "spark")))}
    files = dict.fromkeys(item.path for item in items)
    places: dict[Path, float] = {}
    for path in files:
        if uses_warm_spark(path):
            places[path] = -1.0
    for few, share in ((True, SLOW_FILES_WITHIN), (False, 1.0)):
        group = [path for path in files if (path in slow) is few and path not in places]
        for number, path in enumerate(group):
            places[path] = share * number / len(group)
    items.sort(key=lambda item: places[item.path])


def shuffle_files(items: list[pytest.Item], seed: int) -> None:
    """Put the files in random order, and the tests of each file; every worker does the same."""
    chance = random.Random(seed)
    ranks = {path: chance.random() for path in sorted({item.path for item in items})}
    chance.shuffle(items)
    items.sort(key=lambda item: ranks[item.path])


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Give workers whole files; one worker gets every file that uses the warm Spark."""
    from xdist.scheduler import LoadScopeScheduling

    class ByFile(LoadScopeScheduling):  # type: ignore[misc]  # xdist has no types
        def _split_scope(self, nodeid: str) -> str:
            file = nodeid.partition("::")[0]
            return "spark" if uses_warm_spark(config.rootpath / file) else file

    config.option.loadscopereorder = False
    return ByFile(config, log)


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
