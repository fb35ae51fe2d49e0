from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zenlake.config.json5 import MOST_NESTING, Plain, Unreadable, read_json5

GRAMMAR: list[tuple[str, Plain]] = [
    ("null", None),
    (" true // yes", True),
    ("/* a * / b */ false", False),
    ("0x1F", 31),
    ("-0x10", -16),
    ("+7", 7),
    (".5", 0.5),
    ("5.", 5.0),
    ("-1.5e3", -1500.0),
    ("1E2", 100.0),
    ("'it\\'s'", "it's"),
    ('"tab\\t \\x41 \\u00e9 \\q"', "tab\t A \xe9 q"),
    ('"\\ud83d\\ude00"', "\U0001f600"),
    ('"one\\\n line"', "one line"),
    ('"one\\\r\n line"', "one line"),
    ('"\\0"', "\0"),
    ("[1, 2,]", [1, 2]),
    ("[]", []),
    ("{}", {}),
    ("{a: 1, 'b c': 2, \"d\": [3], $e_1: null,}", {"a": 1, "b c": 2, "d": [3], "$e_1": None}),
    ("{été: 1}", {"été": 1}),
    ("\ufeff{a:\u2028{}}", {"a": {}}),
    ("// only\r1", 1),
]

BROKEN: list[tuple[str, str, int]] = [
    ("", "expected a value, found the end of the text", 0),
    ("nul", "expected a value, found 'nul'", 0),
    ("[1 2]", "expected ',' or ']', found '2'", 3),
    ("[1", "this '[' is not closed; write ']'", 0),
    ("{a: 1", "this '{' is not closed; write '}'", 0),
    ("{a: 1, ", "this '{' is not closed; write '}'", 0),
    ("{a 1}", "expected ':' after 'a', found '1'", 3),
    ("{1: 1}", "expected a name, found '1'", 1),
    ("{a: 1, a: 2}", "'a' is written twice in one object", 7),
    ("1 2", "expected the end of the text, found '2'", 2),
    ("[,]", "expected a value, found ','", 1),
    ("01", "0 is followed by '1'", 1),
    ("1x", "1 is followed by 'x'", 1),
    ("Infinity", "this number is not finite; JSON cannot repeat it", 0),
    ("-NaN", "this number is not finite; JSON cannot repeat it", 0),
    ("1e999", "this number is not finite; JSON cannot repeat it", 0),
    ('"abc', 'this text is not closed; write "', 0),
    ("'a\nb'", "this text is not closed; write '", 0),
    ('"\\u12"', "\\u takes 4 hexadecimal digits", 1),
    ('"\\x4"', "\\x takes 2 hexadecimal digits", 1),
    ('"\\1"', "\\1 is not an escape; write \\x00 for a code", 1),
    ('"\\', "the text ends within an escape", 1),
    ('"\\ud800"', "a lone surrogate is not a character", 0),
    ('"\ud800"', "a lone surrogate is not a character", 1),
    ("/* x", "this comment is not closed; write */", 0),
    ("\x00", "expected a value, found '\\x00'", 0),
]

json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


@pytest.mark.parametrize(("text", "value"), GRAMMAR)
def test_the_grammar_is_read(text: str, value: Plain) -> None:
    assert read_json5(text).plain() == value


@pytest.mark.parametrize(("text", "message", "offset"), BROKEN)
def test_what_is_not_json5_is_refused_at_its_place(text: str, message: str, offset: int) -> None:
    with pytest.raises(Unreadable) as caught:
        read_json5(text)
    assert (caught.value.message, caught.value.offset) == (message, offset)


def test_every_value_knows_where_it_stands() -> None:
    root = read_json5("{\n  a: [10, {b: 'x'}]}")
    assert isinstance(root.value, dict)
    a = root.value["a"]
    assert (a.name_at, a.at) == (4, 7)
    assert isinstance(a.value, list)
    inner = a.value[1]
    assert inner.at == 12
    assert isinstance(inner.value, dict)
    assert (inner.value["b"].name_at, inner.value["b"].at) == (13, 16)


@pytest.mark.parametrize("brackets", ["[]", "{}"])
def test_nesting_has_a_bound(brackets: str) -> None:
    opening = brackets[0] if brackets == "[]" else "{a:"
    deepest = opening * MOST_NESTING + "1" + brackets[1] * MOST_NESTING
    assert read_json5(deepest).at == 0
    with pytest.raises(Unreadable, match="nested more than 64 deep"):
        read_json5(opening * 100_000)


def test_long_numbers_and_long_texts_are_refused() -> None:
    with pytest.raises(Unreadable, match="a number of 5000 characters"):
        read_json5("9" * 5000)
    with pytest.raises(Unreadable, match="at most 4194304 are read"):
        read_json5(" " * (4 * 1024 * 1024 + 1))


def test_an_unclosed_comment_of_many_lines_takes_no_time() -> None:
    with pytest.raises(Unreadable, match="comment is not closed"):
        read_json5("/*" + "\n*" * 500_000)


@given(json_values)
def test_json_is_json5(value: Plain) -> None:
    assert read_json5(json.dumps(value)).plain() == value
    assert read_json5(json.dumps(value, ensure_ascii=False, indent=1)).plain() == value


@given(st.text() | st.text(alphabet="{}[]:,'\"\\/*-+.0x1aeu \n"))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        offset = read_json5(text).at
    except Unreadable as error:
        offset = error.offset
    else:
        json.dumps(read_json5(text).plain(), allow_nan=False)
    assert 0 <= offset <= len(text)
