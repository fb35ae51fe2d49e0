from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.keys.oracle import keys
from tests.steps import steps
from zenlake.errors import KeyExprError
from zenlake.keys import KeyFormat

POSE = KeyFormat("robot/${id:*}/${topic:**}")


def test_a_format_builds_and_reads_keys() -> None:
    key = POSE.build(id=12, topic="arm/left")
    assert key == "robot/12/arm/left"
    assert POSE.parse(key) == {"id": "12", "topic": "arm/left"}
    assert POSE.build({"id": "12"}, topic="x") == "robot/12/x"


def test_a_part_that_may_match_nothing_may_be_empty() -> None:
    assert POSE.parse("robot/12") == {"id": "12", "topic": ""}
    assert POSE.build(id=12, topic="") == "robot/12"
    with pytest.raises(KeyExprError, match="every part is empty"):
        KeyFormat("${a:**}").build(a="")


def test_a_format_gives_the_expression_of_its_keys() -> None:
    assert POSE.key_expr == "robot/*/**"
    assert KeyFormat("${a:**}/${b:*}").key_expr == "*/**"
    assert KeyFormat("a/b").key_expr == "a/b"
    assert POSE.names == ("id", "topic")


def test_defaults_fill_what_is_left_out() -> None:
    fleet = KeyFormat("${site:*#home}/robot/${id:*}")
    assert fleet.build(id=1) == "home/robot/1"
    assert fleet.build(id=1, site="away") == "away/robot/1"
    assert KeyFormat("a/${rest:**#}").build() == "a"


def test_wildcards_may_be_built_and_read_where_patterns_include_them() -> None:
    assert POSE.build(id="*", topic="**") == "robot/*/**"
    assert POSE.parse("robot/*/a/**") == {"id": "*", "topic": "a/**"}
    assert not POSE.matches("**")


def test_the_leftmost_part_takes_as_much_as_the_rest_can_spare() -> None:
    assert KeyFormat("${a:**}/-/${b:**}").parse("x/-/-/y") == {"a": "x/-", "b": "y"}
    assert KeyFormat("${a:**}/${b:**}").parse("x/y") == {"a": "x/y", "b": ""}
    assert KeyFormat("${a:**}/${b:*}/${c:*}").parse("1/2/3/4") == {"a": "1/2", "b": "3", "c": "4"}


def test_a_verbatim_chunk_between_two_double_stars_leaves_one_way() -> None:
    found = KeyFormat("${a:**}/@sep/${b:**}").parse("x/@sep/y/z")
    assert found == {"a": "x", "b": "y/z"}
    assert not KeyFormat("${a:**}/@sep/${b:**}").matches("x/@sep/@sep/y")


def test_patterns_may_span_chunks_and_hold_literals() -> None:
    arm = KeyFormat("${arm:arm$*/*}/$#{rest:x}y/**}#")
    assert arm.parse("arm7/left/x}y/z") == {"arm": "arm7/left", "rest": "x}y/z"}
    assert not arm.matches("leg7/left/x}y")


@pytest.mark.parametrize(
    ("text", "advice"),
    [
        ("", "at least one character"),
        ("a//${b:*}", "write 'a'"),
        ("${a:*}//${b:*}", "no chunk"),
        ("${a:*}/", "no chunk"),
        ("/${a:*}", "no chunk"),
        ("x${a:*}", "write '/' before it"),
        ("${a:*}x", "write '/' after it"),
        ("${a}", r"like '\$\{id:\*\}'"),
        ("${:*}", r"like '\$\{id:\*\}'"),
        ("${a:}", r"like '\$\{id:\*\}'"),
        ("${a:*", "not closed"),
        ("a/*/${b:*}", "only parts may hold wildcards"),
        ("${a:*}/${a:*}", "name each differently"),
        ("${a:**/*}", r"write '\*/\*\*'"),
        ("${a:x$*#y}", "not included in"),
    ],
)
def test_a_malformed_format_says_how_to_write_it(text: str, advice: str) -> None:
    with pytest.raises(KeyExprError, match=advice):
        KeyFormat(text)


def test_a_wrong_part_is_refused_by_name() -> None:
    with pytest.raises(KeyExprError, match="no part 'topics'; its parts are 'id', 'topic'"):
        POSE.build(id=1, topics="x")
    with pytest.raises(KeyExprError, match="part 'topic' has no value"):
        POSE.build(id=1)
    with pytest.raises(KeyExprError, match="part 'id' cannot be 'a/b'"):
        POSE.build(id="a/b", topic="x")
    with pytest.raises(KeyExprError, match="part 'id' cannot be ''"):
        POSE.build(id="", topic="x")
    with pytest.raises(KeyExprError, match="write 'a/b'"):
        POSE.build(id="1", topic="a//b")
    with pytest.raises(KeyExprError, match=r"its keys are those of 'robot/\*/\*\*'"):
        POSE.parse("robot")


def test_formats_are_values() -> None:
    assert KeyFormat("a/${b:*}") == KeyFormat("a/${b:*}")
    assert len({KeyFormat("a/${b:*}"), KeyFormat("a/${b:*}")}) == 1
    assert KeyFormat("a") != "a"
    assert str(POSE) == "robot/${id:*}/${topic:**}"
    assert repr(POSE) == "KeyFormat('robot/${id:*}/${topic:**}')"


parts = st.sampled_from(["a", "@a", "*", "**", "a$*", "a/**", "*/b", "**/x"])


@given(st.lists(st.tuples(st.booleans(), parts), min_size=1, max_size=4), keys())
def test_reading_succeeds_on_the_keys_of_the_format_and_building_undoes_it(
    shape: list[tuple[bool, str]], key: str
) -> None:
    chunks = [
        f"${{p{k}:{part}}}" if named or "*" in part else part
        for k, (named, part) in enumerate(shape)
    ]
    format_ = KeyFormat("/".join(chunks))
    assert format_.matches(key) == format_.key_expr.includes(key)
    if format_.matches(key):
        found = format_.parse(key)
        assert tuple(found) == format_.names
        assert format_.build(found) == key
        assert format_.parse(format_.build(found)) == found
    else:
        with pytest.raises(KeyExprError):
            format_.parse(key)


def test_many_double_stars_are_read_in_polynomial_time() -> None:
    format_ = KeyFormat("/".join([f"${{p{k}:**}}/a" for k in range(40)]) + "/b")
    no, yes = "a/" * 400 + "c", "a/" * 400 + "b"
    most = 50 * len(yes) * len(format_.names)
    assert not format_.matches(no)
    assert steps(format_.matches, no) < most
    assert format_.parse(yes)["p0"] == "/".join("a" * 360)
    assert steps(format_.parse, yes) < most
