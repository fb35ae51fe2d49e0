"""`format("zenlake")` as programs of PySpark use it."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from tests.lake.journals import Here, rows_of, write
from tests.lake.rowsof import Row
from zenlake.lake import Pipeline, read_config

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.timeout(240)]

START = datetime(2026, 1, 1, tzinfo=UTC)
JSON = 5


def append(place: Path, first: int, end: int) -> None:
    found = pa.table(
        {
            "n": list(range(first, end)),
            "x": [float("nan") if n % 7 == 0 else n / 4 for n in range(first, end)],
            "name": [None if n % 9 == 0 else f"robot/{n % 4}" for n in range(first, end)],
            "at": pa.array(
                [START + timedelta(seconds=n) for n in range(first, end)],
                pa.timestamp("us", "UTC"),
            ),
            "tags": [[str(n)] for n in range(first, end)],
            "day": [f"d{n % 2}" for n in range(first, end)],
        }
    )
    write_deltalake(str(place), found, mode="append", partition_by=["day"])


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three commits of twenty rows, a file for each of two days in each."""
    place = tmp_path_factory.mktemp("lake") / "things"
    for first in (0, 20, 40):
        append(place, first, first + 20)
    return place


def read(spark: SparkSession, place: Path, **options: str) -> DataFrame:
    return spark.read.format("zenlake").options(**options).load(str(place))


def numbers(frame: DataFrame) -> list[int]:
    return sorted(found["n"] for found in frame.select("n").collect())


def test_a_table_reads_as_delta_rs_reads_it(spark: SparkSession, table: Path) -> None:
    frame = read(spark, table)
    found = sorted((row.asDict() for row in frame.collect()), key=lambda row: row["n"])
    theirs = DeltaTable(str(table)).to_pyarrow_table().sort_by("n").to_pylist()
    for row in theirs:
        row["at"] = row["at"].astimezone().replace(tzinfo=None)
    assert str(found) == str(theirs)
    assert read(spark, table.parent, table="things").count() == 60


def test_tables_of_a_lake_read_by_their_folder(spark: SparkSession, tmp_path: Path) -> None:
    lake, journal = tmp_path / "lake", tmp_path / "journal"
    write(
        journal,
        [
            Row(f"robot/{n % 3}/pose", json.dumps({"x": n, "to": [n]}).encode(), n, encoding=JSON)
            for n in range(30)
        ],
    )
    config = read_config('{tables: {pose: {format: "robot/${id}/pose"}}}')
    pipeline = Pipeline(str(lake), str(journal), Here(), config)
    while pipeline.step().behind:
        pass
    for name in ("pose", "samples", "latest"):
        found = read(spark, lake / name)
        assert found.count() == len(rows_of(lake, name))
        assert found.columns == [field.name for field in DeltaTable(lake / name).schema().fields]
    found = read(spark, lake / "pose").where("id = '1' and x > 20").selectExpr("x", "size(to) s")
    assert sorted(map(tuple, found.collect())) == [(n, 1) for n in range(21, 30) if n % 3 == 1]


@pytest.mark.parametrize(
    "where",
    [
        "n = 25",
        "n > 10 and n <= 45 and day = 'd1'",
        "n in (1, 59, 100)",
        "name is null",
        "name is not null and name like 'robot/2%'",
        "x >= 14.0",
        "not (x < 14.0)",
        "x != 3.0 or name is null",
        "at >= timestamp'2026-01-01 00:00:50Z'",
        "name <=> null and n < 30",
        "x = double('NaN')",
        "tags[0] = '3'",
    ],
)
def test_conditions_mean_the_same_with_pushdown_and_without(
    spark: SparkSession, table: Path, where: str
) -> None:
    pushed = numbers(read(spark, table, filterPushdown="true").where(where))
    spark.conf.set("spark.sql.python.filterPushdown.enabled", "false")
    try:
        assert numbers(read(spark, table).where(where)) == pushed
    finally:
        spark.conf.set("spark.sql.python.filterPushdown.enabled", "true")
    assert pushed


def test_a_condition_of_one_question_leaves_no_rows_out_of_the_next(
    spark: SparkSession, table: Path
) -> None:
    frame = read(spark, table)
    assert frame.where("n > 57").count() == 2
    assert frame.count() == 60
    assert frame.where("n < 3").count() == 3


def test_files_that_conditions_rule_out_are_not_opened(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place = tmp_path / "things"
    append(place, 0, 20)
    append(place, 20, 40)
    for path in DeltaTable(str(place)).get_add_actions(flatten=True)["path"].to_pylist():
        first = path.startswith("day=d0")
        if first or pa.parquet.read_table(place / path)["n"][0].as_py() < 20:
            (place / path).unlink()
    frame = read(spark, place, filterPushdown="true").where("n >= 20 and day = 'd1'")
    assert numbers(frame) == list(range(21, 40, 2))
    capsys.readouterr()
    frame.explain()
    assert "Filter" not in capsys.readouterr().out.replace("RuntimeFilters", "")
    with pytest.raises(Exception, match="no such file is kept"):
        read(spark, place).where("n >= 0").count()


def test_columns_versions_and_times_are_chosen_by_options(spark: SparkSession, table: Path) -> None:
    assert read(spark, table, columns="n,day").columns == ["n", "day"]
    assert (
        spark.read.format("zenlake").schema("day string").load(str(table)).distinct().count() == 2
    )
    assert read(spark, table, version="0").count() == 20
    instants = [one["timestamp"] for one in DeltaTable(str(table)).history()]
    assert read(spark, table, timestamp=str(max(instants))).count() == 60
    with pytest.raises(Exception, match="did you mean 'version'"):
        read(spark, table, verson="1")


def step(spark: SparkSession, place: Path, out: Path, **options: str) -> Any:
    """Run a stream from its checkpoint until there is nothing new."""
    query = (
        spark.readStream.format("zenlake")
        .options(**options)
        .load(str(place))
        .writeStream.format("parquet")
        .option("checkpointLocation", str(out / "checkpoint"))
        .trigger(availableNow=True)
        .start(str(out / "rows"))
    )
    query.awaitTermination()
    return query


def rows_in(query: Any) -> list[int]:
    """The rows of each micro-batch that had some."""
    found = [json.loads(event.json) for event in query.recentProgress]
    return [event["numInputRows"] for event in found if event["numInputRows"]]


def test_a_stream_has_each_row_once_over_commits_compaction_and_restarts(
    spark: SparkSession, tmp_path: Path
) -> None:
    place = tmp_path / "lake" / "things"
    append(place, 0, 20)
    append(place, 20, 40)
    first = step(spark, place, tmp_path, maxRowsPerTrigger="20")
    assert rows_in(first) == [20, 20]
    source = json.loads(first.recentProgress[-1].json)["sources"][0]
    assert source["endOffset"]["version"] == source["latestOffset"]["version"] == 2
    DeltaTable(str(place)).optimize.compact()
    append(place, 40, 60)
    assert rows_in(step(spark, place, tmp_path)) == [20]
    assert rows_in(step(spark, place, tmp_path)) == []
    assert numbers(spark.read.parquet(str(tmp_path / "rows"))) == list(range(60))


def test_a_stream_begins_with_a_version_and_reads_all_that_came_since(
    spark: SparkSession, tmp_path: Path
) -> None:
    place = tmp_path / "lake" / "things"
    for first in (0, 20, 40):
        append(place, first, first + 20)
    DeltaTable(str(place)).optimize.compact()
    assert rows_in(step(spark, place, tmp_path, startingVersion="1")) == [40]
    assert numbers(spark.read.parquet(str(tmp_path / "rows"))) == list(range(20, 60))
