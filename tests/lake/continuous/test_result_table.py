"""The tables of views and alerts: what they keep, and for how long."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pytest

from tests.lake.journals import rows_of
from zenlake.errors import LocalError
from zenlake.lake.continuous.alert_results import AlertResults
from zenlake.lake.continuous.publishing import ResultPublisher
from zenlake.lake.continuous.query_shape import HOLDS, SUBJECT, TIME
from zenlake.lake.continuous.result_table import ResultTable
from zenlake.lake.maintain.definition_store import new_definition
from zenlake.lake.table.data_files import read_table
from zenlake.lake.table.delta import CommitConflict
from zenlake.lake.table.location import LakeLocation

COLUMNS = pa.schema([("n", pa.int64())])


def test_days_that_are_over_leave_the_table_of_a_view_and_its_place_stays(tmp_path: Path) -> None:
    definition = new_definition("means", "view", "SELECT n FROM samples")
    for keep, left in ((None, [1, 2, 3]), (86400.0, [2, 3, 4])):
        results = ResultTable(LakeLocation(tmp_path), definition, COLUMNS, 600.0, keep)
        if keep is None:
            old = results._write(pa.table({"n": [1]}, COLUMNS), "2020-01-31")
            results.table.append([old], {"app": (None, 0)}, {"kind": "append"})
            results.append(pa.table({"n": [2]}, COLUMNS), {"app": (0, 1)})
            results.append(pa.table({"n": [3]}, COLUMNS), {"app": (1, 2)})
        else:
            results.append(pa.table({"n": [4]}, COLUMNS), {"app": (2, 3)})
        results.keep_in_shape()
        assert sorted(row["n"] for row in rows_of(tmp_path, "means")) == left
    # A batch that comes again finds itself, though its rows are gone.
    assert results.reached("app") == 3


def test_a_date_that_is_set_ahead_drops_no_days_before_it_was_so_for_a_day(tmp_path: Path) -> None:
    definition = new_definition("means", "view", "SELECT n FROM samples")
    results = ResultTable(LakeLocation(tmp_path), definition, COLUMNS, 600.0, 86400.0)
    results.append(pa.table({"n": [1]}, COLUMNS), {"app": (None, 0)})
    now = time.time()
    results.keep_in_shape(now)
    results.keep_in_shape(now + 365 * 86400)
    assert len(rows_of(tmp_path, "means")) == 1
    again = ResultTable(LakeLocation(tmp_path), definition, COLUMNS, 600.0, 86400.0)
    again.keep_in_shape(now + 365 * 86400)
    assert len(rows_of(tmp_path, "means")) == 1


def test_a_batch_that_was_overtaken_or_ended_is_not_written_twice(tmp_path: Path) -> None:
    definition = new_definition("means", "view", "SELECT n FROM samples")
    slow, fast = (ResultTable(LakeLocation(tmp_path), definition, COLUMNS, 600.0) for _ in range(2))
    batch = pa.table({"n": [1]}, COLUMNS)
    seen = slow.reached("app")
    fast.append(batch, {"app": (fast.reached("app"), 0)})
    with pytest.raises(CommitConflict, match="is at 0 for app, not at None"):
        slow.append(batch, {"app": (seen, 0)})
    with pytest.raises(CommitConflict):
        slow.replace(batch, ["n"], {"app": (seen, 0)})
    fast.end()
    with pytest.raises(LocalError, match="was started again meanwhile"):
        fast.append(batch, {"app": (0, 1)})
    assert [row["n"] for row in rows_of(tmp_path, "means")] == [1]


def test_a_memory_of_an_alert_that_was_ended_replaces_nothing(tmp_path: Path) -> None:
    definition = new_definition("low", "alert", "SELECT n FROM samples WHERE n < 2")
    publisher = ResultPublisher(None, "alert/low")
    slow, fast = (
        AlertResults(definition, LakeLocation(tmp_path), publisher, tmp_path, 600.0)
        for _ in range(2)
    )
    row = {TIME: [datetime.fromtimestamp(1, UTC)], HOLDS: [True], SUBJECT: ["a"], "n": [1]}
    slow.results.end()
    with pytest.raises(LocalError, match="was started again meanwhile"):
        slow.heard(pa.table(row), None, 0, "app")
    assert not list((tmp_path / "steps").glob("*.json"))
    fast.heard(pa.table(row), None, 0, "app")
    assert [row["state"] for row in rows_of(tmp_path, "low")] == ["raised"]


def test_what_is_raised_outlives_its_row_in_the_table_of_an_alert(tmp_path: Path) -> None:
    definition = new_definition("low", "alert", "SELECT n FROM samples WHERE n < 2")
    publisher = ResultPublisher(None, "alert/low")
    (tmp_path / "aside").mkdir()

    def opened(keep: float | None) -> AlertResults:
        return AlertResults(
            definition, LakeLocation(tmp_path), publisher, tmp_path / "aside", 600.0, keep
        )

    def heard(alert: AlertResults, at: int, holds: bool, number: int) -> None:
        row = {TIME: [datetime.fromtimestamp(at, UTC)], HOLDS: [holds], SUBJECT: ["a"], "n": [1]}
        alert.heard(pa.table(row), None, number, "app")

    first = opened(None)
    heard(first, 1, True, 0)
    raised = first.results.table.files()
    place, columns = first.results.table.place, first.results.columns
    old = first.results._write(read_table(place, raised[0].path, columns), "2020-01-31")
    first.results.table.rewrite([old], raised, True)
    again = opened(86400.0)
    heard(again, 2, False, 1)
    assert [row["state"] for row in rows_of(tmp_path, "low")] == ["cleared"]
    assert again.raising.raised == 0


def test_a_table_gets_the_columns_that_its_query_finds_by_now(tmp_path: Path) -> None:
    definition = new_definition("means", "view", "SELECT n FROM samples")
    place = LakeLocation(tmp_path)
    first = ResultTable(place, definition, COLUMNS, 600.0)
    first.append(pa.table({"n": [1]}, COLUMNS), {"app": (None, 0)})
    wide = pa.schema([("n", pa.float64()), ("colour", pa.string())])
    then = ResultTable(place, definition, wide, 600.0)
    then.append(pa.table({"n": [0.5], "colour": ["red"]}, wide), {"app": (0, 1)})
    # A whole number fits into what became wider, and a column may be gone.
    back = ResultTable(place, definition, COLUMNS, 600.0)
    back.append(pa.table({"n": [3]}, COLUMNS), {"app": (1, 2)})
    rows = sorted((row["n"], row["colour"]) for row in rows_of(tmp_path, "means"))
    assert rows == [(0.5, "red"), (1.0, None), (3.0, None)]
    # Of groups the newest row stays, in columns of all times.
    back.replace(pa.table({"n": [1]}, COLUMNS), ["n"], {"app": (2, 3)})
    rows = sorted((row["n"], row["colour"]) for row in rows_of(tmp_path, "means"))
    assert rows == [(0.5, "red"), (1.0, None), (3.0, None)]


def test_values_that_another_kind_cannot_hold_are_not_changed(tmp_path: Path) -> None:
    definition = new_definition("sums", "view", "SELECT n FROM samples")
    large = ResultTable(LakeLocation(tmp_path), definition, COLUMNS, 600.0)
    large.append(pa.table({"n": [2**53 + 1]}, COLUMNS), {"app": (None, 0)})
    with pytest.raises(LocalError, match="create it again: zenlake lake view drop sums"):
        ResultTable(LakeLocation(tmp_path), definition, pa.schema([("n", pa.float64())]), 600.0)
    assert [row["n"] for row in rows_of(tmp_path, "sums")] == [2**53 + 1]
