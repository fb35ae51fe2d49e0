"""Flows of changes and published tables in the files of a pipeline, in Python and in SQL."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.api.sessions import listening
from tests.lake.pipelines.lakes import START, add_rows, loaded, rows_of, write_files
from tests.waiting import until
from zenlake.lake.pipelines.definitions import PipelineError
from zenlake.lake.pipelines.manager import Pipelines
from zenlake.lake.table.location import LakeLocation

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

HISTORY = """
    @dp.temporary_view
    def states():
        level = f.when(f.col("percent") < 20, "low").otherwise("fine")
        return spark.readStream.table("battery").withColumn("level", level)

    dp.create_streaming_table("history", comment="how full robots were, and when")
    dp.create_auto_cdc_flow(
        target="history",
        source="states",
        keys=["id"],
        sequence_by="time",
        apply_as_deletes="percent = 0",
        except_column_list=["time"],
        stored_as_scd_type=2,
        track_history_column_list=["level"],
    )
"""
NEWEST = """
    CREATE STREAMING TABLE newest TBLPROPERTIES ('zenlake.publish' = 'fleet/${id}/battery');
    CREATE FLOW newest AS AUTO CDC INTO newest FROM STREAM battery
    KEYS (id) APPLY AS DELETE WHEN percent = 0 SEQUENCE BY struct(time, percent)
    COLUMNS * EXCEPT (time) STORED AS SCD TYPE 1;
    CREATE STREAMING TABLE at_once FLOW AUTO CDC FROM STREAM battery
    KEYS (id) SEQUENCE BY time;
"""


def at(seconds: int) -> Any:
    return START + timedelta(seconds=seconds)


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    lake = tmp_path / f"changes_{abs(hash(tmp_path.name)) % 10**9}"
    add_rows(lake, (1, 90.0), (1, 80.0), (2, 10.0), (1, 15.0), after=10)
    return lake


def test_changes_are_applied_as_files_of_python_and_sql_say(
    lake: Path, tmp_path: Path, spark: SparkSession
) -> None:
    folder = write_files(tmp_path / "mine", a_py=HISTORY, b_sql=NEWEST)
    report = loaded(folder, lake, spark).run_once()
    assert report.failed == {}
    assert report.rows == {"history": 4, "newest": 4, "at_once": 4}
    assert rows_of(lake, "history") == [
        (1, 15.0, "low", at(13), None),
        (1, 80.0, "fine", at(10), at(13)),
        (2, 10.0, "low", at(12), None),
    ]
    assert rows_of(lake, "newest") == [(1, 15.0), (2, 10.0)]

    add_rows(lake, (1, 12.0), (2, 0.0), after=20)
    add_rows(lake, (2, 40.0), (3, 50.0), after=5)  # late, but for a new robot
    report = loaded(folder, lake, spark).run_once()
    assert report.failed == {}
    assert rows_of(lake, "history") == [
        (1, 12.0, "low", at(13), None),
        (1, 80.0, "fine", at(10), at(13)),
        (2, 10.0, "low", at(12), at(21)),
        (2, 40.0, "fine", at(5), at(12)),
        (3, 50.0, "fine", at(6), None),
    ]
    assert rows_of(lake, "newest") == [(1, 12.0), (3, 50.0)]
    assert rows_of(lake, "at_once") == [(1, 12.0, at(20)), (2, 0.0, at(21)), (3, 50.0, at(6))]

    # Another sequence, and so another type: all events have to be looked at again.
    write_files(folder, b_sql=NEWEST.replace("KEYS (id) APPLY", "KEYS (id, percent) APPLY"))
    runner = loaded(folder, lake, spark)
    add_rows(lake, (9, 1.0), after=30)
    assert "--full-refresh newest" in runner.run_once().failed["newest"]
    assert loaded(folder, lake, spark).run_once(["newest"]).failed == {}
    assert (9, 1.0) in rows_of(lake, "newest")
    assert (1, 90.0) in rows_of(lake, "newest")


def test_a_running_lake_publishes_what_a_flow_of_changes_changed(
    lake: Path, tmp_path: Path, spark: SparkSession
) -> None:
    folder = write_files(tmp_path / "mine", b_sql=NEWEST)
    heard: list[tuple[str, dict[str, Any]]] = []
    said: list[str] = []
    with listening(mode='"router"') as bus:
        bus.declare_subscriber(
            "fleet/**",
            lambda sample: heard.append(
                (str(sample.key_expr), json.loads(sample.payload.to_bytes()))
            ),
        )
        running = Pipelines(
            LakeLocation(str(lake)), spark, folder, said.append, f"lake_{lake.name}", bus
        )
        try:
            until(lambda: len(heard) == 2, seconds=120.0)
            assert sorted(heard, key=repr) == [
                ("fleet/1/battery", {"id": 1, "percent": 15.0}),
                ("fleet/2/battery", {"id": 2, "percent": 10.0}),
            ]
            add_rows(lake, (2, 30.0), (1, 99.0), after=5)  # late
            add_rows(lake, (2, 11.0), after=30)
            until(lambda: len(heard) == 3, seconds=120.0)
            assert heard[2] == ("fleet/2/battery", {"id": 2, "percent": 11.0})
            (facts,) = (one for one in running.facts() if one["name"] == "newest")
            assert facts["published"]["published"] == 3
            assert running.stopped() == {}
        finally:
            running.close()


def test_what_is_wrong_with_a_flow_or_a_property_is_said_with_file_and_line(
    lake: Path, tmp_path: Path, spark: SparkSession
) -> None:
    folder = write_files(tmp_path / "mine", a_py=HISTORY.replace('keys=["id"]', 'keys=["idd"]'))
    with pytest.raises(PipelineError, match=r"a\.py:\d+: keys: 'states' has no column 'idd'"):
        loaded(folder, lake, spark)
    write_files(folder, a_py=HISTORY, b_sql=NEWEST.replace("${id}", "${name}"))
    with pytest.raises(PipelineError, match=r"b\.sql:1: zenlake.publish: 'newest' has no column"):
        loaded(folder, lake, spark)
    write_files(folder, b_sql=NEWEST.replace("FROM STREAM battery", "FROM battery"))
    with pytest.raises(PipelineError, match=r"b\.sql.*must be a streaming query"):
        loaded(folder, lake, spark)
