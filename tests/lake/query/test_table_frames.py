from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from zenlake.lake.query.table_frames import matching, spark_type

OPERATORS: dict[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "in": lambda value, among: value in among,
    "starts": lambda value, start: value.startswith(start),
}


def actions(files: list[list[str]]) -> pa.Table:
    return pa.table(
        {
            "path": pa.array([str(n) for n in range(len(files))], pa.string()),
            "min.key": pa.array([min(keys, default=None) for keys in files], pa.string()),
            "max.key": pa.array([max(keys, default=None) for keys in files], pa.string()),
            "partition.day": pa.array([f"d{n % 2}" for n in range(len(files))], pa.string()),
        }
    )


keys = st.text("abc/", max_size=3)
simple = st.tuples(st.sampled_from(["=", "<", "<=", ">", ">=", "starts"]), keys)
among = st.tuples(st.just("in"), st.lists(keys, max_size=3))


@given(st.lists(st.lists(keys, max_size=4), max_size=6), st.lists(simple | among, max_size=3))
def test_no_file_with_a_row_that_matches_is_left_out(
    files: list[list[str]], asked: list[tuple[str, Any]]
) -> None:
    found = matching(actions(files), [("key", how, literal) for how, literal in asked])
    for n, held in enumerate(files):
        if any(all(OPERATORS[how](key, told) for how, told in asked) for key in held):
            assert str(n) in found


def test_files_that_cannot_match_are_left_out() -> None:
    table = actions([["a", "c"], ["d", "f"], []])
    # Of the third nothing is known, so it may hold anything.
    assert matching(table, [("key", "=", "b")]) == ["0", "2"]
    assert matching(table, [("key", ">", "f")]) == ["2"]
    assert matching(table, [("key", "in", ["d", "z"])]) == ["1", "2"]
    assert matching(table, [("key", "starts", "e")]) == ["1", "2"]
    assert matching(table, [("day", "=", "d1")]) == ["1"]
    assert matching(table, [("unknown", "=", 1)]) == ["0", "1", "2"]


def test_a_literal_of_another_type_leaves_it_to_spark() -> None:
    table = pa.table({"path": ["0"], "min.n": [1], "max.n": [2]})
    assert matching(table, [("n", "=", "text")]) == ["0"]
    assert matching(table, [("n", "=", 3)]) == []


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        (pa.string(), "string"),
        (pa.string_view(), "string"),
        (pa.binary_view(), "binary"),
        (pa.large_binary(), "binary"),
        (pa.int8(), "tinyint"),
        (pa.timestamp("us", tz="UTC"), "timestamp"),
        (pa.timestamp("us"), "timestamp_ntz"),
        (pa.list_(pa.list_(pa.int64())), "array<array<bigint>>"),
        (pa.decimal128(20, 0), "decimal(20,0)"),
        (pa.date32(), "date"),
        (pa.map_(pa.string(), pa.int8()), "map<string,tinyint>"),
        (pa.struct([("x y", pa.list_(pa.float64()))]), "struct<`x y`:array<double>>"),
    ],
)
def test_types_have_the_names_that_spark_gives_them(kind: pa.DataType, name: str) -> None:
    assert spark_type(kind) == name
