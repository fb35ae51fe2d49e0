"""A machine that has no Java of its own, and one Spark for all tests of a process on it.

Every program of the suite finds the same Java, so that all of them share one archive of classes
(`make` has it written before the first of them starts).
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from tools.spark_classes import STATE, without_java

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["STATE", "machine", "no_java", "spark"]


AS_IT_IS = dict(os.environ)


@pytest.fixture(scope="session")
def machine() -> dict[str, str]:
    """The environment as this machine has it, Java and all."""
    return dict(AS_IT_IS)


@pytest.fixture(scope="session", autouse=True)
def no_java(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """`JAVA_HOME` unset, and a PATH with everything on it but `java`."""
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("JAVA_HOME", raising=False)
        patch.setenv("PATH", without_java(AS_IT_IS["PATH"], tmp_path_factory.mktemp("path")))
        yield


@pytest.fixture(scope="session")
def spark(no_java: None) -> Iterator[SparkSession]:
    """A session on two cores, on the Java that comes with the package."""
    from zenlake.spark import spark_session, stop_spark

    session = spark_session("tests", "local[2]", state=STATE)
    yield session
    stop_spark(session)
