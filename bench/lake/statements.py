"""`latest`, `gaps` and `rollups` as statements of Spark SQL beside what the lake does.

Each statement reads the same files and gives the same facts, as far as one statement can: the
counts are compared. What is asked of it is the easy part. A whole table is read, while the lake
goes on from where it was; nothing is committed.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq

from bench.lake.cpu import CpuTime
from zenlake.lake import LakeConfig, Pipeline
from zenlake.lake.ingest.spark_tasks import SparkTasks
from zenlake.lake.table.delta import Table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NUMBERS = ("x", "y", "percent")

#: Counts of minutes, and hours of those: a statement each for the three numbers would read thrice.
ROLLUPS = """
WITH minutes AS (
  SELECT key, date_trunc('minute', time) AS start, {aggregates} FROM pose GROUP BY 1, 2
), parts AS (
  SELECT key, start, stack({count}, {stacked}) AS (field, count, sum, min, max) FROM minutes
)
SELECT 'pose' AS table, key, field, 'minute' AS width, start, count, sum, min, max FROM parts
UNION ALL
SELECT 'pose', key, field, 'hour', date_trunc('hour', start), sum(count), sum(sum), min(min),
  max(max) FROM parts GROUP BY key, field, date_trunc('hour', start)
"""

#: What each source said and what came of it; between which numbers others lack is not in it.
GAPS = """
SELECT source_zid, source_eid, max(source_sn) - min(source_sn) + 1 AS expected,
  count(DISTINCT source_sn) AS received, count(*) AS rows FROM samples GROUP BY 1, 2
"""

LATEST = """
SELECT samples.* FROM samples JOIN (SELECT key, max(hlc) AS hlc FROM samples GROUP BY key)
USING (key, hlc)
"""


def rollups() -> str:
    """The statement for three numbers."""
    words = ("count", "sum", "min", "max")
    aggregates = [f"{word}({one}) AS {one}_{word}" for one in NUMBERS for word in words]
    stacked = [", ".join([f"'{one}'", *(f"{one}_{word}" for word in words)]) for one in NUMBERS]
    return ROLLUPS.format(
        aggregates=", ".join(aggregates), count=len(NUMBERS), stacked=", ".join(stacked)
    )


def statements(
    spark: SparkSession,
    folder: Path,
    sizes: list[int],
    rounds: int,
    config: LakeConfig,
    record: Callable[[Path, int], None],
) -> dict[str, Any]:
    """Microseconds of CPU a row of both, for each table and size."""
    cpu = CpuTime()
    found: dict[str, Any] = {}
    for rows in sizes:
        lake, journal = folder / f"lake{rows}", folder / f"journal{rows}"
        record(journal, rows)
        told: dict[str, list[tuple[float, float]]] = {}
        for turn in range(rounds + 1):
            tasks = SparkTasks(spark)
            settings = replace(config, rollups=1.0)
            pipeline = Pipeline(str(lake), str(journal), tasks, settings)
            while pipeline.step().behind:
                pass
            counted = pipeline.rollups
            assert counted is not None
            specs = {one.name: (one, pipeline.tables[one.name]) for one in pipeline.specs}
            counted.of(specs, (pipeline.app(0),))
            out = folder / "out"
            tasks.warm()
            for name, counter, statement in (
                ("rollups", counted, rollups()),
                ("gaps", pipeline.gaps, GAPS),
                ("latest", pipeline.latest, LATEST),
            ):
                _, ours = cpu.took(partial(counter.fold, 0.0))
                for table in (pipeline.samples, pipeline.tables["pose"]):
                    _view(spark, table)
                _, theirs = cpu.took(partial(_write, spark, statement, out))
                _same(name, counter.table, out)
                shutil.rmtree(out)
                if turn:
                    told.setdefault(name, []).append((ours, theirs))
            shutil.rmtree(lake)
        shutil.rmtree(journal)
        for name, pairs in told.items():
            mine, theirs = (sorted(each)[len(each) // 2] for each in zip(*pairs, strict=True))
            found[f"`{name}`, {rows:,} rows"] = {
                "ours": round(mine / rows * 1e6, 2),
                "SQL": round(theirs / rows * 1e6, 2),
                "times": round(sorted(b / a for a, b in pairs)[len(pairs) // 2], 2),
            }
    return found


def _write(spark: SparkSession, statement: str, out: Path) -> None:
    spark.sql(statement).write.parquet(str(out))


def _view(spark: SparkSession, table: Table) -> None:
    paths = [table.place.path(file.path) for file in table.files()]
    spark.read.parquet(*paths).createOrReplaceTempView(table.name)


def _same(name: str, table: Table, out: Path) -> None:
    """Compare what both found."""
    theirs = pq.read_table(out)
    ours = table.totals().rows
    if name == "latest":  # who shares a time with another is there twice
        assert len(set(theirs["key"].to_pylist())) == ours, (name, theirs.num_rows, ours)
    else:
        assert theirs.num_rows == ours, (name, theirs.num_rows, ours)


def statements_table(found: dict[str, Any]) -> str:
    """What was measured, as a table of Markdown."""
    lines = ["| table | ours, CPU µs a row | Spark SQL | beside ours |", "|---|---|---|---|"]
    for name, one in found.items():
        lines.append(f"| {name} | {one['ours']:.2f} | {one['SQL']:.2f} | {one['times']:.1f} |")
    return "\n".join(lines)
