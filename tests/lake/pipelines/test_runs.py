"""What a pipeline leaves in its tables: each row counted once, whatever comes in between."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from deltalake import DeltaTable

from tests.lake.pipelines.lakes import add_rows, loaded, rows_of, write_files
from zenlake.errors import LocalError
from zenlake.lake.pipelines.definitions import PipelineError
from zenlake.lake.pipelines.manager import Pipelines
from zenlake.lake.pipelines.project import open_project
from zenlake.lake.pipelines.state import PipelineState
from zenlake.lake.table.location import LakeLocation

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LOW = """
    @dp.table(comment="robots that need a charger")
    def low():
        return spark.readStream.table("battery").where("percent < 15").select("id", "percent")
"""
LOWEST = """
    @dp.materialized_view
    def lowest():
        return spark.read.table("low").groupBy("id").agg(f.min("percent").alias("least"))
"""


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    lake = tmp_path / f"runs_{abs(hash(tmp_path.name)) % 10**9}"
    add_rows(lake, (1, 10.0), (2, 20.0), (3, 5.0))
    return lake


def test_rows_flow_through_tables_and_views_once(
    lake: Path, tmp_path: Path, spark: SparkSession
) -> None:
    folder = write_files(tmp_path / "mine", a_py=LOWEST, b_py=LOW)

    first = loaded(folder, lake, spark).run_once()
    assert (first.rows, first.computed, first.unchanged, first.failed) == (
        {"low": 3}, ["lowest"], [], {}
    )  # fmt: skip
    assert rows_of(lake, "low") == [(1, 10.0), (3, 5.0)]
    assert rows_of(lake, "lowest") == [(1, 10.0), (3, 5.0)]
    assert DeltaTable(str(lake / "low")).metadata().description == "robots that need a charger"

    idle = loaded(folder, lake, spark).run_once()
    assert (idle.rows, idle.computed, idle.unchanged) == ({"low": 0}, [], ["lowest"])

    add_rows(lake, (1, 7.0), (4, 90.0))
    more = loaded(folder, lake, spark).run_once()
    assert (more.rows, more.computed) == ({"low": 2}, ["lowest"])
    assert rows_of(lake, "low") == [(1, 10.0), (1, 7.0), (3, 5.0)]
    assert rows_of(lake, "lowest") == [(1, 7.0), (3, 5.0)]


def test_a_changed_definition_keeps_rows_until_a_full_refresh_computes_them_again(
    lake: Path, tmp_path: Path, spark: SparkSession
) -> None:
    folder = write_files(tmp_path / "mine", a_py=LOW)
    loaded(folder, lake, spark).run_once()

    write_files(folder, a_py=LOW.replace("< 15", "< 25"))
    add_rows(lake, (5, 22.0))
    changed = loaded(folder, lake, spark)
    changed.run_once()
    assert rows_of(lake, "low") == [(1, 10.0), (3, 5.0), (5, 22.0)]
    (note,) = changed.notes
    assert "the definition of 'low' has changed" in note
    assert "zenlake pipeline run --full-refresh low" in note

    loaded(folder, lake, spark).run_once(["low"])
    assert rows_of(lake, "low") == [(1, 10.0), (2, 20.0), (3, 5.0), (5, 22.0)]
    assert loaded(folder, lake, spark).run_once().rows == {"low": 0}

    with pytest.raises(LocalError, match="no table 'lowe'; it has low"):
        loaded(folder, lake, spark).run_once(["lowe"])


def test_a_full_refresh_that_was_cut_off_is_ended_by_the_next_run(
    lake: Path, tmp_path: Path, spark: SparkSession
) -> None:
    folder = write_files(tmp_path / "mine", a_py=LOW)
    loaded(folder, lake, spark).run_once()
    # The program died when it had noted what it would do.
    PipelineState(lake / ".pipelines" / "mine").begin_refresh("low")

    loaded(folder, lake, spark).run_once()

    assert rows_of(lake, "low") == [(1, 10.0), (3, 5.0)]


def test_a_flow_that_fails_holds_up_those_that_read_its_table_and_no_others(
    lake: Path, tmp_path: Path, spark: SparkSession
) -> None:
    folder = write_files(
        tmp_path / "mine",
        a_py=LOW
        + """
    @dp.table
    def broken():
        return spark.readStream.table("battery").select(
            f.when(
                f.col("id") == 2, f.raise_error(f.lit("robot 2 is no robot")).cast("string")
            ).alias("x")
        )

    @dp.materialized_view
    def behind():
        return spark.read.table("broken").groupBy().count()
    """,
    )

    report = loaded(folder, lake, spark).run_once()

    assert report.rows == {"low": 3}
    assert "robot 2 is no robot" in report.failed["broken"]
    assert report.failed["behind"] == "a table that it reads was not computed"
    assert rows_of(lake, "low") == [(1, 10.0), (3, 5.0)]


def test_columns_that_a_table_gets_reach_what_reads_it(
    lake: Path, tmp_path: Path, spark: SparkSession
) -> None:
    folder = write_files(
        tmp_path / "mine",
        a_py="""
            @dp.table
            def every():
                return spark.readStream.table("battery")
        """,
    )
    loaded(folder, lake, spark).run_once()
    write_files(
        folder,
        a_py="""
            @dp.table
            def every():
                return spark.readStream.table("battery").withColumn("half", f.col("percent") / 2)
        """,
    )
    add_rows(lake, (4, 8.0))

    loaded(folder, lake, spark).run_once()

    assert rows_of(lake, "every", "id", "half") == [(1, None), (2, None), (3, None), (4, 4.0)]


def wait(done: Callable[[], bool], what: str, seconds: float = 90.0) -> None:
    until = time.monotonic() + seconds
    while not done():
        assert time.monotonic() < until, f"{what} did not happen in {seconds:.0f} s"
        time.sleep(0.1)


def test_a_running_lake_takes_new_files_and_keeps_the_last_good_ones(
    lake: Path, tmp_path: Path, spark: SparkSession
) -> None:
    folder = tmp_path / "mine"
    said: list[str] = []

    def pipelines() -> Pipelines:
        return Pipelines(LakeLocation(str(lake)), spark, folder, said.append, f"lake_{lake.name}")

    running = pipelines()
    try:
        write_files(folder, a_py=LOW)
        wait(lambda: (lake / "low").exists() and len(rows_of(lake, "low")) == 2, "low")
        write_files(folder, a_py=LOW, b_py="@dp.table\ndef t():\n    return nothing")
        wait(lambda: bool(running.problems()), "the problem")
        assert running.problems()[0].startswith("pipeline 'mine': b.py:6: NameError")
        add_rows(lake, (6, 1.0))
        wait(lambda: len(rows_of(lake, "low")) == 3, "the row of the last good files")
    finally:
        running.close()

    add_rows(lake, (7, 2.0))
    again = pipelines()
    try:
        wait(lambda: len(rows_of(lake, "low")) == 4, "the last good files after a start")
        assert again.problems()[0].startswith("pipeline 'mine': b.py:6: NameError")
        write_files(folder, a_py=LOW, b_py=LOWEST)
        wait(
            lambda: (lake / "lowest").exists() and len(rows_of(lake, "lowest")) == 4,
            "the view of the mended files",
        )
        assert again.problems() == ()
        state = PipelineState(lake / ".pipelines" / "mine")
        with pytest.raises(LocalError, match="is run by another program"), state.locked():
            raise AssertionError
    finally:
        again.close()


def test_a_folder_that_is_no_pipeline_is_refused(tmp_path: Path) -> None:
    with pytest.raises(PipelineError, match="zenlake pipeline init"):
        open_project(tmp_path / "nowhere")
    for text, words in {
        "name: [": "cannot be read",
        "nme: x": "no field 'nme'",
        "name: a/b": "'a/b' cannot name a pipeline",
        "name: x\nlibraries: [{glob: {include: ../**}}]": "leaves the folder",
        "name: x\nconfiguration: {a: 1}": "values are texts",
    }.items():
        (tmp_path / "spark-pipeline.yml").write_text(text, "utf-8")
        with pytest.raises(PipelineError, match=words):
            open_project(tmp_path)


def test_one_pipeline_is_run_by_one_program(tmp_path: Path) -> None:
    state = PipelineState(tmp_path / "mine")
    refused: list[str] = []

    def other() -> None:
        try:
            with PipelineState(tmp_path / "mine").locked():
                pass
        except LocalError as error:
            refused.append(str(error))

    with state.locked():
        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
    assert len(refused) == 1
    assert "is run by another program" in refused[0]
    with PipelineState(tmp_path / "mine").locked():
        pass
