"""What a task does with rows that have expectations, and what a status says of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from zenlake.lake.model.sample_rows import QUARANTINE, order_of
from zenlake.lake.model.status import (
    MOST_EXPECTATIONS,
    MOST_FLOWS,
    ExpectationStatus,
    FlowStatus,
    bounded_flows,
)
from zenlake.lake.pipelines.expectation_counts import (
    expectation_status,
    unmet_expectation,
    without_row,
)
from zenlake.lake.pipelines.expected_rows import (
    ExpectationFailed,
    RowChecks,
    as_text,
    from_text,
    refused_rows,
)
from zenlake.lake.pipelines.flow_query import behind_versions
from zenlake.lake.table.data_files import read_table
from zenlake.lake.table.location import LakeLocation
from zenlake.pipelines import Expectation, Violation

EXPECTED = (
    Expectation("low", "n < 3", Violation.WARN),
    Expectation("positive", "n > 0", Violation.DROP),
    Expectation("odd", "n % 2 = 1", Violation.DROP),
)


def batch(*numbers: int, expected: tuple[Expectation, ...] = EXPECTED) -> pa.RecordBatch:
    """Rows with the columns that Spark adds, computed here from the number."""
    meets: dict[str, Any] = {
        "low": lambda n: n < 3, "positive": lambda n: n > 0, "odd": lambda n: n % 2 == 1
    }  # fmt: skip
    marks = [pa.array([meets[one.name](n) for n in numbers], pa.bool_()) for one in expected]
    kept = [all(meets[one.name](n) for one in expected[1:]) for n in numbers]
    rows = [None if keep else json.dumps({"n": n}) for n, keep in zip(numbers, kept, strict=True)]
    columns = [pa.array(numbers, pa.int64()), pa.array([f"k/{n}" for n in numbers], pa.string())]
    names = ["n", "key", *(f"m{n}" for n in range(len(expected))), "row"]
    return pa.RecordBatch.from_arrays([*columns, *marks, pa.array(rows, pa.string())], names)


def test_rows_are_separated_and_counted_batch_by_batch(tmp_path: Path) -> None:
    checks = RowChecks(EXPECTED, str(tmp_path), "numbers")

    kept = list(checks.kept(iter([batch(1, 2, 3), batch(5, 7), batch(-2, 0)])))

    assert [one.column("n").to_pylist() for one in kept] == [[1, 3], [5, 7], []]
    assert {tuple(one.schema.names) for one in kept} == {("n", "key")}
    # Each expectation is judged for every row: -2 fails two of them.
    assert (checks.rows, checks.failed) == (7, [3, 2, 3])
    (file,) = checks.refused
    place = LakeLocation(str(tmp_path)) / "quarantine"
    found = read_table(place, file.path, QUARANTINE).to_pylist()
    # Rows say under which key they want to be seen; what they were made of may be secret.
    assert [(one["field"], json.loads(one["value"])["n"], one["key"]) for one in found] == [
        ("odd", 2, None),
        ("positive", -2, None),
        ("positive", 0, None),
    ]
    assert {(one["table"], one["reason"], one["detail"]) for one in found} == {
        ("numbers", "expectation", "n > 0"),
        ("numbers", "expectation", "n % 2 = 1"),
    }


def test_a_row_that_ends_its_flow_leaves_no_file(tmp_path: Path) -> None:
    strict = (*EXPECTED[:2], Expectation("odd", "n % 2 = 1", Violation.FAIL))
    checks = RowChecks(strict, str(tmp_path), "numbers")

    with pytest.raises(ExpectationFailed) as failed:
        list(checks.kept(iter([batch(-1, expected=strict), batch(3, 4, 6, expected=strict)])))

    assert str(failed.value) == (
        "the expectation 'odd' (n % 2 = 1) is not met by the row " + '{"n": 4}'
    )
    assert list(tmp_path.rglob("*.parquet")) == []


def test_refused_rows_are_sorted_beside_samples_that_have_a_key() -> None:
    refused = refused_rows(pa.array([0]), pa.array(["{}"]), EXPECTED, "t")
    assert refused.schema == QUARANTINE
    sample = pa.Table.from_pylist([{"key": "a", "hlc": 1}], QUARANTINE)

    rows = pa.concat_tables([sample, refused]).combine_chunks()

    assert rows.take(pa.array(order_of(rows)))["key"].to_pylist() == [None, "a"]


def test_expectations_travel_as_an_option() -> None:
    odd = (Expectation('"', "a = '\\'' -- x", Violation.FAIL), *EXPECTED)
    assert from_text(as_text(odd)) == odd


@pytest.mark.parametrize(
    ("now", "start", "since"),
    [
        ((10, 3), (4, 3), (6, 0)),
        ((2, 0), (9, 5), (2, 0)),  # computed again, from nothing
        ((2, 1), None, (2, 1)),
    ],
)
def test_counts_since_the_start_are_what_was_added_or_all_of_a_table_made_again(
    now: tuple[int, int], start: tuple[int, int] | None, since: tuple[int, int]
) -> None:
    before = {} if start is None else {"low": start}
    found = expectation_status(EXPECTED[0], {"low": now}, before)
    assert found == ExpectationStatus("low", "warn", *now, *since)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (
            "Job aborted\nTraceback:\n  raise ExpectationFailed(\n"
            "zenlake.lake.pipelines.expected_rows.ExpectationFailed: the expectation 'a' (b) is "
            'not met by the row {"n": 4}\n\nDriver stacktrace:',
            "the expectation 'a' (b) is not met by the row {\"n\": 4}",
        ),
        (
            "[USER_RAISED_EXCEPTION] ExpectationFailed: the expectation SQLSTATE: P0001",
            "the expectation",
        ),
        ("Job aborted: the disk is full", ""),
    ],
)
def test_why_a_flow_ended_is_found_in_what_spark_says(text: str, found: str) -> None:
    assert unmet_expectation(text) == found


def test_a_status_tells_of_no_row() -> None:
    why = "a.py:3: the expectation 'a' (b) is not met by the row {\"pin\": 1234}"
    assert without_row(why, "low") == (
        "a.py:3: the expectation 'a' (b) is not met by the row that "
        "`zenlake pipeline describe low` shows"
    )
    assert without_row("the disk is full", "low") == "the disk is full"


def test_how_far_a_flow_is_behind_is_counted_in_commits_of_the_lakes_tables() -> None:
    read = '{"table": "x", "version": 4, "index": 0, "snapshot": false}'
    ends = '{"table": "x", "version": 9, "index": 0, "snapshot": false}'
    assert behind_versions([(read, ends), (read, read), (ends, read)]) == 5
    assert behind_versions([(read, None), ("{", ends), ("7", "8"), ('{"a": 1}', '{"a": 2}')]) == 0


def test_a_status_shows_flows_that_are_stopped_first_and_a_bounded_number() -> None:
    every = ExpectationStatus("e", "warn")
    flows = [FlowStatus("p", f"f{n:03}", expectations=(every,) * 50) for n in range(MOST_FLOWS + 9)]
    flows[-1] = FlowStatus("p", "z", state="stopped")

    shown = bounded_flows(flows)

    assert (shown[0].name, len(shown)) == ("z", MOST_FLOWS)
    assert sum(len(one.expectations) for one in shown) == MOST_EXPECTATIONS
