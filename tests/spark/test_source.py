from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.spark.rows import MIDNIGHT, SECOND, row, write_journal

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.timeout(180)]


@pytest.fixture(scope="module")
def journal(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Ten robots, a row a second, in two partitions and several segments."""
    path = tmp_path_factory.mktemp("journal") / "robots"
    for hour in range(3):
        rows = [
            row(f"robot/{n % 10}/pose", b"%d" % n, MIDNIGHT + n * SECOND, encoding_id=5)
            for n in range(hour * 100, hour * 100 + 100)
        ]
        write_journal(path, rows, partitions=2, segment_bytes=1)
    return path


def read(spark: SparkSession, path: Path, **options: str) -> DataFrame:
    return spark.read.format("zenoh").options(**options).load(str(path))


def numbers(frame: DataFrame) -> list[int]:
    return sorted(int(bytes(found["value"])) for found in frame.select("value").collect())


def test_a_journal_reads_as_a_table(spark: SparkSession, journal: Path) -> None:
    frame = read(spark, journal)
    assert frame.columns == [
        "key",
        "value",
        "encoding",
        "kind",
        "time",
        "hlc",
        "source_id",
        "partition",
        "offset",
    ]
    assert numbers(frame) == list(range(300))
    (found,) = frame.where("key = 'robot/3/pose' and time < '2026-01-01T00:00:10Z'").collect()
    assert found["encoding"] == "application/json"
    assert (found["kind"], found["source_id"], bytes(found["value"])) == ("put", "1a2b3:7", b"3")


def test_conditions_are_decided_by_the_journal(
    spark: SparkSession, journal: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    frame = read(spark, journal, filterPushdown="true").where(
        "time >= '2026-01-01T00:04:00Z' and key in ('robot/1/pose', 'robot/2/pose')"
    )
    assert numbers(frame) == [n for n in range(240, 300) if n % 10 in (1, 2)]
    capsys.readouterr()
    frame.explain()
    plan = capsys.readouterr().out
    assert "Filter" not in plan.replace("RuntimeFilters", ""), plan
    pushed = read(spark, journal, filterPushdown="true")
    starts = pushed.where("key like 'robot/4%' and offset >= 10 and partition < 9")
    everything = [found for found in read(spark, journal).collect() if found["offset"] >= 10]
    assert numbers(starts) == sorted(
        int(bytes(found["value"])) for found in everything if found["key"].startswith("robot/4")
    )
    frame = read(spark, journal)
    assert frame.where("key = 'nobody'").count() == 0
    assert frame.count() == 300


def test_a_session_without_the_switch_filters_by_itself(spark: SparkSession, journal: Path) -> None:
    spark.conf.set("spark.sql.python.filterPushdown.enabled", "false")
    try:
        assert read(spark, journal).where("key = 'robot/1/pose'").count() == 30
    finally:
        spark.conf.set("spark.sql.python.filterPushdown.enabled", "true")


def test_only_asked_for_columns_are_read(spark: SparkSession, journal: Path) -> None:
    some = spark.read.format("zenoh").schema("offset long, key string").load(str(journal))
    assert some.columns == ["offset", "key"]
    assert some.count() == 300
    assert read(spark, journal, columns="key,received,priority").first()["priority"] == 5  # type: ignore[index]


def test_what_is_wrong_is_said_in_words(spark: SparkSession, journal: Path, tmp_path: Path) -> None:
    with pytest.raises(Exception, match="did you mean 'startingOffsets'"):
        read(spark, journal, startingOfset="latest")
    with pytest.raises(Exception, match=r"is not a journal: it has no journal\.json"):
        read(spark, tmp_path).count()
    with pytest.raises(Exception, match="say what to read"):
        spark.read.format("zenoh").load().count()


def progress_of(query: Any) -> dict[str, Any]:
    """The last event that read something."""
    found = [json.loads(event.json) for event in query.recentProgress]
    return next(event for event in reversed(found) if event["numInputRows"])


def test_a_stream_takes_what_is_there_in_bites_and_goes_on_where_it_ended(
    spark: SparkSession, journal: Path, tmp_path: Path
) -> None:
    path = tmp_path / "grows"
    rows = [row(f"k/{n % 7}", b"%d" % n, MIDNIGHT + n) for n in range(100)]
    write_journal(path, rows, partitions=2)

    def run(**options: str) -> Any:
        frame = (
            spark.readStream.format("zenoh")
            .options(startingOffsets="earliest", columns="key,value,offset", **options)
            .load(str(path))
        )
        query = (
            frame.writeStream.format("parquet")
            .option("checkpointLocation", str(tmp_path / "checkpoint"))
            .trigger(availableNow=True)
            .start(str(tmp_path / "out"))
        )
        query.awaitTermination()
        return query

    query = run(maxRecordsPerTrigger="40")
    assert numbers(spark.read.parquet(str(tmp_path / "out"))) == list(range(100))
    sizes = [json.loads(event.json)["numInputRows"] for event in query.recentProgress]
    assert [size for size in sizes if size] == [40, 40, 20]
    (source,) = progress_of(query)["sources"]
    (ends,) = source["endOffset"].values()
    assert source["latestOffset"] == source["endOffset"]
    assert sum(ends.values()) == 100

    more = [row(f"k/{n % 7}", b"%d" % n, MIDNIGHT + n) for n in range(100, 150)]
    write_journal(path, more, partitions=2)
    run(maxBytesPerTrigger="1g", subscribe="k/*")
    assert numbers(spark.read.parquet(str(tmp_path / "out"))) == list(range(150))
