from __future__ import annotations

import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.keys.oracle import KEYS, expressions, keys
from tests.routing.policies import policy_of
from zenlake.keys.matching import check, includes
from zenlake.routing.policy import Namespace

prefixes = keys(2)


def test_keys_get_the_prefix_on_their_way_out_and_lose_it_on_their_way_in() -> None:
    space = Namespace("site/a")
    assert space.outside("pose") == "site/a/pose"
    assert space.inside("site/a/pose") == "pose"


@pytest.mark.parametrize("key", ["site/b/pose", "site/a", "site/ab/pose", "pose", "*/b/**", "site"])
def test_keys_outside_are_invisible(key: str) -> None:
    assert Namespace("site/a").inside(key) is None


@pytest.mark.parametrize(
    ("key", "inside"),
    [
        ("**", "**"),
        ("**/b", "**/b"),
        ("*/b", None),
        ("*/a/b", "b"),
        ("s$*e/a/b", "b"),
        ("site/**", "**"),
        ("site/*/**", "**"),
        ("site/a/**", "**"),
        ("*/**", "**"),
        ("*/*/**", "**"),
        ("*/*/*/**", "*/**"),
        ("**/a", "**/a"),
        ("site/*", None),
    ],
)
def test_wildcards_of_the_outside_reach_in(key: str, inside: str | None) -> None:
    assert Namespace("site/a").inside(key) == inside


def test_wildcards_do_not_reach_into_a_namespace_that_begins_with_an_at_sign() -> None:
    assert Namespace("@site").inside("**") is None
    assert Namespace("@site").inside("*/a") is None
    assert Namespace("@site").inside("@site/*") == "*"
    assert Namespace("@site").inside("**/@site/a") == "a"


@given(prefixes, expressions(4))
def test_what_goes_out_comes_back_in(prefix: str, key: str) -> None:
    space = Namespace(prefix)
    check(space.outside(key))
    assert space.inside(space.outside(key)) == key


@given(prefixes, expressions(4))
def test_what_is_seen_inside_is_there_outside(prefix: str, key: str) -> None:
    space = Namespace(prefix)
    seen = space.inside(key)
    if seen is None:
        return
    check(seen)
    for name in KEYS[1:600]:
        if includes(seen, name):
            assert includes(key, space.outside(name))


@given(prefixes, st.sampled_from(KEYS[1:]))
def test_a_plain_key_is_visible_if_it_has_the_prefix(prefix: str, key: str) -> None:
    # A `$*` after an @ is plain text.
    seen = Namespace(prefix).inside(key)
    assert seen == (key[len(prefix) + 1 :] if key.startswith(prefix + "/") else None)


def test_long_keys_full_of_wildcards_are_cut_at_once() -> None:
    key = "/".join(["**", "a"] * 5000)
    assert Namespace("/".join(["a"] * 50)).inside(key) == key


def test_it_is_the_configurations() -> None:
    assert policy_of().namespace is None
    assert policy_of(namespace="site/a").namespace == Namespace("site/a")


def test_it_is_a_value() -> None:
    space = Namespace("a")
    assert pickle.loads(pickle.dumps(space)) == space
    assert len({space, Namespace("a"), Namespace("b")}) == 2
    assert repr(space) == "Namespace('a')"
