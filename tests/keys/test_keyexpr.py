from __future__ import annotations

import copy
import pickle

import pytest
from hypothesis import given

from tests.keys.oracle import expressions
from zenlake.errors import KeyExprError, ZError
from zenlake.keys import KeyExpr, SetIntersectionLevel
from zenlake.keys.matching import includes, intersects


def test_it_is_equal_to_its_text_and_hashes_like_it() -> None:
    assert KeyExpr("a/b") == "a/b"
    assert "a/b" == KeyExpr("a/b")  # noqa: SIM300
    assert KeyExpr("a/b") == KeyExpr("a/b")
    assert KeyExpr("a/b") != "a//b"
    assert KeyExpr("a/b") != 1
    assert {KeyExpr("a$*"): 1}.get("a$*") == 1  # type: ignore[call-overload]


def test_it_prints_its_text_and_shows_itself() -> None:
    assert str(KeyExpr("a/**")) == "a/**"
    assert f"{KeyExpr('a')}" == "a"
    assert repr(KeyExpr("a/**")) == "ke`a/**`"


def test_it_refuses_what_is_not_canonical_as_a_value_error_and_a_zenoh_error() -> None:
    with pytest.raises(KeyExprError, match=r"write '\*/\*\*'") as refusal:
        KeyExpr("**/*")
    assert isinstance(refusal.value, ValueError)
    assert isinstance(refusal.value, ZError)
    assert KeyExpr.autocanonize("**/*") == "*/**"


@pytest.mark.parametrize("value", [1, None, b"a", KeyExpr("a")])
def test_it_is_made_of_text_alone(value: object) -> None:
    with pytest.raises(TypeError, match="written as str"):
        KeyExpr(value)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="written as str"):
        KeyExpr.autocanonize(value)  # type: ignore[arg-type]


def test_a_subclass_of_str_is_kept_as_plain_text() -> None:
    class Name(str):
        __slots__ = ()

    assert type(str(KeyExpr(Name("a/b")))) is str
    assert type(str(KeyExpr.autocanonize(Name("a/b")))) is str


def test_joining_adds_a_slash_and_canonizes() -> None:
    assert KeyExpr("a").join("b") == "a/b"
    assert KeyExpr("a/**").join("*/b") == "a/*/**/b"
    assert KeyExpr("a/**") / "**" == "a/**"
    assert KeyExpr("a") / KeyExpr("b") == "a/b"
    assert "a" / KeyExpr("b") == "a/b"
    with pytest.raises(KeyExprError, match="write 'a/b'"):
        KeyExpr("a").join("/b")
    with pytest.raises(KeyExprError, match="write 'a'"):
        KeyExpr("a") / ""
    with pytest.raises(TypeError):
        KeyExpr("a") / 1  # type: ignore[operator]


def test_concatenation_adds_nothing() -> None:
    assert KeyExpr("a").concat("b") == "ab"
    assert KeyExpr("a").concat("/b") == "a/b"
    assert KeyExpr("a").concat("$*") == "a$*"
    assert KeyExpr("a").concat("") == "a"
    with pytest.raises(KeyExprError, match="must fill a whole chunk"):
        KeyExpr("a").concat("*")
    with pytest.raises(KeyExprError, match="must fill a whole chunk"):
        KeyExpr("a/**").concat("b")


def test_relations_are_ordered_from_disjoint_to_equal() -> None:
    level = SetIntersectionLevel
    assert KeyExpr("a/*").relation_to("a/*") is level.EQUALS
    assert KeyExpr("a/*").relation_to("a/b") is level.INCLUDES
    assert KeyExpr("a/b").relation_to("a/*") is level.INTERSECTS
    assert KeyExpr("a").relation_to("b") is level.DISJOINT
    assert level.DISJOINT < level.INTERSECTS < level.INCLUDES < level.EQUALS
    assert level.EQUALS >= level.EQUALS >= level.DISJOINT
    assert level.DISJOINT <= level.INTERSECTS
    assert level.EQUALS > level.INCLUDES
    assert int(level.EQUALS) == 3
    assert level.EQUALS.__eq__(3) is not True
    assert repr(level.EQUALS) == str(level.EQUALS) == "SetIntersectionLevel.EQUALS"


def test_relations_check_the_text_they_are_given() -> None:
    with pytest.raises(KeyExprError):
        KeyExpr("a").intersects("b//")
    with pytest.raises(TypeError):
        KeyExpr("a").includes(1)  # type: ignore[arg-type]


def test_it_knows_its_chunks_and_whether_it_is_wild() -> None:
    assert KeyExpr("a/b$*/**").chunks == ("a", "b$*", "**")
    assert KeyExpr("a/b$*").is_wild
    assert not KeyExpr("a/@$*").is_wild
    assert KeyExpr("a/@b").has_verbatim
    assert not KeyExpr("a@b").has_verbatim


def test_it_sorts_like_text_and_with_text() -> None:
    assert sorted([KeyExpr("b"), KeyExpr("a"), KeyExpr("*")]) == ["*", "a", "b"]
    assert KeyExpr("a") < "b"
    assert KeyExpr("b") > "a"
    assert KeyExpr("a") <= KeyExpr("a") >= KeyExpr("a")
    with pytest.raises(TypeError):
        _ = KeyExpr("a") < 1  # type: ignore[operator]


def test_it_does_not_change_and_travels_between_processes() -> None:
    key = KeyExpr("a/*")
    with pytest.raises(AttributeError):
        key.chunks = ("b",)  # type: ignore[misc]
    with pytest.raises(AttributeError):
        key.note = "b"  # type: ignore[attr-defined]
    assert pickle.loads(pickle.dumps(key)) == key
    assert copy.deepcopy(key) == key


@given(expressions(), expressions())
def test_objects_relate_as_their_texts_do(a: str, b: str) -> None:
    left, right = KeyExpr(a), KeyExpr(b)
    assert left.intersects(right) == intersects(a, b) == right.intersects(a)
    assert left.includes(right) == includes(a, b)
    assert (left.relation_to(b) >= SetIntersectionLevel.INCLUDES) == includes(a, b)
    assert (left.relation_to(b) is SetIntersectionLevel.DISJOINT) is not intersects(a, b)
    assert left.join(right).chunks[0] in {left.chunks[0], "*"}


def test_stars_must_not_run_together_when_texts_are_joined() -> None:
    with pytest.raises(KeyExprError, match="run together"):
        KeyExpr("a/*").concat("*")
    assert KeyExpr("a/*").concat("/*") == "a/*/*"
