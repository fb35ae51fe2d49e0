from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zenlake.routing.keyids import INVENTED, KeyIds, literal_prefix
from zenlake.routing.resources import merged
from zenlake.transport.budget import MemoryAccount


@pytest.mark.parametrize(
    ("key", "prefix"),
    [
        ("demo/**", "demo"),
        ("demo/a", "demo/a"),
        ("a/b/*/c", "a/b"),
        ("a/b$*/c", "a"),
        ("**", ""),
        ("*/a", ""),
        ("b$*", ""),
    ],
)
def test_the_chunks_before_a_wildcard_are_worth_a_number(key: str, prefix: str) -> None:
    assert literal_prefix(key) == prefix


def test_the_longest_known_prefix_is_used_and_theirs_before_mine() -> None:
    ids = KeyIds(MemoryAccount())
    assert ids.shortest("a/b/c") == (0, True, "a/b/c")
    mine = ids.invent("a")
    assert ids.shortest("a/b/c") == (mine, True, "/b/c")
    ids.learn(9, "a/b")
    assert ids.shortest("a/b/c") == (9, False, "/c")
    ids.learn(8, "a")
    assert ids.shortest("a/x") == (8, False, "/x")
    assert ids.shortest("ab") == (0, True, "ab")
    ids.forget(9)
    assert ids.shortest("a/b/c") == (8, False, "/b/c")
    ids.forget(9)


def test_numbers_of_mine_avoid_theirs_and_end_at_sixteen_bits() -> None:
    ids = KeyIds(MemoryAccount())
    ids.learn(1, "x")
    ids.learn(2, "y")
    assert ids.invent("a") == 3
    assert ids.invent("b") == 4
    ids.forget(2)
    assert ids.invent("c") == 5  # numbers that were taken are not looked through again
    full = KeyIds(MemoryAccount())
    for number in range(1, 0x10000):
        assert full.invent(f"k/{number}") == number
    assert full.invent("one too many") == 0
    assert full.resolve(0xFFFF, False, "/x") == "k/65535/x"


def test_numbers_of_mine_end_at_their_bytes_too() -> None:
    ids = KeyIds(MemoryAccount())
    assert ids.invent("1" * (INVENTED - 2)) == 1
    assert ids.invent("123") == 0


@given(st.lists(st.tuples(st.integers(0, 3), st.booleans()), min_size=1, max_size=6))
def test_queryables_of_a_key_are_as_good_as_the_best(infos: list[tuple[int, bool]]) -> None:
    found = merged([distance << 8 | complete for distance, complete in infos])
    complete = any(complete for _, complete in infos)
    assert found & 1 == complete
    assert found >> 8 == min(distance for distance, whole in infos if whole == complete)


keys = st.lists(st.sampled_from(["a", "b", "c"]), min_size=1, max_size=4).map("/".join)


@given(st.lists(st.tuples(st.booleans(), keys), max_size=10), keys)
def test_what_is_written_with_a_number_is_read_as_the_same_key(
    known: list[tuple[bool, str]], key: str
) -> None:
    here, there = KeyIds(MemoryAccount()), KeyIds(MemoryAccount())
    for mine, prefix in known:
        one, other = (here, there) if mine else (there, here)
        number = one.invent(prefix)
        assert number
        other.learn(number, prefix)
    scope, mapping, suffix = here.shortest(key)
    assert there.resolve(scope, mapping, suffix) == key
