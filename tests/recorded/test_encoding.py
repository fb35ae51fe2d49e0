"""The text of an encoding in tables and files: the id and the schema come back exactly."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zenlake.errors import EncodingError
from zenlake.recorded.encoding import (
    recorded_encoding,
    recorded_parts,
    recorded_schema,
    recorded_text,
    schema_bytes,
    without_custom_id,
)
from zenlake.values import Encoding

schemas = st.one_of(
    st.none(),
    st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=20),
    st.sampled_from(["text/plain", "text/plain;x", "unknown(7)", "unknown(65535)", ";", "x;y"]),
    st.from_regex(r"unknown\([0-9]{1,7}\)(;[a-c]*)?", fullmatch=True),
)


@pytest.mark.parametrize(
    ("id", "schema", "text"),
    [
        (0, None, "zenoh/bytes"),
        (0, "x", "zenoh/bytes;x"),
        (5, "utf-8", "application/json;utf-8"),
        (52, None, "video/vp9"),
        (53, None, "unknown(53)"),
        (4000, None, "unknown(4000)"),
        (4000, "v2;b", "unknown(4000);v2;b"),
        (65534, "x", "unknown(65534);x"),
        (65535, "my/own;v2", "my/own;v2"),
        (65535, None, "unknown(65535)"),
        (65535, "text/plain", "unknown(65535);text/plain"),
        (65535, "text/plain;x", "unknown(65535);text/plain;x"),
        (65535, "unknown(4000)", "unknown(65535);unknown(4000)"),
        (65535, "unknown(65536)", "unknown(65536)"),
        (65535, "unknown(123456)", "unknown(123456)"),
        (65535, ";x", ";x"),
        (65535, "Unknown(7)", "Unknown(7)"),
    ],
)
def test_every_encoding_has_a_text_of_its_own(id: int, schema: str | None, text: str) -> None:
    assert recorded_text(id, schema) == text
    assert recorded_parts(text) == (id, schema)
    encoding = recorded_encoding(text)
    assert (encoding.id, encoding.schema) == (id, None if schema is None else schema.encode())


def test_no_text_is_zenoh_bytes_and_an_empty_schema_is_none() -> None:
    assert recorded_parts("") == (0, None)
    assert recorded_parts("text/plain;") == (4, None)
    assert recorded_text(4, "") == "text/plain"
    assert recorded_text(65535, "") == "unknown(65535)"


@pytest.mark.parametrize("text", ["my/own;v2", "application/json;x", "zenoh/bytes", "Text/Plain"])
def test_what_the_api_reads_exactly_is_recorded_in_the_same_words(text: str) -> None:
    encoding = Encoding(text)
    schema = None if encoding.schema is None else encoding.schema.decode()
    assert recorded_text(encoding.id, schema) == text


@given(st.integers(0, 65535) | st.sampled_from([0, 4, 52, 53, 65535]), schemas)
def test_ids_and_schemas_come_back_exactly(id: int, schema: str | None) -> None:
    assert recorded_parts(recorded_text(id, schema)) == (id, schema)


def test_a_custom_name_of_a_known_format_names_that_format() -> None:
    assert without_custom_id("unknown(65535);text/json;v1") == "text/json;v1"
    assert without_custom_id("text/json;v1") == "text/json;v1"
    assert without_custom_id("unknown(4000);text/json") == "unknown(4000);text/json"


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"", ""),
        ("é".encode(), "é"),
        (b"a\xffb", "a\N{REPLACEMENT CHARACTER}FFb"),
        (
            b"\xed\xa0\x80",
            "\N{REPLACEMENT CHARACTER}ED"
            + "\N{REPLACEMENT CHARACTER}A0"
            + "\N{REPLACEMENT CHARACTER}80",
        ),
        (
            "\N{REPLACEMENT CHARACTER}FF".encode(),
            "\N{REPLACEMENT CHARACTER}EF\N{REPLACEMENT CHARACTER}BF\N{REPLACEMENT CHARACTER}BDFF",
        ),
    ],
)
def test_a_schema_that_is_no_text_shows_its_bytes(data: bytes, text: str) -> None:
    assert recorded_schema(data) == text
    assert schema_bytes(text) == data


@given(
    st.binary(max_size=20) | st.text(max_size=9).map(lambda text: text.encode("utf-8", "replace"))
)
def test_a_schema_of_any_bytes_comes_back(data: bytes) -> None:
    assert schema_bytes(recorded_schema(data)) == data


def test_a_schema_whose_bytes_were_replaced_before_keeps_its_text() -> None:
    assert schema_bytes("a\N{REPLACEMENT CHARACTER}b") == "a\N{REPLACEMENT CHARACTER}b".encode()
    assert schema_bytes(None) == b""


def test_a_text_whose_schema_no_message_carries_is_refused() -> None:
    with pytest.raises(EncodingError, match="256 bytes"):
        recorded_encoding("unknown(4000);" + "x" * 256)
