"""A body that is too large or comes too slowly is refused, and its place is free again."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest
from starlette.requests import Request

from zenlake.rest.bodies import body_of
from zenlake.rest.requests import RequestRefused


def sending(parts: Sequence[bytes], ends: bool = True, length: str = "") -> Request:
    """A request whose body comes in parts; then it ends, or nothing comes any more."""
    waiting = list(parts)

    async def receive() -> dict[str, Any]:
        if waiting:
            part = waiting.pop(0)
            return {"type": "http.request", "body": part, "more_body": bool(waiting) or not ends}
        await asyncio.Event().wait()
        raise AssertionError

    headers = [(b"content-length", length.encode())] if length else []
    return Request({"type": "http", "method": "PUT", "headers": headers}, receive)


def test_a_body_in_parts_is_one() -> None:
    assert asyncio.run(body_of(sending([b"ab", b"", b"c"]), 100)) == b"abc"


@pytest.mark.parametrize("length", ["", "11"])
def test_a_body_that_is_too_large_is_refused(length: str) -> None:
    with pytest.raises(RequestRefused, match="at most 10 bytes") as caught:
        asyncio.run(body_of(sending([b"x" * 11], length=length), 10))
    assert caught.value.code == 413


def test_a_sender_that_stops_loses_its_place() -> None:
    with pytest.raises(RequestRefused, match="only 2 bytes of the body came") as caught:
        asyncio.run(body_of(sending([b"ab"], ends=False), 100, seconds=0.01))
    assert caught.value.code == 408
