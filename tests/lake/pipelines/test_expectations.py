"""Rows that do not meet expectations: counted, put into quarantine once, or the end of a flow."""

from __future__ import annotations

import json
from dataclasses import astuple
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from deltalake import DeltaTable

from tests.lake.pipelines.lakes import add_rows, loaded, rows_of, write_files
from zenlake.lake.pipelines.definitions import PipelineError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

IMPORTS = "from zenlake.pipelines import *\n"
CHECKED = (
    IMPORTS
    + """
@dp.table
@expect("not full", "percent < 95")
@expect_or_drop("robot is known", "id > 0")
@expect_or_drop("percent in range", "percent BETWEEN 0 AND 100")
def checked():
    return spark.readStream.table("battery")
"""
)
#: A full robot, one that is not known, two out of range, one that breaks two, a null.
ROWS: tuple[Any, ...] = ((1, 10.0), (2, 99.0), (-1, 50.0), (3, 101.0), (-2, -5.0), (4, None))


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    lake = tmp_path / f"expected_{abs(hash(tmp_path.name)) % 10**9}"
    add_rows(lake, *ROWS)
    return lake


def refused(lake: Path, table: str = "checked") -> list[tuple[str, Any, Any]]:
    """The expectation, the id and the percent of each row in quarantine."""
    found = DeltaTable(str(lake / "quarantine")).to_pyarrow_table().to_pylist()
    rows = [(one, json.loads(one["value"])) for one in found if one["table"] == table]
    assert {one["reason"] for one, _ in rows} <= {"expectation"}
    return sorted(((one["field"], row["id"], row.get("percent")) for one, row in rows), key=repr)


def counts(runner: Any) -> dict[str, tuple[int, int]]:
    """The rows that met each expectation of a pipeline's only flow, and those that did not."""
    (flow,) = runner.flows()
    return {one.name: (one.passed, one.failed) for one in flow.expectations}


DROPPED = [
    ("percent in range", 3, 101.0),
    ("percent in range", 4, None),
    ("robot is known", -1, 50.0),
    ("robot is known", -2, -5.0),
]
COUNTED = {"not full": (3, 3), "robot is known": (4, 2), "percent in range": (3, 3)}
"""A null meets no condition: the row of robot 4 fails two of them."""


def test_rows_of_a_table_are_kept_and_counted_or_go_to_quarantine(
    lake: Path, tmp_path: Path, spark: SparkSession
) -> None:
    folder = write_files(tmp_path / "mine", a_py=CHECKED)

    runner = loaded(folder, lake, spark)
    assert runner.run_once().failed == {}

    assert rows_of(lake, "checked", "id", "percent") == [(1, 10.0), (2, 99.0)]
    assert refused(lake) == DROPPED
    assert counts(runner) == COUNTED

    # A batch of which the table gets nothing counts, too.
    add_rows(lake, (-7, 1.0))
    runner = loaded(folder, lake, spark)
    runner.run_once()
    assert len(rows_of(lake, "checked")) == 2
    assert counts(runner) == {
        "not full": (4, 3), "robot is known": (4, 3), "percent in range": (4, 3)
    }  # fmt: skip
    since = {one.name: astuple(one)[4:] for one in runner.flows()[0].expectations}
    assert since == {"not full": (1, 0), "robot is known": (0, 1), "percent in range": (1, 0)}
    assert refused(lake) == sorted([*DROPPED, ("robot is known", -7, 1.0)], key=repr)

    # Rows that are computed again are in quarantine and counted once.
    runner = loaded(folder, lake, spark)
    runner.run_once(["checked"])
    assert refused(lake) == sorted([*DROPPED, ("robot is known", -7, 1.0)], key=repr)
    assert rows_of(lake, "checked", "id") == [(1,), (2,)]
    assert counts(runner)["robot is known"] == (4, 3)


def test_a_batch_that_is_repeated_after_a_kill_is_in_quarantine_and_counted_once(
    lake: Path, tmp_path: Path, spark: SparkSession
) -> None:
    folder = write_files(tmp_path / "mine", a_py=CHECKED)
    loaded(folder, lake, spark).run_once()
    checkpoint = lake / ".pipelines" / "mine" / "checkpoints" / "checked" / "0"
    log = lake / "checked" / "_delta_log"

    for killed in ("after the commit of the table", "before it, with the rows in quarantine"):
        # Spark notes a batch last: what was killed before that repeats the batch.
        for note in (checkpoint / "commits").glob("*0*"):
            note.unlink()
        if killed.startswith("before"):
            max(log.glob("*.json")).unlink()
            assert rows_of(lake, "checked") == []

        runner = loaded(folder, lake, spark)
        assert runner.run_once().failed == {}

        assert rows_of(lake, "checked", "id", "percent") == [(1, 10.0), (2, 99.0)], killed
        assert refused(lake) == DROPPED, killed
        assert counts(runner) == COUNTED, killed


def test_a_row_that_must_not_be_stops_the_flow_before_anything_is_committed(
    lake: Path, tmp_path: Path, spark: SparkSession
) -> None:
    strict = CHECKED.replace('@expect_or_drop("percent', '@expect_or_fail("percent')
    folder = write_files(
        tmp_path / "mine",
        a_py=strict.replace("BETWEEN 0 AND 100", "<= 100 OR percent IS NULL"),
    )

    runner = loaded(folder, lake, spark)
    why = runner.run_once().failed["checked"]

    assert why.startswith("a.py:6: the expectation 'percent in range' (percent <= 100 OR ")
    assert "is not met by the row {" in why
    assert json.loads(why[why.index("{") :])["id"] == 3
    assert rows_of(lake, "checked") == []
    assert not (lake / "quarantine").exists() or refused(lake) == []


def test_a_materialized_view_is_checked_each_time_that_it_is_computed(
    lake: Path, tmp_path: Path, spark: SparkSession
) -> None:
    text = CHECKED.replace("dp.table", "dp.materialized_view").replace("readStream", "read")
    folder = write_files(tmp_path / "mine", a_py=text)
    loaded(folder, lake, spark).run_once()
    add_rows(lake, (5, 7.0), (-9, 8.0))

    runner = loaded(folder, lake, spark)
    assert runner.run_once().computed == ["checked"]

    assert rows_of(lake, "checked", "id", "percent") == [(1, 10.0), (2, 99.0), (5, 7.0)]
    assert refused(lake) == sorted([*DROPPED, ("robot is known", -9, 8.0)], key=repr)
    assert counts(runner) == {
        "not full": (5, 3), "robot is known": (5, 3), "percent in range": (5, 3)
    }  # fmt: skip

    failing = text.replace('@expect_or_drop("robot', '@expect_or_fail("robot')
    why = loaded(write_files(folder, a_py=failing), lake, spark).run_once().failed["checked"]
    assert "the expectation 'robot is known' (id > 0) is not met by the row" in why
    assert len(rows_of(lake, "checked")) == 3


def test_rows_of_a_view_are_checked_by_its_query(
    lake: Path, tmp_path: Path, spark: SparkSession
) -> None:
    folder = write_files(
        tmp_path / "mine",
        a_py=CHECKED.replace("dp.table", "dp.temporary_view")
        + """
@dp.table
def after():
    return spark.readStream.table("checked")

dp.create_streaming_table("both")

@dp.append_flow(target="both")
@expect_all_or_drop({"low": "percent < 50"})
def from_battery():
    return spark.readStream.table("battery")
""",
    )

    assert loaded(folder, lake, spark).run_once().failed == {}

    assert rows_of(lake, "after", "id", "percent") == [(1, 10.0), (2, 99.0)]
    assert rows_of(lake, "both", "id") == [(-2,), (1,)]
    assert len(refused(lake, "both")) == 4


def test_a_condition_that_is_none_is_refused_with_the_file_and_the_line(
    lake: Path, tmp_path: Path, spark: SparkSession
) -> None:
    for condition, words in {
        "percnt > 0": "`percnt`",
        "percent +": "Syntax error",
        "percent": "BOOLEAN",
        "max(percent) > 3": "invalid expressions",
    }.items():
        text = f'{IMPORTS}@dp.table\n@expect("x", "{condition}")\ndef checked():\n    '
        folder = write_files(
            tmp_path / "mine", a_py=text + 'return spark.readStream.table("battery")'
        )
        with pytest.raises(PipelineError) as wrong:
            loaded(folder, lake, spark)
        assert str(wrong.value).startswith("a.py:5: the expectation 'x' of 'checked' (")
        assert words.lower() in str(wrong.value).lower()
