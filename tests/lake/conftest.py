"""One Spark for all tests of a process."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Kept from run to run: the second one starts in a third of the time.
STATE = Path(__file__).resolve().parents[2] / "build" / "spark-tests"


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """A session on two cores."""
    from zenlake.spark.session import spark_session, stop_spark

    session = spark_session("tests", "local[2]", state=STATE)
    yield session
    stop_spark(session)
