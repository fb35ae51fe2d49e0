"""Compaction and vacuum of the lake beside those of `deltalake`, on copies of one table.

The table has many small files, as a lake has that commits often. What comes out is looked at, too:
whether rows are in the order of keys, and what readers may pass over.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from deltalake import DeltaTable, WriterProperties

from bench.lake.amplification import InProcess
from bench.lake.cpu import CpuTime
from bench.lake.memory import PeakMemory
from zenlake.lake import LakeConfig, Pipeline
from zenlake.lake.ingest.spark_tasks import SparkTasks
from zenlake.lake.maintain.upkeep import compact, vacuum
from zenlake.lake.table.delta import Table
from zenlake.lake.table.location import LakeLocation

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

GROUP_ROWS = 16 * 1024
"""Of a row group of the lake."""


OURS = WriterProperties(
    compression="ZSTD", compression_level=1, max_row_group_size=GROUP_ROWS, write_batch_size=1024
)


def optimize(
    spark: SparkSession,
    folder: Path,
    rows: int,
    files: int,
    config: LakeConfig,
    record: Callable[[Path, int], None],
) -> dict[str, Any]:
    """What each of them takes for one table, and what it leaves."""
    record(folder / "journal", rows)
    small = replace(config, tables=(), families=False, batch_rows=rows, task_rows=1)
    small = replace(small, most_task_rows=-(-rows // files))
    pipeline = Pipeline(str(folder / "lake"), str(folder / "journal"), InProcess(), small)
    while pipeline.step().behind:
        pass
    shutil.rmtree(folder / "journal")
    tasks = SparkTasks(spark)
    tasks.warm()
    most = config.compact_bytes

    def by_tasks(lake: Path) -> None:
        compact(_opened(lake), tasks, config, full=True)

    def by_compact(lake: Path) -> None:
        DeltaTable(str(lake / "samples")).optimize.compact(target_size=most)

    def by_z_order(lake: Path) -> None:
        DeltaTable(str(lake / "samples")).optimize.z_order(
            ["key", "hlc"], target_size=most, writer_properties=OURS
        )

    def our_vacuum(lake: Path) -> None:
        vacuum(_opened(lake), 0.0)

    def their_vacuum(lake: Path) -> None:
        table = DeltaTable(str(lake / "samples"))
        table.vacuum(0, dry_run=False, enforce_retention_duration=False)

    found: dict[str, Any] = {}
    for name, merge, sweep in (
        ("ours", by_tasks, our_vacuum),
        ("`optimize.compact`", by_compact, their_vacuum),
        ("`optimize.z_order`, written as ours", by_z_order, their_vacuum),
    ):
        lake = folder / "copy"
        shutil.copytree(folder / "lake", lake)
        cpu = CpuTime()
        with PeakMemory() as memory:
            wall, spent = cpu.took(partial(merge, lake))
        before = sum(1 for _ in (lake / "samples").rglob("*.parquet"))
        left = _left(lake)
        swept, sweeping = cpu.took(partial(sweep, lake))
        after = sum(1 for _ in (lake / "samples").rglob("*.parquet"))
        assert left.pop("rows") == rows
        found[name] = {
            "s": round(wall, 1),
            "CPU s": round(spent, 1),
            "peak MB, all processes": memory.megabytes()["together"],
            "peak MB, driver": memory.megabytes()["driver"],
            **left,
            "vacuum s": round(swept, 2),
            "vacuum CPU s": round(sweeping, 2),
            "deleted": before - after,
        }
        shutil.rmtree(lake)
    return found


def _opened(lake: Path) -> Table:
    table = Table.open(LakeLocation(str(lake)), "samples")
    assert table is not None
    return table


def _left(lake: Path) -> dict[str, Any]:
    """Look at the files, and count the row groups that may have one key."""
    table = DeltaTable(str(lake / "samples"))
    actions = pa.table(table.get_add_actions(flatten=True))
    groups = meeting = 0
    for path in actions["path"].to_pylist():
        footer = pq.ParquetFile(lake / "samples" / path).metadata
        place = footer.schema.names.index("key")
        for number in range(footer.num_row_groups):
            bounds = footer.row_group(number).column(place).statistics
            groups += 1
            meeting += bounds is None or bounds.min <= "robot/7/pose" <= bounds.max
    return {
        "rows": pc.sum(actions["num_records"]).as_py(),
        "files": actions.num_rows,
        "MB": round(pc.sum(actions["size_bytes"]).as_py() / 1e6),
        "row groups that may have a key": f"{meeting} of {groups}",
    }


def optimize_table(found: dict[str, Any]) -> str:
    """What was measured, as a table of Markdown."""
    names = list(next(iter(found.values())))
    lines = [f"| | {' | '.join(found)} |", "|---" * (len(found) + 1) + "|"]
    for name in names:
        lines.append(f"| {name} | {' | '.join(str(one[name]) for one in found.values())} |")
    return "\n".join(lines)
