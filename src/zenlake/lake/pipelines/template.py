"""The folder that `zenlake pipeline init` makes: a pipeline to begin with."""

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

FILES: Final = {
    "spark-pipeline.yml": SPEC,
    "transformations/samples_by_minute.py": PYTHON,
    "transformations/busiest_keys.sql": SQL,
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
