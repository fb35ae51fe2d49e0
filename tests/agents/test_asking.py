"""What an assistant is shown of a payload."""

from __future__ import annotations

import json
from base64 import b64decode

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zenlake.agents.asking import readable


@pytest.mark.parametrize(
    ("payload", "encoding", "shown"),
    [
        (b"hello\n", "zenoh/bytes", {"value": "hello\n"}),
        (b'{"percent": 8}', "application/json", {"value": {"percent": 8}}),
        (b"8", "application/json", {"value": 8}),
        (b"{", "application/json", {"value": "{"}),
        (b"plain", "text/plain", {"value": "plain"}),
        (b"\xff\x00", "zenoh/bytes", {"value": "/wA=", "base64": True}),
        (b"\x00\x01", "image/png", {"value": "AAE=", "base64": True}),
        (b"", "zenoh/bytes", {"value": None}),
    ],
)
def test_a_payload_is_shown_as_json_else_as_text_else_as_base64(
    payload: bytes, encoding: str, shown: dict[str, object]
) -> None:
    assert readable(payload, encoding) == shown


@given(st.binary(min_size=1), st.sampled_from(["zenoh/bytes", "image/png", "text/plain"]))
def test_what_is_shown_is_json_and_says_what_the_bytes_were(payload: bytes, encoding: str) -> None:
    shown = json.loads(json.dumps(readable(payload, encoding)))
    if shown.get("base64"):
        assert b64decode(shown["value"]) == payload
    else:
        assert shown["value"].encode() == payload
