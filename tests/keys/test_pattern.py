"""A regular expression finds exactly the keys of its key expression."""

from __future__ import annotations

import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.keys.oracle import expressions
from tests.keys.oracle import keys as few_keys
from zenlake.errors import KeyExprError
from zenlake.keys import KeyExpr, intersects, is_wild
from zenlake.keys.pattern import END, pattern_of, prefix_of

LETTERS = st.text(st.sampled_from("ab@.\\EQ+()[]{}|^&~-!é\n\r\u2028😀 '\""), min_size=1, max_size=4)
CHUNKS = LETTERS | st.sampled_from(["a", "b", "ab", "@a", "@$*", "a\n", "\\E", "\\Q", "$", "\\"])
WILD = st.sampled_from(["*", "**", "a$*", "$*b", "$*.$*", "$*\\$*", "@$*", "$*\n", "\\$*"])


def canonical(text: str) -> str | None:
    try:
        return str(KeyExpr.autocanonize(text))
    except KeyExprError:
        return None


def joined(chunks: st.SearchStrategy[str], most: int) -> st.SearchStrategy[str]:
    texts = st.lists(chunks, min_size=1, max_size=most).map("/".join).map(canonical)
    return texts.filter(lambda text: text is not None).map(str)


EXPRESSIONS = joined(CHUNKS | WILD, 4) | expressions(4)
KEYS = (joined(CHUNKS, 5) | few_keys(4)).filter(lambda key: not is_wild(key))

# What an expression meets and what it does not, in each of its forms.
TOLD = [
    ("**", "a", True),
    ("**", "a/@b", False),
    ("*", "@a", False),
    ("a/**", "a", True),
    ("a/**/b", "a/b", True),
    ("a/**/b", "a/@c/b", False),
    ("**/a", "a", True),
    ("**/a", "ba", False),
    ("a", "a\n", False),
    ("*", "a\n", True),
    ("a$*", "a", True),
    ("$*a", "@a", False),
    ("@$*", "@$*", True),
    ("@$*", "@a", False),
    ("a.c", "abc", False),
    ("\\E$*", "\\Eb", True),
    ("$*\\$*", "a\\", True),
    ("$*\\$*", "a", False),
    ("a/b", "a/b/c", False),
    ("b", "a/b", False),
]


@pytest.mark.parametrize(("expr", "key", "met"), TOLD)
def test_an_expression_meets_its_keys_alone(expr: str, key: str, met: bool) -> None:
    assert (re.search(f"^{pattern_of(expr)}{END}", key) is not None) is met
    assert intersects(expr, key) is met


@given(EXPRESSIONS, KEYS)
@example("a/**", "a")
def test_a_pattern_finds_the_keys_of_its_expression(expr: str, key: str) -> None:
    assert (re.search(f"^{pattern_of(expr)}{END}", key) is not None) == intersects(expr, key)


@given(EXPRESSIONS, KEYS)
def test_every_key_of_an_expression_begins_as_it_does(expr: str, key: str) -> None:
    assert key.startswith(prefix_of(expr)) or not intersects(expr, key)
