from __future__ import annotations

import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zenlake.errors import SelectorError
from zenlake.keys import Instant, Now, Parameters, TimeBound, TimeRange

texts = st.text(st.sampled_from("ab=;|%é"), max_size=12)
words = st.text(st.sampled_from("abc|%_"), min_size=1, max_size=4)


def test_items_are_cut_at_semicolons_and_at_their_first_equals_sign() -> None:
    assert list(Parameters("a=1;;a=2;b;=x;c=d=e;")) == [
        ("a", "1"),
        ("a", "2"),
        ("b", ""),
        ("", "x"),
        ("c", "d=e"),
    ]


def test_the_padding_of_a_base64_value_is_kept() -> None:
    assert Parameters("a=YQ==").get("a") == "YQ=="
    assert Parameters("a=YQ==;b").get("a") == "YQ=="


def test_the_first_of_a_name_wins_and_nothing_is_decoded() -> None:
    parameters = Parameters("a=1;a=2;b=2%203;c")
    assert parameters.get("a") == "1"
    assert parameters["b"] == "2%203"
    assert parameters["c"] == ""
    assert parameters["z"] is None
    assert parameters.get("z", "else") == "else"
    assert "c" in parameters
    assert "z" not in parameters


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("a=1|2|3", ["1", "2", "3"]),
        ("a=", [""]),
        ("a", [""]),
        ("b=1", []),
        ("a=1|", ["1", ""]),
        ("a=|", ["", ""]),
        ("a=1||2", ["1", "", "2"]),
        ("a=1;a=2", ["1"]),
    ],
)
def test_a_bar_separates_values_in_one(text: str, values: list[str]) -> None:
    assert Parameters(text).values("a") == values


def test_emptiness_is_falsehood() -> None:
    assert Parameters().is_empty()
    assert not Parameters(None)
    assert not Parameters(";;")
    assert Parameters("a")


def test_text_is_kept_but_for_semicolons_at_its_end() -> None:
    assert str(Parameters("a=1;;b=2;")) == "a=1;;b=2"
    assert repr(Parameters(";;x;;")) == ";;x"
    assert str(Parameters({"b": "1", "a": ""})) == "b=1;a"
    assert str(Parameters(Parameters("q=1"))) == "q=1"


def test_order_is_alphabetical_by_name() -> None:
    assert Parameters("a=2;a=1;b").is_ordered()
    assert not Parameters("b=1;a=2").is_ordered()
    assert Parameters("").is_ordered()


@pytest.mark.parametrize(
    ("text", "key", "value", "before", "after"),
    [
        ("a=1;b=2", "a", "9", "1", "b=2;a=9"),
        ("b=2;a=1;a=4;c=3", "a", "", "1", "b=2;c=3;a"),
        (";;x;;", "a", "1", None, "x;a=1"),
        ("", "", "1", None, ""),
    ],
)
def test_inserting_replaces_every_former_value_and_goes_last(
    text: str, key: str, value: str, before: str | None, after: str
) -> None:
    parameters = Parameters(text)
    assert parameters.insert(key, value) == before
    assert str(parameters) == after


def test_removing_returns_the_first_value_and_takes_all() -> None:
    parameters = Parameters(";;b=2;a=1;a=4;;")
    assert parameters.remove("a") == "1"
    assert parameters.remove("z") is None
    assert str(parameters) == "b=2"


@pytest.mark.parametrize(
    ("added", "after"),
    [
        ("a=7;d=8", "b=2;a=7;d=8"),
        ({"z": "1", "b": "3"}, "a=1;a=5;z=1;b=3"),
        (Parameters("q"), "b=2;a=1;a=5;q"),
        ("b=3;b=4", "a=1;a=5;b=3;b=4"),
        ("", "b=2;a=1;a=5"),
    ],
)
def test_extending_replaces_by_name(added: str | dict[str, str] | Parameters, after: str) -> None:
    parameters = Parameters("b=2;a=1;a=5")
    parameters.extend(added)
    assert str(parameters) == after


@pytest.mark.parametrize(
    ("key", "value", "advice"),
    [
        ("a;b", "1", "leave them out"),
        ("a=b", "1", "leave them out"),
        ("a", "1;2", "write '|' between values"),
        ("_time", "[now();1h]", r"\[start..end\]"),
    ],
)
def test_what_would_be_read_back_differently_is_refused(key: str, value: str, advice: str) -> None:
    with pytest.raises(SelectorError, match=advice):
        Parameters().insert(key, value)
    with pytest.raises(SelectorError, match=advice):
        Parameters({key: value})


def test_names_and_values_are_text() -> None:
    with pytest.raises(TypeError, match="written as str"):
        Parameters({"a": 1})  # type: ignore[dict-item]
    with pytest.raises(TypeError, match="written as str"):
        Parameters("a").insert("a", 1)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="written as str"):
        _ = 1 in Parameters("a")  # type: ignore[operator]
    with pytest.raises(TypeError, match="written as str"):
        Parameters(1)  # type: ignore[arg-type]


def test_equality_is_that_of_the_items() -> None:
    assert Parameters("a=1;;b") == Parameters({"a": "1", "b": ""})
    assert Parameters("a=1;b") != Parameters("b;a=1")
    assert Parameters("a") != "a"
    assert pickle.loads(pickle.dumps(Parameters("a=1"))) == Parameters("a=1")


def test_an_interpreted_name_may_occur_once() -> None:
    assert Parameters("a=1;b=2").interpreted("a") == "1"
    assert Parameters("a=1;a=2").interpreted("b") is None
    with pytest.raises(SelectorError, match="occurs 2 times; write it once"):
        Parameters("a=1;a=2").interpreted("a")
    with pytest.raises(SelectorError, match="occurs 2 times"):
        Parameters("a;a").flag("a")


@pytest.mark.parametrize(
    ("text", "truth"),
    [("", False), ("a=false", False), ("a", True), ("a=", True), ("a=0", True), ("a=False", True)],
)
def test_only_absent_or_false_is_falsey(text: str, truth: bool) -> None:
    assert Parameters(text).flag("a") is truth


def test_the_time_range_is_interpreted() -> None:
    hour = TimeRange(TimeBound(Now(-3_600_000_000_000)), TimeBound(Now()))
    assert Parameters("_time=[now(-1h)..now()];x=1").time_range() == hour
    assert Parameters("x=1").time_range() is None
    with pytest.raises(SelectorError):
        Parameters("_time=[1h..]").time_range()
    with pytest.raises(SelectorError):
        Parameters("_time=[..];_time=[..]").time_range()
    with pytest.raises(SelectorError):
        Parameters("_time").time_range()


def test_a_length_in_a_time_range_survives_the_cut_at_its_semicolon() -> None:
    second = TimeRange(TimeBound(Instant(0), False), TimeBound(Instant(1_000_000_000)))
    text = "x;_time=]1970-01-01T00:00:00Z;1s];y=2"
    assert Parameters(text).time_range() == second
    with pytest.raises(SelectorError):
        Parameters("_time=[now();y=2]").time_range()
    with pytest.raises(SelectorError):
        Parameters("_time=[now()").time_range()


@given(texts)
def test_reading_follows_the_rules_whatever_the_text(text: str) -> None:
    parameters = Parameters(text)
    items = [item.split("=", 1) for item in text.split(";") if item]
    assert list(parameters) == [(item[0], "".join(item[1:])) for item in items]
    assert list(Parameters(str(parameters))) == list(parameters)
    assert parameters.is_empty() is not bool(items)


@given(texts, words, words)
def test_what_is_inserted_is_read_back_once(text: str, key: str, value: str) -> None:
    parameters = Parameters(text)
    assert parameters.insert(key, value) == Parameters(text).get(key)
    assert parameters.interpreted(key) == value
    assert parameters.remove(key) == value
    assert key not in parameters
