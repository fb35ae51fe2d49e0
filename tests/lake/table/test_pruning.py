"""No file with a row that a predicate is true of is left out, whatever the predicate is."""

from __future__ import annotations

import io
import json
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from zenlake.expr.closure import SampleFields, compiled
from zenlake.expr.tree import (
    And,
    Between,
    Comparison,
    Field,
    In,
    IsNull,
    Literal,
    Moment,
    Node,
    Not,
    Or,
    fields_of,
    starts_with,
)
from zenlake.lake.table.file_statistics import statistics
from zenlake.lake.table.pruning import matching

SCHEMA = pa.schema(
    {"text": pa.string(), "whole": pa.int64(), "real": pa.float64(), "narrow": pa.float32()}
)
TEXTS = st.text("ab/_%\ud7ff\U0010ffff", max_size=3)
WHOLE = st.integers(-3, 3) | st.sampled_from([-(1 << 63), (1 << 63) - 1])
REAL = st.sampled_from([0.1, -0.1, 1.0, 2.5, 0.0, -0.0, 1e300, float("inf"), float("nan")])
NARROW = st.floats(width=32, allow_infinity=False) | st.sampled_from([0.1]).map(
    lambda number: float(pa.scalar(number, pa.float32()).as_py())
)
ROWS = st.fixed_dictionaries(
    {
        name: st.none() | values
        for name, values in zip(SCHEMA.names, (TEXTS, WHOLE, REAL, NARROW), strict=True)
    }
)
FIELDS = st.sampled_from([*SCHEMA.names, "unknown"]).map(Field)
LITERALS = (TEXTS | WHOLE | st.sampled_from([0.1, 2.5, 1 << 70, 3.0, 1e999, True])).map(Literal)
TERMS = FIELDS | LITERALS
LEAVES: st.SearchStrategy[Node] = (
    st.builds(Comparison, TERMS, st.sampled_from(["=", "<>", "<", "<=", ">", ">="]), TERMS)
    | st.builds(Comparison, FIELDS, st.just("LIKE"), TEXTS.map(Literal))
    | st.builds(Between, TERMS, TERMS, TERMS, st.booleans())
    | st.builds(In, TERMS, st.lists(TERMS, min_size=1, max_size=3).map(tuple), st.booleans())
    | st.builds(IsNull, TERMS, st.booleans())
    | st.builds(starts_with, FIELDS, TEXTS)
)


def _wider(nodes: st.SearchStrategy[Node]) -> st.SearchStrategy[Node]:
    several = st.lists(nodes, min_size=1, max_size=3).map(tuple)
    return st.builds(Not, nodes) | st.builds(And, several) | st.builds(Or, several)


NODES: st.SearchStrategy[Node] = st.recursive(LEAVES, _wider, max_leaves=6)


def actions(files: list[list[dict[str, Any]]]) -> pa.Table:
    """What the log says of files that have these rows."""
    pages = []
    for rows in files:
        file = io.BytesIO()
        pq.write_table(pa.Table.from_pylist(rows, SCHEMA), file)
        pages.append(json.loads(statistics(pq.read_metadata(file))))
    columns: dict[str, Any] = {"path": pa.array([str(n) for n in range(len(files))], pa.string())}
    for field in SCHEMA:
        for word, told in (("min", "minValues"), ("max", "maxValues")):
            values = [page[told].get(field.name) for page in pages]
            columns[f"{word}.{field.name}"] = pa.array(values, field.type)
    return pa.table(columns)


@given(st.lists(st.lists(ROWS, max_size=4), max_size=4), st.lists(NODES, min_size=1, max_size=2))
@example(
    [[{"narrow": pa.scalar(0.1, pa.float32()).as_py()}]],
    [
        Comparison(Field("narrow"), "<>", Literal(0.1)),
        Not(Comparison(Field("narrow"), "<=", Literal(0.1))),
    ],
)
@example([[{"real": 1.0}, {"real": float("nan")}]], [Comparison(Field("real"), ">", Literal(5))])
@example([[{"whole": 1}]], [Comparison(Field("whole"), "<", Literal(1 << 70))])
@example([[{"text": "a" + "\U0010ffff" * 6}]], [starts_with(Field("text"), "a")])
def test_no_file_with_a_row_that_matches_is_left_out(
    files: list[list[dict[str, Any]]], conditions: list[Node]
) -> None:
    found = matching(actions(files), conditions)
    asked = compiled(And(tuple(conditions)))
    for n, rows in enumerate(files):
        if any(asked(SampleFields(row)) is True for row in rows):
            assert str(n) in found


def of_keys(*bounds: tuple[str, str] | None) -> pa.Table:
    lows, highs = zip(*(one or (None, None) for one in bounds), strict=True)
    return pa.table(
        {
            "path": pa.array([str(n) for n in range(len(bounds))]),
            "min.key": pa.array(lows, pa.string()),
            "max.key": pa.array(highs, pa.string()),
            "partition.day": pa.array(range(len(bounds)), pa.int32()).cast(pa.date32()),
        }
    )


@pytest.mark.parametrize(
    ("condition", "files"),
    [
        (Comparison(Field("key"), "=", Literal("b")), ["0", "2"]),
        (Comparison(Field("key"), ">", Literal("f")), ["2"]),
        (Comparison(Field("key"), "LIKE", Literal("e%")), ["1", "2"]),
        (Comparison(Field("key"), "LIKE", Literal("e_")), ["1", "2"]),
        (starts_with(Field("key"), "e_"), ["1", "2"]),
        (starts_with(Field("key"), "c_"), ["2"]),
        (In(Field("key"), (Literal("d"), Literal("z"))), ["1", "2"]),
        (Between(Field("key"), Literal("g"), Literal("z")), ["2"]),
        (Or((Comparison(Field("key"), "=", Literal("b")), IsNull(Field("key")))), ["0", "1", "2"]),
        (Comparison(Field("day"), "=", Moment(86_400_000_000, "2nd")), ["1"]),
        (Comparison(Field("day"), "=", Moment(1, "no day")), ["0", "1", "2"]),
        (Comparison(Field("key"), "=", Literal(5)), ["0", "1", "2"]),
        (Comparison(Field("unknown"), "=", Literal(5)), ["0", "1", "2"]),
        (Not(Comparison(Field("key"), "=", Literal("b"))), ["0", "1", "2"]),
    ],
)
def test_files_that_cannot_match_are_left_out(condition: Node, files: list[str]) -> None:
    """Of the third nothing is known, so it may hold anything."""
    assert matching(of_keys(("a", "c"), ("d", "f"), None), [condition]) == files


@given(TEXTS, TEXTS)
def test_a_text_begins_so_if_it_lies_between_two(text: str, prefix: str) -> None:
    node = starts_with(Field("text"), prefix)
    assert node.holds({"text": text}) == text.startswith(prefix)
    assert fields_of(node) == {"text"}
