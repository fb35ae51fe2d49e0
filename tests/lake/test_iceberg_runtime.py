"""Iceberg's own runtime for Spark reads every table that the lake publishes for Iceberg.

It comes from Maven, with the newest Spark that it supports from PyPI, into an environment under
`build`; the test is skipped where there is no Java or no Maven.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from tests.cli.programs import ROOT
from tests.lake.journals import Here, write
from tests.lake.older_spark import Asked, asking, plain
from tests.lake.rowsof import START, Row
from zenlake.lake import Pipeline, Retention, open, read_config
from zenlake.lake.service.loop import run

pytestmark = pytest.mark.nightly(day="lake/table/test_iceberg.py")

JSON, CBOR = 5, 8
SPARK = "4.1.4"
RUNTIME = "org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.12.0"
CONFIG = read_config(
    """{tables: {pose: {format: "robot/${id}/pose"}, state: {format: "robot/${id}/state"}},
        rollups: true, compact: {files: 3}, iceberg: true}"""
)
NAMES = ("samples", "latest", "gaps", "quarantine", "rollups", "pose", "state")


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    return tmp_path / "lake"


@pytest.fixture
def iceberg(machine: dict[str, str], tmp_path: Path, lake: Path) -> Iterator[Asked]:
    """Asks the runtime a statement of SQL, and gives the rows; `lake.pose._iceberg` is a table."""
    folder = ROOT / "build" / "iceberg-runtime"
    settings = {
        "spark.sql.catalog.lake": "org.apache.iceberg.spark.SparkCatalog",
        "spark.sql.catalog.lake.type": "hadoop",
        "spark.sql.catalog.lake.warehouse": f"file://{lake}",
        # Each statement looks at the newest metadata.
        "spark.sql.catalog.lake.cache-enabled": "false",
    }
    with asking(machine, folder, tmp_path / "log", SPARK, RUNTIME, settings) as asked:
        yield asked


def filled(tmp_path: Path, first: int, end: int, more: float = 0) -> None:
    """A step for each number: objects, a refusal, a deletion, values that are not finite."""
    for n in range(first, end):
        pose = {"n": n, "x": n + more, "tags": ["a", str(n)], "at": {"z": n / 4}, "ok": n % 2 == 0}
        nan = b"\xa1\x61v\xf9\x7e\x00" if n % 2 else b"\xa1\x61v\xf9\x7c\x00"  # {"v": NaN or inf}
        rows = [
            Row(f"robot/{n % 3}/pose", json.dumps(pose).encode(), n, encoding=JSON),
            Row("robot/1/pose", b"{", n, encoding=JSON),
            Row("robot/1/state", nan, n, encoding=CBOR),
            Row(f"other/{n}", b"\x00\xff", n, kind=n % 2),
        ]
        write(tmp_path / "journal", rows)
        pipeline = Pipeline(str(tmp_path / "lake"), str(tmp_path / "journal"), Here(), CONFIG)
        run(pipeline, Here(), stop=threading.Event(), once=True)


def the_same(lake: Path, iceberg: Asked) -> dict[str, int]:
    """Compare all rows of every table with those of Delta; gives how many rows each has."""
    counts = {}
    for name in NAMES:
        delta = DeltaTable(str(lake / name)).to_pyarrow_table()
        columns = ", ".join(f"`{column}`" for column in delta.column_names)
        found = iceberg(f"SELECT {columns} FROM lake.`{name}`.`_iceberg`")
        wanted = [plain(list(row.values())) for row in delta.to_pylist()]
        assert ordered(found) == ordered(wanted), name
        counts[name] = len(found)
    return counts


def ordered(rows: list[Any]) -> list[str]:
    return sorted(map(json.dumps, rows))


def test_the_runtime_finds_the_rows_of_delta_in_every_table_whatever_was_done_to_its_files(
    tmp_path: Path, lake: Path, iceberg: Asked
) -> None:
    filled(tmp_path, 0, 4)
    assert the_same(lake, iceberg) | {"rollups": 0, "gaps": 0} == {
        "samples": 16, "latest": 6, "gaps": 0, "quarantine": 4, "rollups": 0, "pose": 4, "state": 4,
    }  # fmt: skip
    mine = open(lake, config=CONFIG)
    assert mine.compact(tasks=Here())["samples"] > 0
    assert the_same(lake, iceberg)["samples"] == 16
    filled(tmp_path, 4, 6, 0.5)  # a column widens
    assert the_same(lake, iceberg)["pose"] == 6
    table = "lake.pose.`_iceberg`"
    assert iceberg(f"SELECT n FROM {table} WHERE x > 4 ORDER BY n") == [[4], [5]]
    assert iceberg(f"SELECT count(*) FROM {table} WHERE key = 'robot/1/pose'") == [[2]]
    assert iceberg("SELECT count(*) FROM lake.state.`_iceberg` WHERE v > 1e300") == [[6]]
    rules = (Retention("robot/1/*", 2.0),)
    assert open(lake).retain(rules, tasks=Here(), now=START + 4.0)["samples"] > 0
    left = the_same(lake, iceberg)
    filled(tmp_path, 6, 7)
    assert the_same(lake, iceberg)["samples"] == left["samples"] + 4
