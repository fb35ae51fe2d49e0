from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zenlake.keys.asker import LONGEST, named_asker, with_asker
from zenlake.keys.parameters import Parameters

items = st.sampled_from(
    ["", "a=1", "_asker", "_asker=me", "_asker=you;_asker", "_sql=x", "_time=[a;1s]", "_askers=3"]
)
written = st.lists(items, max_size=6).map(";".join)


@given(st.sampled_from(["@lake/sql", "robot/**"]), written)
def test_only_the_last_router_names_an_asker_and_nothing_else_changes(
    key: str, parameters: str
) -> None:
    said = with_asker(key, parameters, "of the router")
    assert named_asker(said) in ("of the router", "")
    assert "me" not in named_asker(said)
    kept = [pair for pair in Parameters(parameters) if pair[0] != "_asker"]
    assert [pair for pair in Parameters(said) if pair[0] != "_asker"] == kept
    assert with_asker(key, said, "of the router") == said


@pytest.mark.parametrize(
    ("key", "parameters", "said"),
    [
        ("@lake/sql", "", "_asker=x"),
        ("@lake/sql", "_sql=SELECT 1", "_asker=x;_sql=SELECT 1"),
        ("@journal/j/rows/**", "", "_asker=x"),
        ("@/local/router", "", "_asker=x"),
        ("robot/**", "_time=[now(-1h);5m]", "_asker=x;_time=[now(-1h);5m]"),
        ("robot/**", "_asker=me;_limit=1", "_asker=x;_limit=1"),
        # Only applications and storages answer these: they see what the asker wrote.
        ("robot/**", "", ""),
        ("robot/**", "speed=3;;x", "speed=3;;x"),
        ("robot/**", "_max=10", "_max=10"),
        ("robot/**", "_asker=me", ""),
    ],
)
def test_an_asker_is_named_where_a_lake_may_answer(key: str, parameters: str, said: str) -> None:
    assert with_asker(key, parameters, "x") == said


def test_of_a_name_only_so_much_is_looked_at() -> None:
    assert named_asker("a=1;_asker=" + "x" * 1000) == "x" * LONGEST
    assert named_asker("_askers=x;a=_asker") == ""
