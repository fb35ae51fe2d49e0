from __future__ import annotations

import json
import re
import struct
import time
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zenlake.expr import (
    And,
    Between,
    Comparison,
    ExprError,
    Field,
    Literal,
    Node,
    Not,
    Or,
    Unsupported,
    json_record,
    parse,
    parse_type,
)
from zenlake.expr.closure import SampleFields, compiled
from zenlake.expr.record import TypeDeclarationError
from zenlake.expr.tree import MOST_WILD, like

RECORD: dict[str, Any] = {"a": 3, "b": 2.5, "s": "bedroom", "n": {"x": -1}, "l": [7, 8]}


@pytest.mark.parametrize(
    ("text", "holds"),
    [
        ("a = 3", True), ("a > 3", False), ("a >= 3", True), ("3 < b", False), ("a <> 4", True),
        ("a != 3", False), ("b < a", True), ("a = 0x3", True), ("b = 2.5e0", True),
        ("n.x = -1", True), ("l[1] = 8", True), ("l[2] = 8", False), ("s LIKE 'bed%'", True),
        ("s like '_edroom'", True), ("s LIKE 'bed'", False), ("a LIKE '3'", False),
        ("a BETWEEN 1 AND 3", True), ("a NOT BETWEEN 1 AND 3", False), ("a = '3'", False),
        ("missing = 1", False), ("missing NOT BETWEEN 1 AND 2", False), ("NOT missing = 1", False),
        ("a = 1 OR b > 2 AND s = 'x'", False), ("(a = 1 OR b > 2) AND s > 'x'", False),
        ("NOT a = 1 AND NOT (b > 3)", True), ("a = %0 AND s = %1", True),
    ],
)  # fmt: skip
def test_a_predicate_means_what_sql_says(text: str, holds: bool) -> None:
    assert parse(text).holds(RECORD, ["3", "'bedroom'"]) is holds


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("", "the end at character 1"), ("a >", "the end"), ("a > 1 b", "'b' at character 7"),
        ("1 = 2", "asks about no field"), ("a ; b", "character 2"), ("(a = 1", "instead of ')'"),
        ("1 BETWEEN 2 AND 3", "BETWEEN asks about a field"), ("a NOT 3", "instead of BETWEEN"),
        ("a BETWEEN 1 OR 2", "instead of AND"), ("(" * 50 + "a=1", "deeper than 32"),
        ("a = 1" + " " * 5000, "5005 characters"),
    ],
)  # fmt: skip
def test_what_does_not_parse_is_refused_with_its_place(text: str, place: str) -> None:
    with pytest.raises(ExprError, match=re.escape(place)):
        parse(text)


def test_a_function_is_no_part_of_the_language() -> None:
    with pytest.raises(Unsupported, match=r"inRange\(\)"):
        parse("inRange(property.location, here, radius)")


def test_a_parameter_that_was_not_given_is_an_error() -> None:
    with pytest.raises(ExprError, match="only 1 parameters"):
        parse("a = %1").holds(RECORD, ["1"])


names = st.sampled_from(["a", "b.c", "long_name"])
literals = st.one_of(
    st.integers(-(1 << 60), 1 << 60), st.floats(allow_nan=False, allow_infinity=False), st.text()
).map(Literal)
comparisons = st.builds(
    Comparison,
    names.map(Field),
    st.sampled_from(["=", "<>", "<", "<=", ">", ">=", "LIKE"]),
    literals | names.map(Field),
) | st.builds(Between, names.map(Field), literals, literals, st.booleans())


def _flat(kind: type[And] | type[Or], nodes: list[Node]) -> Node:
    return kind(tuple(node for node in nodes if not isinstance(node, kind)) or tuple(nodes))


trees: st.SearchStrategy[Node] = st.recursive(
    comparisons,
    lambda inner: st.one_of(
        inner.filter(lambda n: not isinstance(n, Not)).map(Not),
        st.lists(inner.filter(lambda n: not isinstance(n, And)), min_size=2, max_size=3).map(
            lambda nodes: And(tuple(nodes))
        ),
        st.lists(inner.filter(lambda n: not isinstance(n, Or)), min_size=2, max_size=3).map(
            lambda nodes: Or(tuple(nodes))
        ),
    ),
    max_leaves=6,
)


@given(trees)
def test_a_tree_reads_back_from_its_own_sql(tree: Node) -> None:
    text = tree.sql()
    if len(text) <= 4096:
        assert parse(text) == tree


@given(st.text("ab%_", max_size=8), st.text("ab", max_size=8))
def test_like_is_a_pattern_over_the_whole_text(pattern: str, text: str) -> None:
    expression = re.escape(pattern).replace("%", ".*").replace("_", ".")
    assert like(text, pattern) is (re.fullmatch(expression, text) is not None)


#: Patterns that are worst for those who go back: each is a text of so many characters.
HOSTILE: dict[str, Callable[[int], str]] = {
    "a literal that is nearly there everywhere": lambda size: "%" + "a" * size + "b%",
    "a % at every other place": lambda size: "%a" * (size // 2) + "b",
    "a % at every other place, and nothing at the end": lambda size: "%a" * (size // 2) + "%b%",
    "nothing but %": lambda size: "%" * size,
    "any character at every place": lambda size: "_" * size,
    "any character everywhere at the beginning": lambda size: "a_" * (size // 2) + "%b",
    "any character everywhere at the end": lambda size: "b%" + "_a" * (size // 2),
    "any character once, which is searched for": lambda size: "%_" + "a" * size + "b%",
    "any character everywhere, which is searched for": lambda size: "%" + "a_" * size + "b%",
    "searches for any character, again and again": lambda size: "%a_ab" * (size // 5) + "%",
}


def seconds_for(text: str, pattern: str) -> float:
    """The least processor time of this thread of several looks."""

    def once() -> float:
        begun = time.thread_time()
        like(text, pattern)
        return time.thread_time() - begun

    return min(once() for _ in range(3))


@pytest.mark.parametrize("kind", HOSTILE)
def test_no_pattern_over_no_text_takes_more_than_their_lengths(kind: str) -> None:
    of = HOSTILE[kind]
    # Eight times as much of both is 64 times the work where each is walked for each of the other.
    short, long = 1 << 14, 1 << 17
    some = seconds_for("a" * short, of(short))
    assert seconds_for("a" * long, of(long)) < 24 * some + 0.01


@pytest.mark.parametrize("size", [MOST_WILD - 2, MOST_WILD * 100])
def test_a_search_for_any_character_costs_so_much_for_each_of_a_text_and_no_more(size: int) -> None:
    pattern, text = "%_" + "a" * size + "b%", "a" * (1 << 18)
    # With a search of eight characters a walk through the text takes some milliseconds.
    assert seconds_for(text, pattern) < MOST_WILD * seconds_for(text, "%_aaaaaab%")
    assert like(text, pattern) is (False if size < MOST_WILD else None)


def test_a_pattern_that_searches_for_much_with_any_character_is_refused() -> None:
    fits = "%" + "x" * (MOST_WILD - 1) + "_%"
    parse(f"s LIKE '{fits}'")
    with pytest.raises(ExprError, match="129 characters between two % with _ among them"):
        parse(f"s LIKE '%x{fits[1:]}'")
    # Both ends of a pattern are not searched for, nor what has no `_`.
    parse("s LIKE '" + "_" * 300 + "%" + "x" * 300 + "%" + "_" * 300 + "'")
    # A pattern in a payload cannot be refused: whether a text fits is unknown.
    assert compiled(parse("a LIKE b"))(SampleFields({"a": "x", "b": f"%x{fits[1:]}"})) is None


@given(st.binary(max_size=40))
def test_a_payload_that_is_no_json_object_is_no_record(payload: bytes) -> None:
    found = json_record(payload)
    assert found is None or json.loads(payload) == found
    assert json_record(b"[" * 100_000) is None
    assert json_record(b'{"a":' * 100_000) is None


LIGHT = parse_type(
    "enum Mode { OFF, ON };"
    "struct Place { double x; };"
    "@final struct Light { octet id; @key long luminosity; string<32> name; Mode mode; short s[2]; "
    "sequence<Place> places; unsigned long long big; boolean on; char c; };"
)


@pytest.mark.parametrize("order", ["<", ">"])
def test_cdr_is_read_by_its_declared_type(order: str) -> None:
    body = struct.pack(order + "BxxxiI4sIhhI", 1, -5, 4, b"abc\0", 1, 6, 7, 1)
    body += b"\0" * (-len(body) % 8) + struct.pack(order + "dQ?c", 2.5, 1 << 40, True, b"z")
    record = LIGHT.record((b"\0\1" if order == "<" else b"\0\0") + b"\0\0" + body)
    assert record == {
        "id": 1, "luminosity": -5, "name": "abc", "mode": "ON", "s": [6, 7],
        "places": [{"x": 2.5}], "big": 1 << 40, "on": True, "c": "z",
    }  # fmt: skip
    assert parse("mode = 'ON' AND luminosity < 0 AND places[0].x = 2.5 OR on = 2").holds(record)


@given(st.binary(max_size=80))
def test_hostile_cdr_is_a_record_or_none(payload: bytes) -> None:
    for head in (b"", b"\0\0\0\0", b"\0\1\0\0"):
        assert LIGHT.record(head + payload) is None or len(payload) > 20


@pytest.mark.parametrize(
    "text", ["", "struct A { };x", "struct A { Foo x; };", "struct A { long; };", "enum A { B };"]
)
def test_what_declares_no_type_is_refused(text: str) -> None:
    if text == "struct A { };x":
        assert parse_type(text).root == "A"
        return
    with pytest.raises(TypeDeclarationError):
        parse_type(text)
