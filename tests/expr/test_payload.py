"""What filters see of payloads, by their encodings."""

from __future__ import annotations

import sys
from datetime import UTC, datetime
from typing import Any

import cbor2
import msgpack
import pytest
from hypothesis import given
from hypothesis import strategies as st

from zenlake.expr import SampleFields, compiled, parse
from zenlake.expr.payload import MOST_ITEMS, read_everywhere, seen_payload

BOTH = [
    ("application/cbor", cbor2.dumps),
    ("application/msgpack", lambda value: msgpack.packb(value, datetime=True)),
]
CUSTOM = "unknown(65535);application/msgpack"


@pytest.mark.parametrize(("encoding", "dumps"), BOTH)
def test_binary_documents_are_read_as_json_is(encoding: str, dumps: Any) -> None:
    told = {
        "battery": 12,
        "at": {"x": [1.5, 2]},
        7: True,
        "since": datetime(2026, 1, 31, tzinfo=UTC),
    }
    record, plain = seen_payload(dumps(told), encoding)
    assert plain is None
    for text in (
        "battery < 20",
        "at.x[0] = 1.5",
        "since = '2026-01-31T00:00:00+00:00'",
    ):
        assert compiled(parse(text))(SampleFields(record)) is True, text
    assert record is not None
    assert record["7"] is True
    for value in (5, 2.5, "auto", True):
        assert seen_payload(dumps(value), f"{encoding};v=1") == (None, value)
    assert seen_payload(dumps([1]), encoding) == (None, None)
    assert seen_payload(dumps({"a": 1})[:-1], encoding) == (None, None)
    assert not read_everywhere(encoding)


def test_an_encoding_without_a_number_is_known_by_its_name() -> None:
    assert seen_payload(msgpack.packb({"a": 1}), CUSTOM) == ({"a": 1}, None)
    assert not read_everywhere(CUSTOM)


def test_references_that_make_a_small_document_huge_are_not_followed() -> None:
    inner: list[Any] = [0] * 1000
    for _ in range(3):
        inner = [inner] * 1000
    assert MOST_ITEMS < 1000**2
    payload = cbor2.dumps({"a": inner}, value_sharing=True)
    assert len(payload) < 100_000
    assert seen_payload(payload, "application/cbor") == (None, None)
    endless: list[Any] = []
    endless.append(endless)
    payload = cbor2.dumps(endless, value_sharing=True)
    assert seen_payload(payload, "application/cbor") == (None, None)


def test_where_a_library_is_missing_nothing_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    payload = cbor2.dumps(5)
    monkeypatch.setitem(sys.modules, "cbor2", None)
    assert seen_payload(payload, "application/cbor") == (None, None)


@pytest.mark.parametrize(
    ("payload", "encoding", "seen"),
    [
        (b"true", "application/json", (None, True)),
        (b"true", "text/plain", (None, "true")),
        (b'{"a": 1}', "text/json", ({"a": 1}, None)),
        (b'{"a": 1, "a": 2}', "application/json", (None, None)),
        (b"auto", "application/json", (None, None)),
        (b"5", "my/own", (None, 5)),
        (b"auto", "my/own", (None, None)),
        (b"auto", "zenoh/string", (None, "auto")),
    ],
)
def test_other_encodings_say_how_they_are_read(payload: bytes, encoding: str, seen: Any) -> None:
    assert seen_payload(payload, encoding) == seen
    assert read_everywhere(encoding)


@given(
    st.binary(max_size=60),
    st.sampled_from(["", "application/cbor", "application/msgpack", "application/json", "x/y"]),
)
def test_whatever_comes_is_read_or_is_nothing(payload: bytes, encoding: str) -> None:
    record, plain = seen_payload(payload, encoding)
    assert record is None or plain is None
    assert plain is None or isinstance(plain, int | float | str | bool)
