from __future__ import annotations

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from zenlake.errors import ZError
from zenlake.keys import KeyExpr
from zenlake.xrce.names import canonical, matches
from zenlake.xrce_io.translate import is_key, key_exprs, paths


@pytest.mark.parametrize(
    ("path", "found"),
    [
        ("a/b", ["a/b"]), ("a/*", ["a/*"]), ("ab*", ["ab$*"]), ("*ab", ["$*ab"]),
        ("a*b", ["a$*b"]), ("a?b", ["a$*b"]), ("a/**/b", ["a/*/**/b"]), ("a/**", ["a/*/**"]),
        ("**/b", ["*/**/b"]), ("**", ["**"]), ("a**b", ["a$*/**/$*b", "a$*b"]),
    ],
)  # fmt: skip
def test_a_path_is_these_key_expressions(path: str, found: list[str]) -> None:
    assert key_exprs(path) == found


@pytest.mark.parametrize(
    ("key", "found"),
    [
        ("a/**/b", ["a/b", "a/**/b"]), ("a/**", ["a", "a/**"]), ("**", ["**"]),
        ("a$*/b", ["a*/b"]), ("@/x", []), ("a/*", ["a/*"]),
    ],
)  # fmt: skip
def test_a_key_expression_is_these_paths(key: str, found: list[str]) -> None:
    assert paths(key) == found


def test_what_cannot_be_a_key_is_known() -> None:
    assert [is_key(path) for path in ("a/b", "@a/b", "a/@b", "a?")] == [True, False, False, True]


chunks = st.lists(st.sampled_from(["a", "b", "*", "**"]), min_size=1, max_size=3).map("".join)
patterns = st.lists(chunks, min_size=1, max_size=4).map("/".join).map(canonical)
names = st.lists(st.text("ab", min_size=1, max_size=3), min_size=1, max_size=4).map("/".join)


@given(patterns, names)
def test_both_worlds_agree_what_a_path_means(pattern: str, name: str) -> None:
    there = any(KeyExpr(expr).intersects(KeyExpr(name)) for expr in key_exprs(pattern))
    assert there == matches(pattern, name)


words = st.sampled_from(["a", "b", "*", "**", "a$*", "$*b"])


@given(st.lists(words, min_size=1, max_size=4).map("/".join), names)
def test_both_worlds_agree_what_a_key_expression_means(text: str, name: str) -> None:
    try:
        key = KeyExpr.autocanonize(text)
    except ZError:
        assume(False)
    here = any(matches(canonical(path), name) for path in paths(str(key)))
    assert here == key.intersects(KeyExpr(name))
