from __future__ import annotations

import base64
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.keys.oracle import expressions
from zenlake.errors import SelectorError
from zenlake.keys import Parameters
from zenlake.keys.matching import is_wild
from zenlake.keys.readable import (
    ALL_KEYS,
    MOST_EXPRESSIONS,
    READABLE,
    ReadableChoice,
    ReadableKeys,
    asks_of_many,
)
from zenlake.lake.model.row_access import RowAccess

exprs = st.lists(expressions(3), max_size=2).map(tuple)
choices = st.builds(ReadableChoice, st.none() | exprs, exprs)
readable_keys = st.builds(
    ReadableKeys, st.lists(st.lists(choices, max_size=2).map(tuple), max_size=2).map(tuple)
)


@given(readable_keys, readable_keys, expressions(3))
def test_each_that_says_it_takes_keys_away(
    first: ReadableKeys, second: ReadableKeys, key: str
) -> None:
    said = Parameters(second.restrict(first.restrict("_agg=count(*)")))
    both = ReadableKeys.in_parameters(said)
    assert both.lets(key) is (first.lets(key) and second.lets(key))
    assert said.get("_agg") == "count(*)"


@given(readable_keys, expressions(3).filter(lambda key: not is_wild(key)))
def test_spark_sees_the_same_keys(readable: ReadableKeys, key: str) -> None:
    pattern = RowAccess().asked_by(readable).pattern()
    assert bool(re.search(pattern, key)) is readable.lets(key)


def test_what_is_granted_lacks_only_what_a_rule_denies() -> None:
    readable = ReadableKeys(
        ((ReadableChoice(("a/**",), ("a/secret",)),), (ReadableChoice(("b/**",)),), ())
    )
    assert not readable.lets("b/x")
    assert readable.granted().lets("b/x")
    assert not readable.granted().lets("a/secret")
    assert ALL_KEYS.unrestricted
    assert ReadableKeys(((),)).granted().unrestricted
    assert not ReadableKeys(((),)).lets("a")


def test_routers_and_lakes_of_any_version_write_it_alike() -> None:
    readable = ReadableKeys(((ReadableChoice(("a/**",), ("a/secret",)), ReadableChoice(None)),))
    # [[[["a/**"],["a/secret"]],[null,[]]]] in base64 without its end.
    said = "_readable=W1tbWyJhLyoqIl0sWyJhL3NlY3JldCJdXSxbbnVsbCxbXV1dXQ;_sql=x"
    assert readable.restrict("_sql=x") == said
    assert ReadableKeys.in_parameters(Parameters(said)) == readable


@pytest.mark.parametrize(
    "value", ["", "*", "W1tb", "W1sxXV0", "bnVsbA", base64.b64encode(b'[[[["a//b"],[]]]]').decode()]
)
def test_what_no_router_wrote_is_refused(value: str) -> None:
    with pytest.raises(SelectorError, match="routers write it"):
        ReadableKeys.in_parameters(Parameters(f"{READABLE}={value}"))


def test_so_many_expressions_are_refused() -> None:
    keys = tuple(f"k/{n}" for n in range(MOST_EXPRESSIONS + 1))
    text = ReadableKeys(((ReadableChoice(keys),),)).restrict("")
    with pytest.raises(SelectorError, match="write rules of access control with wildcards"):
        ReadableKeys.in_parameters(Parameters(text))


@pytest.mark.parametrize(
    ("key", "parameters", "many"),
    [
        ("robot/**", "", False),
        ("robot/**", "_x=1", False),
        ("robot/**", "a=1;_agg=count(*)", True),
        ("robot/1", "_time=[now(-1h)..]", True),
        ("@lake/sql", "", True),
        ("@journal/j/rows/**", "", True),
        ("@/local/router/journal/j/ledger", "", True),
        ("@lakes/x", "", False),
    ],
)
def test_questions_whose_answers_may_tell_of_many_keys(
    key: str, parameters: str, many: bool
) -> None:
    assert asks_of_many(key, parameters) is many
