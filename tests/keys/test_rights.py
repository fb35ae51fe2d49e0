"""What a user may read and write, as it goes over a socket and into a file."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zenlake.errors import LocalError
from zenlake.keys.readable import ALL_KEYS, ReadableChoice, ReadableKeys
from zenlake.keys.rights import ALL_RIGHTS, Rights, in_order

EXPRS = st.sampled_from(["a", "a/**", "*/b", "secret/**", "view/leak/**"])
LISTS = st.lists(EXPRS, max_size=3).map(tuple)
CHOICES = st.builds(ReadableChoice, st.none() | LISTS, LISTS)
KEYS = st.builds(ReadableKeys, st.lists(st.lists(CHOICES, max_size=3).map(tuple)).map(tuple))


@given(st.builds(Rights, KEYS, KEYS))
def test_rights_come_back_as_they_were_written(rights: Rights) -> None:
    assert Rights.of(rights.plain()) == rights


@given(KEYS, EXPRS)
def test_their_order_lets_the_same_keys_through(keys: ReadableKeys, key: str) -> None:
    assert in_order(keys).lets(key) == keys.lets(key)
    turned = ReadableKeys(
        tuple(
            tuple(
                ReadableChoice(None if one.allowed is None else one.allowed[::-1], one.denied[::-1])
                for one in reversed(choices)
            )
            for choices in reversed(keys.demands)
        )
    )
    assert in_order(turned) == in_order(keys)


@given(KEYS, KEYS, EXPRS)
def test_both_allow_what_each_allows(a: ReadableKeys, b: ReadableKeys, key: str) -> None:
    both = Rights(a).both(Rights(b, a))
    assert both.readable.lets(key) == (a.lets(key) and b.lets(key))
    assert both.writable.lets(key) == a.lets(key)


def test_only_all_of_both_is_unrestricted() -> None:
    some = ReadableKeys(((ReadableChoice(None, ("a",)),),))
    assert ALL_RIGHTS.unrestricted
    assert not Rights(some, ALL_KEYS).unrestricted
    assert not Rights(ALL_KEYS, some).unrestricted


@pytest.mark.parametrize("plain", [{}, {"readable": "W10"}, {"readable": 1, "writable": "W10"},
                                   {"readable": "?", "writable": "W10"}])  # fmt: skip
def test_anything_else_gives_no_rights(plain: dict[str, Any]) -> None:
    with pytest.raises(LocalError, match="no rights of a user"):
        Rights.of(plain)
