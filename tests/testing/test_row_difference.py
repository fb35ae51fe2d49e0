"""What a test is told of rows that are not those that it expects."""

from __future__ import annotations

from typing import Any

import pytest

from zenlake.testing.row_difference import row_difference

ROBOT: dict[str, Any] = {"id": "7", "hour": 12, "mean": 1.5}


def test_the_same_rows_in_another_order_do_not_differ() -> None:
    other = ROBOT | {"id": "8"}
    assert row_difference([ROBOT, other], [other, ROBOT]) == ""
    assert row_difference([], []) == ""


def test_a_row_counts_as_often_as_it_is_there() -> None:
    assert row_difference([ROBOT, ROBOT], [ROBOT]) == (
        "2 rows, 1 expected:\n  unexpected  id='7'  hour=12  mean=1.5"
    )
    assert row_difference([ROBOT], [ROBOT, ROBOT]) == (
        "1 rows, 2 expected:\n  missing     id='7'  hour=12  mean=1.5"
    )


def test_a_changed_value_is_shown_beside_the_expected_one() -> None:
    assert row_difference([ROBOT], [ROBOT | {"mean": 2.0}]) == (
        "1 rows, 1 expected:\n  changed     id='7'  hour=12  mean: expected 2.0, is 1.5"
    )


def test_rows_that_have_little_in_common_are_missing_and_unexpected() -> None:
    found = row_difference([ROBOT], [{"id": "7", "hour": 13, "mean": 2.0}])
    assert found == (
        "1 rows, 1 expected:\n"
        "  missing     id='7'  hour=13  mean=2.0\n"
        "  unexpected  id='7'  hour=12  mean=1.5"
    )


def test_columns_that_name_a_row_pair_it_whatever_else_changed() -> None:
    found = row_difference([ROBOT], [{"id": "7", "hour": 13, "mean": 2.0}], by=["id"])
    assert found == (
        "1 rows, 1 expected:\n"
        "  changed     id='7'  hour: expected 13, is 12; mean: expected 2.0, is 1.5"
    )


def test_columns_that_only_one_side_has_are_named() -> None:
    found = row_difference([ROBOT], [{"id": "7", "hour": 12, "median": 1.5}])
    assert found.splitlines()[1:] == ["  missing     median", "  unexpected  mean"]


def test_expected_values_may_be_approximate() -> None:
    assert row_difference([{"n": 0.1 + 0.2}], [{"n": pytest.approx(0.3)}]) == ""
    assert row_difference([{"n": 0.4}], [{"n": pytest.approx(0.3)}]) != ""


def test_nan_is_nan_and_true_is_not_one() -> None:
    assert row_difference([{"n": float("nan")}], [{"n": float("nan")}]) == ""
    assert row_difference([{"n": True}], [{"n": 1}]) != ""
    assert row_difference([{"n": 1}], [{"n": 1.0}]) == ""


def test_a_difference_is_bounded() -> None:
    found = row_difference([{"n": n, "text": "x" * 1000} for n in range(500)], [])
    assert len(found.splitlines()) == 22
    assert found.splitlines()[-1] == "  unexpected  … and 480 more"
    assert len(found) < 6000
