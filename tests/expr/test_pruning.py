"""What rules groups of rows out decides rows one by one, where a group is one row."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from hypothesis import example, given
from hypothesis import strategies as st

from zenlake.expr.closure import Microseconds, SampleFields, compiled
from zenlake.expr.pruning import may_hold
from zenlake.expr.tree import (
    And,
    Between,
    Comparison,
    Field,
    In,
    Literal,
    Moment,
    Node,
    Or,
    starts_with,
)

TEXTS = st.text("ab/\ud7ff\ue000\U0010ffff", max_size=3)
NUMBERS = st.integers(-3, 3)
OPERATORS = st.sampled_from(["=", "<", "<=", ">", ">="])


def leaves(name: str, terms: st.SearchStrategy[Any]) -> st.SearchStrategy[Node]:
    field = st.just(Field(name))
    return (
        st.builds(Comparison, field, OPERATORS, terms)
        | st.builds(Between, field, terms, terms)
        | st.builds(In, field, st.lists(terms, min_size=1, max_size=3).map(tuple))
    )


NODES: st.SearchStrategy[Node] = st.recursive(
    leaves("text", TEXTS.map(Literal))
    | leaves("number", NUMBERS.map(Literal))
    | leaves("moment", NUMBERS.map(lambda at: Moment(at, str(at))))
    | st.builds(starts_with, st.just(Field("text")), TEXTS),
    lambda nodes: (
        st.builds(And, st.lists(nodes, min_size=1, max_size=3).map(tuple))
        | st.builds(Or, st.lists(nodes, min_size=1, max_size=3).map(tuple))
    ),
    max_leaves=6,
)
ROWS = st.tuples(TEXTS, NUMBERS, NUMBERS)


@given(st.lists(ROWS, max_size=5), NODES)
@example([("", 0, 0), ("a", 1, 1)], In(Field("text"), (Literal("a"), Literal("b"))))
def test_a_group_of_one_row_is_decided_as_the_row_is(
    rows: list[tuple[str, int, int]], node: Node
) -> None:
    columns = {
        "text": pa.array([text for text, _, _ in rows], pa.string()),
        "number": pa.array([number for _, number, _ in rows], pa.int64()),
        "moment": pa.array([moment for _, _, moment in rows], pa.timestamp("us", tz="UTC")),
    }
    asked = compiled(node)
    assert may_hold(node, {name: (one, one) for name, one in columns.items()}).to_pylist() == [
        asked(SampleFields({"text": text, "number": number, "moment": Microseconds(moment)}))
        for text, number, moment in rows
    ]


def test_a_value_that_is_unknown_may_be_any() -> None:
    unknown = pa.array([None, "b"], pa.string())
    for node in (
        In(Field("text"), (Literal("a"),)),
        Comparison(Field("text"), "=", Literal("a")),
        Between(Field("text"), Literal("a"), Literal("a")),
    ):
        assert may_hold(node, {"text": (unknown, unknown)}).to_pylist() == [True, False]
