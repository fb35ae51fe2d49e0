"""The fixture of `zenlake.testing.pipeline`: what goes in, steps, and what a failure says."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from pathlib import Path
from textwrap import dedent
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from tests.lake.journals import write
from tests.lake.rowsof import START, Row
from zenlake.errors import LocalError
from zenlake.journal import Journal
from zenlake.journal.transfer.export import to_mcap
from zenlake.lake.pipelines.template import write_template
from zenlake.testing.pipeline import PipelineHarness

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytest_plugins = ["zenlake.testing.pipeline"]

TUTORIAL = Path(__file__).resolve().parents[2] / "docs" / "tutorial" / "pipeline.md"


@pytest.fixture
def pipeline_folder(tmp_path: Path) -> Path:
    folder = tmp_path / "chargers"
    folder.mkdir()
    (folder / "chargers.py").write_text(
        dedent("""
            from pyspark import pipelines as dp

            @dp.table
            def low():
                return spark.readStream.table("battery").where("percent < 20")
        """),
        "utf-8",
    )
    return folder


def test_rows_of_any_kind_are_fed_stepped_and_compared(
    spark: SparkSession, pipeline: PipelineHarness
) -> None:
    pipeline.feed("battery", [{"id": "7", "percent": 12.0}, {"id": "8", "percent": 80.0}])
    pipeline.feed("battery", pa.table({"id": ["9"], "percent": pa.array([5], pa.int32())}))
    pipeline.feed("battery", spark.sql("SELECT '10' AS id, CAST(6 AS double) AS percent"))
    pipeline.step()
    low = [{"id": "7", "percent": 12.0}, {"id": "9", "percent": 5.0}, {"id": "10", "percent": 6.0}]
    pipeline.table("low").assert_rows(low, by="id")

    pipeline.feed("battery", [{"id": "7", "percent": 1}])
    pipeline.step()
    pipeline.table("low").assert_rows([*low, {"id": "7", "percent": 1.0}])

    with pytest.raises(AssertionError, match=r"changed     id='9'  percent: expected 50\."):
        pipeline.table("low").assert_rows([{"id": "9", "percent": 50.0}], by="id")
    with pytest.raises(LocalError, match="no table 'hihg'; there are battery, low"):
        pipeline.table("hihg").rows()


def test_rows_whose_columns_nobody_tells_are_refused(
    spark: SparkSession, pipeline: PipelineHarness
) -> None:
    with pytest.raises(LocalError, match=r"pipeline.record"):
        pipeline.feed("samples", [{"key": "a"}])
    with pytest.raises(LocalError, match="schema='percent string'"):
        pipeline.feed("battery", [{"id": "7", "percent": None}])
    with pytest.raises(LocalError, match="without rows nothing tells the columns"):
        pipeline.feed("battery", [])
    with pytest.raises(LocalError, match="not of one type"):
        pipeline.feed("battery", [{"id": "7"}, {"id": 8}])
    pipeline.feed("battery", [], "id string, percent double")
    pipeline.step()
    pipeline.table("low").assert_rows([])


def test_a_recorded_window_is_replayed_into_the_lake(
    spark: SparkSession, pipeline: PipelineHarness, tmp_path: Path
) -> None:
    write(tmp_path / "flight", [Row(f"robot/{n}/name", b"x", at=n) for n in range(6)])

    def at(second: int) -> datetime:
        return datetime.fromtimestamp(START + second, UTC)

    pipeline.replay(tmp_path / "flight", since=at(2), until=at(4))
    to_mcap(Journal.open(tmp_path / "flight"), tmp_path / "all.mcap", keys="robot/5/**")
    pipeline.replay(tmp_path / "all.mcap")
    pipeline.table("samples").assert_rows(
        [{"key": f"robot/{n}/name", "time": at(n)} for n in (2, 3, 5)], columns=["key", "time"]
    )
    with pytest.raises(LocalError, match="of which all is taken"):
        pipeline.replay(tmp_path / "all.mcap", since=at(2))


def test_a_simulated_fleet_fills_tables_that_the_pipeline_reads(
    spark: SparkSession, pipeline: PipelineHarness
) -> None:
    pipeline.simulate(robots=2, seconds=5)
    pipeline.step()
    # Each robot tells its battery when it first speaks, and every second from then on.
    by_robot = [row["id"] for row in pipeline.table("battery").rows()]
    assert (by_robot.count("1"), by_robot.count("2")) == (5, 5)
    assert pipeline.table("low").rows() == []


def test_a_new_pipeline_and_the_table_of_the_tutorial_pass_their_tests(
    spark: SparkSession, tmp_path: Path
) -> None:
    folder = tmp_path / "mine"
    made = write_template(folder)
    assert passes_its_tests(folder)

    for path in made:
        if path.suffix != ".yml":
            path.unlink()
    table, test = re.findall(r"^```py\n(.*?)^```$", TUTORIAL.read_text("utf-8"), re.M | re.S)
    (folder / "transformations" / "low.py").write_text(table, "utf-8")
    (folder / "tests" / "test_low.py").write_text(test, "utf-8")
    assert passes_its_tests(folder)


def passes_its_tests(folder: Path) -> bool:
    plain = ["-q", "--no-header", "-o", "addopts=", "-c", "/dev/null", "--rootdir", str(folder)]
    runs = f"--basetemp={folder.parent / 'runs'}"
    without = ["-p", "no:cacheprovider", "-p", "no:xdist", "-W", "default", runs]
    return pytest.main([*plain, *without, str(folder)]) == pytest.ExitCode.OK
