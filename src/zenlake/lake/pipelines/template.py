"""The folder that `zenlake pipeline init` makes: a pipeline to begin with, and a test of it."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from zenlake.errors import LocalError

__all__ = ["write_template"]

SPEC: Final = """\
# Read by `zenlake pipeline` and by Spark's own `spark-pipelines`.
name: {name}
storage: {storage}
libraries:
  - glob:
      include: transformations/**
"""

PYTHON: Final = '''\
"""Samples by key and minute, from everything that the lake has and goes on to get."""

from pyspark import pipelines as dp
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

spark = SparkSession.active()


@dp.table(comment="samples by key and minute; a minute is there when it is over")
def samples_by_minute() -> DataFrame:
    return (
        spark.readStream.table("samples")
        .withWatermark("time", "10 seconds")
        .groupBy(f.window("time", "1 minute").alias("minute"), "key")
        .agg(f.count("*").alias("samples"), f.sum(f.length("value")).alias("bytes"))
        .select(f.col("minute.start").alias("minute"), "key", "samples", "bytes")
    )
'''

SQL: Final = """\
-- Computed again when samples_by_minute has changed.
CREATE MATERIALIZED VIEW busiest_keys
COMMENT 'the keys with the most samples'
AS SELECT key, sum(samples) AS samples FROM samples_by_minute GROUP BY key
ORDER BY samples DESC LIMIT 20
"""

TEST: Final = '''\
"""What the pipeline makes of samples: run with `pytest`."""

from datetime import UTC, datetime

from zenlake.testing.pipeline import PipelineHarness

pytest_plugins = ["zenlake.testing.pipeline"]


def at(minute: int, second: int = 0) -> datetime:
    return datetime(2026, 1, 31, 12, minute, second, tzinfo=UTC)


def test_samples_are_counted_when_their_minute_is_over(pipeline: PipelineHarness) -> None:
    pipeline.record(
        [
            {"key": "robot/7/pose", "value": b"12345", "time": at(0, 10)},
            {"key": "robot/7/pose", "value": b"12", "time": at(0, 50)},
            {"key": "robot/8/pose", "value": b"1", "time": at(0, 30)},
            # Ten seconds after its end nothing is waited for.
            {"key": "robot/8/pose", "value": b"1", "time": at(1, 11)},
        ]
    )
    pipeline.step()
    pipeline.table("samples_by_minute").assert_rows(
        [
            {"minute": at(0), "key": "robot/7/pose", "samples": 2, "bytes": 7},
            {"minute": at(0), "key": "robot/8/pose", "samples": 1, "bytes": 1},
        ],
        by=["minute", "key"],
    )
    pipeline.table("busiest_keys").assert_rows(
        [{"key": "robot/7/pose", "samples": 2}, {"key": "robot/8/pose", "samples": 1}]
    )
'''

FILES: Final = {
    "spark-pipeline.yml": SPEC,
    "transformations/samples_by_minute.py": PYTHON,
    "transformations/busiest_keys.sql": SQL,
    "tests/test_samples_by_minute.py": TEST,
}


def write_template(folder: Path) -> list[Path]:
    """Write the files of a pipeline into a new folder; returns where they are."""
    if folder.exists() and any(folder.iterdir()):
        raise LocalError(f"{folder} is there already; choose a folder that is not")
    paths = []
    for name, text in FILES.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        storage = (folder.resolve() / ".storage").as_uri()
        page = text.format(name=folder.resolve().name, storage=storage) if text is SPEC else text
        path.write_text(page, "utf-8")
        paths.append(path)
    return paths
