"""A small lake for pipelines to read, and folders with files of pipelines."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from textwrap import dedent
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake

from zenlake.lake.pipelines.project import open_project
from zenlake.lake.pipelines.runner import PipelineRunner
from zenlake.lake.pipelines.state import PipelineState
from zenlake.lake.pipelines.tables import PipelineTables
from zenlake.lake.table.location import LakeLocation

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

START = datetime(2026, 1, 1, tzinfo=UTC)
HEAD = (
    "from pyspark import pipelines as dp\n"
    "from pyspark.sql import SparkSession, functions as f\n"
    "spark = SparkSession.active()\n"
)
BATTERY = pa.schema(
    [("id", pa.int64()), ("percent", pa.float64()), ("time", pa.timestamp("us", "UTC"))]
)


def add_rows(lake: Path, *rows: tuple[int, float], table: str = "battery", after: int = 0) -> None:
    """Add rows of (id, percent), a second from each other."""
    columns = [
        {"id": id, "percent": percent, "time": START + timedelta(seconds=after + n)}
        for n, (id, percent) in enumerate(rows)
    ]
    write_deltalake(str(lake / table), pa.Table.from_pylist(columns, BATTERY), mode="append")


def write_files(folder: Path, **files: str) -> Path:
    """Write files of a pipeline: `a_py="…"` is `a.py`, with the usual imports above it."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        stem, _, suffix = name.rpartition("_")
        head = HEAD if suffix == "py" else ""
        (folder / f"{stem}.{suffix}").write_text(head + dedent(text).strip() + "\n", "utf-8")
    return folder


def loaded(folder: Path, lake: Path, spark: SparkSession, said: list[str] | None = None) -> Any:
    """The pipeline of a folder, analysed."""
    project = open_project(folder)
    tables = PipelineTables(LakeLocation(str(lake)), spark, database=f"lake_{lake.name}")
    state = PipelineState(lake / ".pipelines" / project.name)
    runner = PipelineRunner(project, tables, state, ([] if said is None else said).append)
    runner.load()
    return runner


def rows_of(lake: Path, table: str, *columns: str) -> list[tuple[Any, ...]]:
    """The rows of a table in order, as deltalake reads them."""
    found = DeltaTable(str(lake / table)).to_pyarrow_table()
    wanted: Sequence[str] = columns or found.column_names
    return sorted(zip(*(found[name].to_pylist() for name in wanted), strict=True), key=repr)
