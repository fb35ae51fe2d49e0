"""`format("zenlake")` as programs of PySpark write by it, and tables of a lake by name."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from zenlake.lake import open as open_lake
from zenlake.lake import register_tables

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.timeout(300)]

ROOT = Path(__file__).resolve().parents[2]


def numbers(place: Path) -> list[int]:
    return sorted(DeltaTable(str(place)).to_pyarrow_table()["n"].to_pylist())


def rows(spark: SparkSession, first: int, end: int) -> DataFrame:
    return spark.range(first, end).selectExpr("id AS n", "concat('a/ö b=', id % 2) AS name")


@contextmanager
def database(spark: SparkSession, lake: Path, name: str) -> Iterator[list[str]]:
    try:
        yield register_tables(spark, str(lake), database=name)
    finally:
        spark.sql(f"DROP DATABASE {name} CASCADE")


def test_a_frame_is_appended_merged_and_overwritten(spark: SparkSession, tmp_path: Path) -> None:
    place = tmp_path / "lake" / "things"

    def put(frame: DataFrame, mode: str = "append", **options: str) -> None:
        frame.write.format("zenlake").mode(mode).options(**options).save(str(place))

    put(rows(spark, 0, 6), partitionBy="name")
    put(rows(spark, 4, 9).selectExpr("n", "'new' AS name"), mergeKeys="n")
    assert numbers(place) == list(range(9))
    answer = open_lake(place.parent, spark).sql("SELECT name, count(*) AS c FROM things GROUP BY 1")
    assert {row["name"]: row["c"] for row in answer.collect()} == {
        "new": 5,
        "a/ö b=0": 2,
        "a/ö b=1": 2,
    }
    put(rows(spark, 0, 2), mode="overwrite")
    assert numbers(place) == [0, 1]
    with pytest.raises(Exception, match="column 'nothing' is void, which tables cannot keep"):
        put(spark.sql("SELECT 1L AS n, 'x' AS name, null AS nothing"))
    files = list(place.rglob("*.parquet"))
    # One task: another may have written its files when Spark ends the job.
    one = rows(spark, 0, 100).coalesce(1)
    bad = one.selectExpr("n", "CAST(1 / (99 - n) AS string) AS name")
    with pytest.raises(Exception, match="DIVIDE_BY_ZERO"):
        put(bad)
    assert numbers(place) == [0, 1]
    assert list(place.rglob("*.parquet")) == files, "an abort leaves no files"


def test_tables_of_a_lake_have_names(spark: SparkSession, tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    rows(spark, 0, 3).write.format("zenlake").mode("append").save(str(lake / "things"))
    write_deltalake(str(lake / "theirs"), pa.table({"n": [1, 2]}))
    with database(spark, lake, "named") as names:
        assert names == ["theirs", "things"]
        assert register_tables(spark, str(lake), database="named") == names
        assert spark.table("named.things").where("n > 0").count() == 2
        rows(spark, 3, 5).write.format("zenlake").mode("append").saveAsTable("named.things")
        rows(spark, 5, 6).write.insertInto("named.things")
        spark.sql("INSERT INTO named.things SELECT n + 6 AS n, name FROM named.things WHERE n = 0")
        rows(spark, 7, 8).writeTo("named.things").append()
        assert numbers(lake / "things") == list(range(8))
        assert spark.read.option("version", "1").table("named.things").count() == 3
        at = {"checkpointLocation": str(tmp_path / "checkpoint")}
        stream = spark.readStream.table("named.things").selectExpr("n")
        stream.writeStream.options(**at).trigger(availableNow=True).toTable(
            "named.theirs"
        ).awaitTermination()
        assert numbers(lake / "theirs") == [0, 1, 1, 2, 2, 3, 4, 5, 6, 7]
        spark.sql("INSERT OVERWRITE named.theirs VALUES (7)")
        assert numbers(lake / "theirs") == [7]
        grown = rows(spark, 8, 9).selectExpr("*", "0.5D AS more").write.format("zenlake")
        grown.mode("append").option("mergeSchema", "true").save(str(lake / "things"))
        rows(spark, 0, 1).write.format("zenlake").mode("append").save(str(lake / "newer"))
        assert "newer" in register_tables(spark, str(lake), database="named")
        assert spark.table("named.things").columns == ["n", "name", "more"]
        with pytest.raises(Exception, match="Spark forgets the options of a table"):
            spark.sql(f"CREATE TABLE named.x USING zenlake LOCATION '{lake / 'things'}'")
    assert numbers(lake / "things") == list(range(9)), "names go, tables stay"


def committed(place: Path) -> int:
    """The newest version of a table, by the names in its log; -1 if it has none."""
    return max((int(one.stem) for one in (place / "_delta_log").glob("*.json")), default=-1)


def in_log(place: Path) -> set[str]:
    if committed(place) < 0:
        return set()
    return set(DeltaTable(str(place)).get_add_actions(flatten=True)["path"].to_pylist())


def on_disk(place: Path) -> set[str]:
    return {one.name for one in place.glob("*.parquet")}


def has_more_files(place: Path, known: set[str]) -> bool:
    """Between what tasks write, and its commit."""
    return bool(on_disk(place) - known)


def is_beyond(place: Path, version: int) -> bool:
    """Between a commit, and Spark's own note of the batch."""
    return committed(place) > version


def noted(checkpoint: Path) -> int:
    """The newest batch whose end Spark has noted; -1 if there is none."""
    there = (checkpoint / "commits").glob("[0-9]*")
    return max((int(one.name) for one in there), default=-1)


def killed_at(moment: Callable[[], Any], *where: Path) -> bool:
    """Run the writer, and kill its Java as soon as a moment has come; False if it ended before."""
    command = [sys.executable, "-m", "tests.spark.endless_writer", *map(str, where)]
    with subprocess.Popen(
        command, cwd=ROOT, stdout=subprocess.PIPE, text=True, start_new_session=True
    ) as process:
        assert process.stdout is not None
        java = int(process.stdout.readline())
        while process.poll() is None:
            if moment():
                os.kill(java, signal.SIGKILL)
                os.killpg(process.pid, signal.SIGKILL)
                return True
            time.sleep(0.001)
        assert process.returncode == 0
    return False


def copied_through_deaths(tmp_path: Path, rounds: int) -> None:
    source, target = tmp_path / "lake" / "source", tmp_path / "lake" / "target"
    checkpoint = tmp_path / "checkpoint"
    batches = 3 * rounds
    for n in range(batches):
        write_deltalake(str(source), pa.table({"n": range(n * 9, n * 9 + 9)}), mode="append")
    where = (source, target, checkpoint)
    for _ in range(rounds):
        known = on_disk(target)
        assert killed_at(partial(has_more_files, target, known), *where)
        uncommitted = on_disk(target) - known - in_log(target)
        version = max(committed(target), 0)
        assert killed_at(partial(is_beyond, target, version), *where)
        batch = DeltaTable(str(target)).history(1)[0]["zenlake"]["batch"]
        assert uncommitted or noted(checkpoint) < batch, "no death came between two steps"
    assert not killed_at(lambda: False, *where)
    assert numbers(target) == list(range(batches * 9))
    assert noted(checkpoint) == batches - 1


@pytest.mark.timeout(600)
def test_rows_are_there_once_though_the_driver_dies_before_and_after_commits(
    tmp_path: Path,
) -> None:
    copied_through_deaths(tmp_path, 1)


@pytest.mark.timeout(1200)
@pytest.mark.nightly(day="spark/test_lake_sink.py")
def test_rows_are_there_once_through_many_deaths(tmp_path: Path) -> None:
    copied_through_deaths(tmp_path, 6)
