from __future__ import annotations

import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.keys.oracle import expressions
from zenlake.errors import KeyExprError, SelectorError
from zenlake.keys import KeyExpr, Now, Parameters, Selector, TimeBound


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        ("a/b?x=1", "a/b?x=1"),
        ("a/b?", "a/b"),
        ("a/b", "a/b"),
        ("a/b?x=1?y=2", "a/b?x=1?y=2"),
        ("a/b?;;x=1;;", "a/b?;;x=1"),
    ],
)
def test_text_is_cut_at_its_first_question_mark(text: str, printed: str) -> None:
    selector = Selector(text)
    assert selector.key_expr == "a/b"
    assert str(selector) == printed
    assert repr(selector) == f'sel"{printed}"'


def test_halves_may_be_given_apart() -> None:
    assert str(Selector("a/b", "x=1")) == "a/b?x=1"
    assert str(Selector("a/b", {"x": "1"})) == "a/b?x=1"
    assert str(Selector(KeyExpr("a/b"), Parameters("x"))) == "a/b?x"
    assert str(Selector(KeyExpr("a/b"))) == "a/b"
    with pytest.raises(KeyExprError, match="use Selector"):
        Selector("a/b?x=1", "y=1")


@pytest.mark.parametrize("text", ["", "?x", "a//b?x"])
def test_the_key_expression_is_checked(text: str) -> None:
    with pytest.raises(KeyExprError):
        Selector(text)


def test_other_types_are_refused() -> None:
    with pytest.raises(TypeError):
        Selector(1)  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        Selector("a", 1)  # type: ignore[arg-type]


def test_it_is_a_value() -> None:
    selector = Selector("a?x=1")
    selector.parameters.insert("k", "v")
    assert str(selector) == "a?x=1"
    assert selector == Selector("a", {"x": "1"})
    assert selector != "a?x=1"
    assert hash(selector) == hash(Selector("a?x=1"))
    assert Selector.of(selector) is selector
    assert pickle.loads(pickle.dumps(selector)) == selector
    with pytest.raises(AttributeError):
        selector.key_expr = KeyExpr("b")  # type: ignore[misc]


def test_it_interprets_its_time_and_its_openness() -> None:
    selector = Selector("a?_time=[now()..];_anyke")
    assert selector.time_range is not None
    assert selector.time_range.start == TimeBound(Now())
    assert selector.accepts_any_key
    assert Selector("a").time_range is None
    assert not Selector("a").accepts_any_key
    with pytest.raises(SelectorError):
        _ = Selector("a?_time=yesterday").time_range


@given(expressions(), st.text(st.sampled_from("ab=;?é"), max_size=10))
def test_printing_and_reading_agree(expr: str, parameters: str) -> None:
    selector = Selector(f"{expr}?{parameters}")
    assert selector == Selector(expr, parameters)
    assert Selector(str(selector)) == selector
    assert selector.key_expr == expr
    assert selector.parameters == Parameters(parameters)
