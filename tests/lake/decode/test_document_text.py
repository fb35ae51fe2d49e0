from __future__ import annotations

import json
import math
from typing import Any

import cbor2
import msgpack
import pytest
from hypothesis import given
from hypothesis import strategies as st

from zenlake.lake.decode.document_text import (
    BINARY_ENCODINGS,
    MOST_BYTES,
    document_text,
    is_binary,
)

CBOR, PACK = "application/cbor", "application/msgpack"
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(1 << 63), (1 << 63) - 1) | st.text()
    | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
)  # fmt: skip


@given(VALUES)
def test_an_object_or_array_becomes_json_and_nothing_else_does(value: Any) -> None:
    for payload, encoding in ((cbor2.dumps(value), CBOR), (msgpack.packb(value), PACK)):
        text = document_text(payload, encoding)
        if isinstance(value, dict | list):
            assert json.loads(text or "0") == value
        else:
            assert text is None


@given(st.binary(max_size=40), st.sampled_from(BINARY_ENCODINGS))
def test_whatever_the_bytes_are_nothing_is_raised(payload: bytes, encoding: str) -> None:
    text = document_text(payload, encoding)
    assert text is None or isinstance(json.loads(text), dict | list)


@pytest.mark.parametrize(
    ("encoding", "expected"),
    [
        (CBOR, True),
        ("application/cbor;fleet", True),
        ("unknown(65535);application/cbor", True),
        ("application/vnd.msgpack", True),
        ("application/cbor-seq", False),
        ("application/json", False),
        ("zenoh/bytes", False),
        (None, False),
    ],
)
def test_an_encoding_says_whether_payloads_are_binary(encoding: str, expected: bool) -> None:
    assert is_binary(encoding) is expected
    assert (document_text(cbor2.dumps([1]), encoding) is not None) is (
        expected and "msgpack" not in encoding
    )


def test_what_json_has_not_becomes_text() -> None:
    said = {"n": math.nan, "up": math.inf, "down": [-math.inf], "raw": b"\xff", "word": b"a"}
    assert json.loads(document_text(cbor2.dumps(said), CBOR) or "0") == {
        "n": "NaN", "up": "Infinity", "down": ["-Infinity"], "raw": "ff", "word": "a",
    }  # fmt: skip


def test_a_document_that_is_too_long_or_too_deep_is_none() -> None:
    long = "x" * MOST_BYTES
    assert document_text(cbor2.dumps([long]), CBOR) is None
    # Written once, and said a thousand times.
    shared = [long[:100_000]] * 1000
    packed = cbor2.dumps(shared, string_referencing=True)
    assert len(packed) < 200_000
    assert document_text(packed, CBOR) is None
    assert document_text(b"\x81" * 5000 + b"\x01", CBOR) is None
    assert document_text(b"\x91" * 500 + b"\x01", PACK) is None
