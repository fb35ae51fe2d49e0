from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.keys.oracle import all_expressions, expressions, keys, keys_of
from tests.steps import steps
from zenlake.errors import KeyExprError
from zenlake.keys.matching import (
    canonize,
    check,
    chunk_includes,
    chunk_intersects,
    includes,
    intersects,
    is_wild,
)

GOLDEN = Path(__file__).parent.parent / "golden"
CONSTRUCTION = json.loads((GOLDEN / "keyexpr_construction.json").read_text("utf-8"))["cases"]
PAIRS = json.loads((GOLDEN / "keyexpr_pairs.json").read_text("utf-8"))["cases"]


@pytest.mark.parametrize("case", CONSTRUCTION, ids=lambda case: case["input"] or "(empty)")
def test_construction_is_as_recorded(case: dict[str, str | None]) -> None:
    text = case["input"]
    assert text is not None
    if case["canonical"] is None:
        with pytest.raises(KeyExprError, match=r"write|use"):
            check(text)
    else:
        check(text)
    if case["autocanonize"] is None:
        with pytest.raises(KeyExprError, match=r"write|use"):
            canonize(text)
    else:
        assert canonize(text) == case["autocanonize"]


@pytest.mark.parametrize("case", PAIRS, ids=lambda case: f"{case['a']} {case['b']}")
def test_pairs_relate_as_recorded(case: dict[str, str | bool]) -> None:
    a, b = str(case["a"]), str(case["b"])
    assert intersects(a, b) is case["intersects"]
    assert intersects(b, a) is case["intersects"]
    assert includes(a, b) is case["a_includes_b"]
    assert includes(b, a) is case["b_includes_a"]


@pytest.mark.parametrize(
    ("text", "advice"),
    [
        ("a**/b", "'**' must fill a whole chunk; write 'a/**/b' or 'a$*/**/b'"),
        ("a**b", "write 'a/**/b' or 'a$*/**/$*b'"),
        ("a/b*", "'*' must fill a whole chunk; write 'a/b$*'"),
        ("*$*", "write '*'"),
        ("***", "write '*' for one chunk, '**' for any number"),
        ("/a//b/", "write 'a/b'"),
        ("", "'**' for every key"),
        ("a?x=1", "use Selector"),
        ("a#", "'#' is not allowed"),
        ("a$b", "'$' is only allowed in '$*'"),
        ("a/**/*", "write 'a/*/**'"),
        ("a/$*", "write 'a/*'"),
        ("a$*$*b", "write 'a$*b'"),
        ("\ud800", "half a surrogate pair"),
    ],
)
def test_a_refusal_says_what_to_write_instead(text: str, advice: str) -> None:
    with pytest.raises(KeyExprError) as refusal:
        check(text)
    assert advice in str(refusal.value)


@given(st.text(st.sampled_from("a*$@"), max_size=8))
def test_what_a_refusal_proposes_for_a_star_is_accepted(text: str) -> None:
    try:
        canonize(text)
    except KeyExprError as refusal:
        message = str(refusal)
        if "must fill a whole chunk" in message:
            for proposal in message.split("write ")[-1].split(" or "):
                canonize(proposal.strip("'"))


def test_double_star_absorbs_nothing_too() -> None:
    assert intersects("a/**/b", "a/b")
    assert includes("a/**", "a")


def test_a_wildcard_never_matches_a_verbatim_chunk() -> None:
    assert not intersects("**", "a/@b")
    assert not intersects("$*@b", "@b")
    assert not includes("**", "**/@b")
    assert not intersects("@$*", "@b")
    assert includes("@$*", "@$*")


def test_a_verbatim_chunk_with_a_star_is_not_wild() -> None:
    assert not is_wild("a/@$*")
    assert is_wild("@$*/$*a")
    assert not is_wild("a/b")


def test_inclusion_counts_the_chunks_that_a_star_beside_a_double_star_needs() -> None:
    assert includes("*/**", "**/x")
    assert includes("a/*/*/**", "a/**/b/**/c")
    assert not includes("*/*/**", "**/x")
    assert not includes("*/**", "**")


def test_chunk_patterns_overlap_where_their_ends_agree() -> None:
    assert chunk_intersects("ab$*", "a$*c")
    assert not chunk_intersects("ab$*", "b$*")
    assert not chunk_intersects("$*ab", "$*b$*c")
    assert not chunk_intersects("a$*a", "a")
    assert chunk_includes("a$*", "a$*b$*")
    assert not chunk_includes("a$*b", "a$*")
    assert not chunk_includes("$*a", "*")


def test_every_small_pair_relates_as_its_sets_of_keys_do() -> None:
    every = [(expr, keys_of(expr)) for expr in all_expressions(3)]
    assert len(every) > 400
    wrong = [
        (a, b)
        for a, keys_a in every
        for b, keys_b in every
        if intersects(a, b) is not bool(keys_a & keys_b)
        or includes(a, b) is not (keys_b & ~keys_a == 0)
    ]
    assert wrong == []


@given(expressions(), expressions())
def test_no_key_contradicts_the_answers(a: str, b: str) -> None:
    keys_a, keys_b = keys_of(a), keys_of(b)
    if keys_a & keys_b:
        assert intersects(a, b)
    if includes(a, b):
        assert keys_b & ~keys_a == 0


@given(expressions(), expressions())
def test_long_expressions_relate_as_short_ones_do(a: str, b: str) -> None:
    # The same literal tail on both sides changes no answer, and makes them long.
    tail = "/@end" + "/t" * 70
    assert intersects(a + tail, b + tail) == intersects(a, b)
    assert includes(a + tail, b + tail) == includes(a, b)


@given(expressions(), expressions())
def test_intersection_is_symmetric_and_inclusion_implies_it(a: str, b: str) -> None:
    assert intersects(a, b) == intersects(b, a)
    if includes(a, b):
        assert intersects(a, b)
        assert a == b or not includes(b, a)


@given(expressions(4), expressions(4), expressions(4))
def test_inclusion_is_transitive_and_carries_intersection(a: str, b: str, c: str) -> None:
    if includes(a, b):
        if includes(b, c):
            assert includes(a, c)
        if intersects(b, c):
            assert intersects(a, c)


@given(expressions(), keys())
def test_a_key_is_included_where_it_intersects(expr: str, key: str) -> None:
    assert includes(expr, key) == intersects(expr, key)


@given(st.lists(st.sampled_from(["*", "**", "a", "$*", "a$*$*", "@a"]), min_size=1, max_size=4))
def test_canonizing_keeps_the_keys_and_is_done_after_once(chunks: list[str]) -> None:
    text = "/".join(chunks)
    canonical = canonize(text)
    check(canonical)
    assert canonize(canonical) == canonical
    assert keys_of(canonical) == keys_of(text)


@given(st.text(max_size=12))
def test_any_text_is_accepted_or_refused_and_nothing_else(text: str) -> None:
    try:
        canonical = canonize(text)
    except KeyExprError:
        with pytest.raises(KeyExprError):
            check(text)
    else:
        check(canonical)
        assert includes(canonical, canonical)


@pytest.mark.parametrize(
    ("a", "b", "meet"),
    [
        ("**/a/" * 60 + "**", "**/b/" * 60 + "**", True),
        ("**/a/" * 60 + "c", "a/" * 200 + "b", False),
        ("**/" + "a/" * 200 + "b", "a/" * 2000 + "a", False),
        ("a$*" * 200 + "b", "a" * 2000, False),
        ("$*a" * 200, "$*b" * 200, False),
        ("**/" + "*/" * 100 + "a$*b", "a/" * 1000 + "a", False),
        ("**/" + "a/" * 10_000 + "b/**", "a/" * 32_000 + "a", False),
        ("*/" * 15_000 + "**/a", "**/a/" * 10_000 + "a", True),
    ],
    ids=range(8),
)
def test_hostile_expressions_are_answered_in_linear_time(a: str, b: str, meet: bool) -> None:
    a, b = canonize(a), canonize(b)
    most = 10 * (len(a) + len(b))
    assert steps(intersects, a, b) < most
    assert steps(includes, a, b) < most
    assert steps(includes, b, a) < most
    assert intersects(a, b) is meet
    assert not includes(a, b)
    assert not includes(b, a)
