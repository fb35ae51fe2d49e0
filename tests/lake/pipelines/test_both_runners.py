"""One folder of files, run by zenlake and by Spark's own `spark-pipelines`, over the same lake."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import pyarrow.parquet as pq
import pytest

from tests.lake.pipelines.lakes import add_rows, loaded, rows_of
from zenlake.spark.java import find_java, write_shim

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PYTHON = """
import os

from pyspark import pipelines as dp
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

spark = SparkSession.active()
LAKE = os.environ["LAKE"]


@dp.table
def low() -> DataFrame:
    rows = spark.readStream.format("zenlake").load(f"{LAKE}/battery")
    return rows.select("id", "percent").where("percent < 20")


@dp.materialized_view
def lowest() -> DataFrame:
    return spark.read.table("low").groupBy("id").agg(f.min("percent").alias("percent"))


dp.create_sink("alarms", "zenlake", {"path": f"{LAKE}/alarms"})


@dp.append_flow(target="alarms")
def raise_alarms() -> DataFrame:
    rows = spark.readStream.format("zenlake").load(f"{LAKE}/battery")
    return rows.select("id", "percent").where("percent < 10")
"""
SQL = "CREATE MATERIALIZED VIEW counted AS SELECT id, count(*) AS n FROM low GROUP BY id\n"
SPEC = """\
name: both
storage: {storage}
libraries:
  - glob:
      include: transformations/**
"""
LOW = [(1, 12.0), (1, 8.0), (3, 5.0)]
LOWEST = [(1, 8.0), (3, 5.0)]
COUNTED = [(1, 2), (3, 1)]
ALARMS = [(1, 8.0), (3, 5.0)]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "both"
    (folder / "transformations").mkdir(parents=True)
    storage = (tmp_path / "storage").as_uri()
    (folder / "spark-pipeline.yml").write_text(SPEC.format(storage=storage), "utf-8")
    (folder / "transformations" / "low.py").write_text(PYTHON, "utf-8")
    (folder / "transformations" / "counted.sql").write_text(SQL, "utf-8")
    return folder


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    lake = tmp_path / f"both_{abs(hash(tmp_path.name)) % 10**9}"
    add_rows(lake, (1, 12.0), (2, 80.0), (3, 5.0), (1, 8.0))
    return lake


def test_zenlake_runs_the_folder_into_tables_of_the_lake(
    spark: SparkSession, folder: Path, lake: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LAKE", str(lake))
    assert loaded(folder, lake, spark).run_once().failed == {}
    assert sorted(rows_of(lake, "low")) == sorted(LOW)
    assert sorted(rows_of(lake, "lowest")) == LOWEST
    assert sorted(rows_of(lake, "counted")) == COUNTED
    assert sorted(rows_of(lake, "alarms")) == ALARMS


@pytest.mark.nightly(day="lake/pipelines/test_both_runners.py")
@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.timeout(600)
def test_spark_runs_the_folder_unchanged_with_its_sink_in_the_lake(
    folder: Path, lake: Path, tmp_path: Path
) -> None:
    warehouse = tmp_path / "warehouse"
    run_spark_pipelines(folder, lake, tmp_path, warehouse)
    # Tables without a format are Parquet in Spark's warehouse; the sink is a table of the lake.
    assert sorted(parquet(warehouse / "low")) == sorted(LOW)
    assert sorted(parquet(warehouse / "lowest")) == LOWEST
    assert sorted(parquet(warehouse / "counted")) == COUNTED
    assert sorted(rows_of(lake, "alarms")) == ALARMS


def run_spark_pipelines(folder: Path, lake: Path, work: Path, warehouse: Path) -> None:
    conf = work / "conf"
    conf.mkdir(exist_ok=True)
    settings = {
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.warehouse.dir": str(warehouse),
    }
    lines = (f"{name} {value}\n" for name, value in settings.items())
    (conf / "spark-defaults.conf").write_text("".join(lines), "utf-8")
    own = Path(sys.executable).parent
    done = subprocess.run(
        ["spark-pipelines", "run", "--spec", str(folder / "spark-pipeline.yml")],
        cwd=work,
        env=os.environ
        | {
            "LAKE": str(lake),
            "JAVA_HOME": str(write_shim(find_java(), work / "java")),
            "PATH": f"{own}{os.pathsep}{os.environ['PATH']}",
            "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
            "PYSPARK_PYTHON": sys.executable,
            "PYSPARK_DRIVER_PYTHON": sys.executable,
            "SPARK_CONF_DIR": str(conf),
            "SPARK_LOCAL_IP": "127.0.0.1",
        },
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=280,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-4000:]
    assert "Run is COMPLETED" in done.stdout


def parquet(folder: Path) -> list[tuple[Any, ...]]:
    # What a task left that was tried again lies there too; a stream notes which files count.
    notes = [one for one in folder.glob("_spark_metadata/*") if one.name.isdecimal()]
    lines = [line for one in notes for line in one.read_text("utf-8").splitlines()[1:]]
    noted = {Path(urlsplit(json.loads(line)["path"]).path) for line in lines}
    files = sorted(noted) if notes else sorted(folder.glob("*.parquet"))
    return [tuple(row.values()) for file in files for row in pq.read_table(file).to_pylist()]
