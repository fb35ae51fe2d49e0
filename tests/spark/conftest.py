"""One Spark for all tests of a process, on a machine that has no Java of its own."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Kept from run to run: the second one starts in a third of the time.
STATE = Path(__file__).resolve().parents[2] / "build" / "spark-tests"


@pytest.fixture(scope="session")
def machine() -> dict[str, str]:
    """The environment as this machine has it, Java and all."""
    return dict(os.environ)


@pytest.fixture(scope="session")
def no_java(machine: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """`JAVA_HOME` unset, and a PATH with everything on it but `java`."""
    folder = tmp_path_factory.mktemp("path")
    for entry in machine["PATH"].split(os.pathsep):
        for program in Path(entry).glob("*") if Path(entry).is_dir() else ():
            link = folder / program.name
            if not program.name.startswith("java") and not link.is_symlink():
                link.symlink_to(program)
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("JAVA_HOME", raising=False)
        patch.setenv("PATH", str(folder))
        yield


@pytest.fixture(scope="session")
def spark(no_java: None) -> Iterator[SparkSession]:
    """A session on two cores, on the Java that comes with the package."""
    from zenlake.spark import spark_session, stop_spark

    session = spark_session("tests", "local[2]", state=STATE)
    yield session
    stop_spark(session)
