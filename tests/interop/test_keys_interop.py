"""The words beside those of Eclipse Zenoh: every answer that it gives, we give."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tests.keys.oracle import all_expressions, expressions
from zenlake.errors import KeyExprError
from zenlake.keys import KeyExpr, Parameters, Selector

zenoh = pytest.importorskip("zenoh")

pytestmark = pytest.mark.interop

raw = st.text(st.sampled_from("ab*$@/#?é"), max_size=8)
# Eclipse Zenoh also drops every `=` and `|` at the end of the text, and with them the padding of a
# base64 value; we keep them.
pairs = st.text(st.sampled_from("ab=;|%"), max_size=12).map(lambda text: text.rstrip(";=|"))


@settings(max_examples=1000)
@given(raw)
def test_the_same_texts_are_key_expressions(text: str) -> None:
    assert ours(text) == theirs(zenoh.KeyExpr, text)


@settings(max_examples=1000)
@given(raw)
def test_the_same_canonical_form_is_reached(text: str) -> None:
    # Eclipse Zenoh 1.10.2 panics where `$*$*` follows other characters of a chunk.
    assume("$*$*" not in text)
    try:
        mine: str | None = str(KeyExpr.autocanonize(text))
    except KeyExprError:
        mine = None
    assert mine == theirs(zenoh.KeyExpr.autocanonize, text)


def test_every_small_pair_relates_as_in_eclipse_zenoh() -> None:
    every = [(KeyExpr(text), zenoh.KeyExpr(text)) for text in all_expressions(2)]
    wrong = [
        (str(a), str(b))
        for a, their_a in every
        for b, their_b in every
        if a.intersects(b) is not their_a.intersects(their_b)
        or includes_as_eclipse(a, b) is not their_a.includes(their_b)
    ]
    assert wrong == []


@settings(max_examples=1000)
@given(expressions(5), expressions(5))
def test_any_pair_relates_as_in_eclipse_zenoh(a: str, b: str) -> None:
    their_a, their_b = zenoh.KeyExpr(a), zenoh.KeyExpr(b)
    assert KeyExpr(a).intersects(b) is their_a.intersects(their_b)
    if their_a.includes(their_b):
        assert KeyExpr(a).includes(b)
    assert includes_as_eclipse(KeyExpr(a), KeyExpr(b)) is their_a.includes(their_b)


@given(expressions(3), raw)
def test_joining_and_concatenating_agree(a: str, b: str) -> None:
    assume("$*$*" not in f"{a}{b}" and "$*$*" not in f"{a}/{b}")
    for name in ("join", "concat"):
        try:
            mine: str | None = str(getattr(KeyExpr(a), name)(b))
        except KeyExprError:
            mine = None
        assert mine == theirs(getattr(zenoh.KeyExpr(a), name), b)


@given(expressions())
def test_keys_show_and_hash_alike(text: str) -> None:
    mine, their = KeyExpr(text), zenoh.KeyExpr(text)
    assert (str(mine), repr(mine), hash(mine)) == (str(their), repr(their), hash(their))


@given(pairs, st.sampled_from(["a", "b", "ab", "", "z"]), pairs)
def test_parameters_are_read_and_edited_alike(text: str, key: str, other: str) -> None:
    mine, their = Parameters(text), zenoh.Parameters(text)
    assert list(mine) == list(their)
    assert mine.get(key, "d") == their.get(key, "d")
    assert mine[key] == their[key]
    assert mine.values(key) == their.values(key)
    assert (key in mine) == (key in their)
    assert mine.is_empty() == their.is_empty()
    assert bool(mine) == bool(their)
    assert mine.is_ordered() == their.is_ordered()
    assert (str(mine), repr(mine)) == (str(their), repr(their))
    assert mine.insert(key, "1|2") == their.insert(key, "1|2")
    assert str(mine) == str(their)
    mine.extend(other)
    their.extend(other)
    assert str(mine) == str(their)
    assert mine.remove(key) == their.remove(key)
    assert str(mine) == str(their)


@given(expressions(3), pairs)
def test_selectors_are_cut_alike(key: str, parameters: str) -> None:
    text = f"{key}?{parameters}"
    mine, their = Selector(text), zenoh.Selector(text)
    assert (str(mine), repr(mine)) == (str(their), repr(their))
    assert str(mine.key_expr) == str(their.key_expr)
    assert str(mine.parameters) == str(their.parameters)


def ours(text: str) -> str | None:
    try:
        return str(KeyExpr(text))
    except KeyExprError:
        return None


def theirs(make: Callable[[str], object], text: str) -> str | None:
    try:
        return str(make(text))
    except zenoh.ZError:
        return None


def includes_as_eclipse(a: KeyExpr, b: KeyExpr) -> bool:
    """Inclusion as Eclipse Zenoh decides it: a `*` never helps a `**` to cover a `**`.

    It says that `*/**` does not include `**/x`, though every key that ends in `x` has a chunk.
    """
    if not a.includes(b):
        return False
    return _covers(a.chunks, b.chunks)


def _covers(a: tuple[str, ...], b: tuple[str, ...]) -> bool:
    if not a:
        return not b
    if a[0] == "**":
        swallow = bool(b) and not b[0].startswith("@") and _covers(a, b[1:])
        return _covers(a[1:], b) or swallow
    if not b or b[0] == "**":
        return False
    return KeyExpr(a[0]).includes(b[0]) and _covers(a[1:], b[1:])
