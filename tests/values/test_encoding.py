from __future__ import annotations

import json
import pickle
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zenlake.errors import EncodingError
from zenlake.values import Encoding

GOLDEN = Path(__file__).parent.parent / "golden" / "values_encodings.json"
NAMES: dict[str, str] = json.loads(GOLDEN.read_text())["names"]
texts = st.one_of(
    st.text(st.characters(exclude_categories=["Cs"]), max_size=60),
    st.builds(
        "{};{}".format, st.sampled_from(sorted(NAMES.values())), st.text("abc;/", max_size=9)
    ),
)


@pytest.mark.parametrize(("number", "name"), NAMES.items())
def test_every_well_known_name_has_its_number_and_constant(number: str, name: str) -> None:
    encoding = Encoding(name)
    assert (encoding.id, encoding.schema) == (int(number), None)
    assert str(encoding) == name
    assert Encoding.from_wire(int(number)) is Encoding.of(name)
    constant = re.sub("[/+-]", "_", name).upper()
    assert getattr(Encoding, constant) is Encoding.from_wire(int(number))


@pytest.mark.parametrize(
    ("text", "id", "schema", "again"),
    [
        ("", 0, None, "zenoh/bytes"),
        ("text/plain;", 4, None, "text/plain"),
        ("application/json;utf-8", 5, b"utf-8", "application/json;utf-8"),
        ("text/plain;a;b", 4, b"a;b", "text/plain;a;b"),
        ("zenoh/bytes;x", 0, b"x", "zenoh/bytes;x"),
        ("my/custom", 0xFFFF, b"my/custom", "my/custom"),
        ("foo/bar;x", 0xFFFF, b"foo/bar;x", "foo/bar;x"),
        (";x", 0xFFFF, b";x", ";x"),
        ("Text/Plain", 0xFFFF, b"Text/Plain", "Text/Plain"),
        ("unknown(1000)", 0xFFFF, b"unknown(1000)", "unknown(1000)"),
    ],
)
def test_text_is_split_at_the_first_semicolon(
    text: str, id: int, schema: bytes | None, again: str
) -> None:
    encoding = Encoding(text)
    assert (encoding.id, encoding.schema) == (id, schema)
    assert str(encoding) == again


@pytest.mark.parametrize(
    ("id", "schema", "text"),
    [
        (1000, None, "unknown(1000)"),
        (1000, b"v2", "unknown(1000);v2"),
        (0xFFFF, None, "unknown(65535)"),
        (4, b"\xff", "text/plain;unknown(non-utf8)"),
        (0xFFFF, b"\xff", "unknown(non-utf8)"),
        (4, b"", "text/plain;"),
    ],
)
def test_what_only_the_wire_can_say_has_a_text_too(
    id: int, schema: bytes | None, text: str
) -> None:
    encoding = Encoding.from_wire(id, schema)
    assert str(encoding) == text
    assert (encoding.id, encoding.schema) == (id, schema)
    assert pickle.loads(pickle.dumps(encoding)) == encoding


@pytest.mark.parametrize(
    ("before", "schema", "after"),
    [
        ("text/plain", "a", "text/plain;a"),
        ("text/plain;a", "b", "text/plain;b"),
        ("my/c", "s", "my/c;s"),
        ("my/c;a", "s", "my/c;s"),
        ("my/c;a", "", "my/c"),
    ],
)
def test_another_schema_takes_the_place_of_the_first(before: str, schema: str, after: str) -> None:
    assert str(Encoding(before).with_schema(schema)) == after
    assert Encoding(before).with_schema(schema) == after


def test_a_schema_makes_another_encoding() -> None:
    assert Encoding("text/plain;a") != Encoding.TEXT_PLAIN
    assert Encoding.TEXT_PLAIN.with_schema("") != Encoding.TEXT_PLAIN


def test_it_equals_its_text() -> None:
    assert Encoding.TEXT_PLAIN == "text/plain"
    assert Encoding.TEXT_PLAIN == "text/plain;"
    assert Encoding.TEXT_PLAIN != "text/html"
    assert Encoding.TEXT_PLAIN != 4
    assert Encoding.TEXT_PLAIN != "x" * 1000
    assert {"text/plain": 1}[Encoding.TEXT_PLAIN] == 1  # type: ignore[index]


def test_encodings_have_no_order() -> None:
    with pytest.raises(TypeError):
        _ = Encoding.TEXT_PLAIN < Encoding.TEXT_HTML  # type: ignore[operator]


def test_a_schema_of_255_bytes_is_the_longest() -> None:
    assert Encoding("text/plain;" + "é" * 127 + "x").schema == ("é" * 127 + "x").encode()
    with pytest.raises(EncodingError, match="256 bytes"):
        Encoding("text/plain;" + "é" * 128)
    with pytest.raises(EncodingError, match="256 bytes"):
        Encoding("x" * 256)
    with pytest.raises(EncodingError, match="256 bytes"):
        Encoding.TEXT_PLAIN.with_schema("x" * 256)
    with pytest.raises(EncodingError, match="256 bytes"):
        Encoding.from_wire(4, b"x" * 256)


@pytest.mark.parametrize("id", [-1, 0x10000])
def test_an_id_has_16_bits(id: int) -> None:
    for schema in (None, b"x"):
        with pytest.raises(EncodingError, match="16 bits"):
            Encoding.from_wire(id, schema)


def test_what_is_not_text_is_refused() -> None:
    with pytest.raises(TypeError):
        Encoding(5)  # type: ignore[arg-type]
    with pytest.raises(EncodingError):
        Encoding("\ud800")


def test_common_encodings_are_one_object_and_strangers_do_not_pile_up() -> None:
    from zenlake.values import encoding as module

    first = Encoding.from_wire(5, b"again")
    assert Encoding.from_wire(5, b"again") is first
    for number in range(3000):
        Encoding.from_wire(5, str(number).encode())
    assert len(module._SEEN) <= 256
    assert Encoding.from_wire(5, b"again") == first


@given(texts)
def test_text_number_and_pickle_bring_the_same_encoding_back(text: str) -> None:
    encoding = Encoding(text)
    assert encoding == text
    assert hash(encoding) == hash(str(encoding))
    assert Encoding(str(encoding)) == encoding
    assert Encoding(encoding) == encoding
    assert Encoding.of(encoding) is encoding
    assert Encoding.from_wire(encoding.id, encoding.schema) == encoding
    assert pickle.loads(pickle.dumps(encoding)) == encoding
    assert eval(repr(encoding)) == encoding
