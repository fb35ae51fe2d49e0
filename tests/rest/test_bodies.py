"""A body that is too large or comes too slowly is refused, and its place is free again."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest
from starlette.requests import Request

from zenlake.http.shares import Shares
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


def body(request: Request, most: int, memory: Shares, seconds: float = 30.0) -> bytes:
    async def read() -> bytes:
        async with body_of(request, most, memory, seconds) as found:
            assert memory.taken == len(found)
            return found

    try:
        return asyncio.run(read())
    finally:
        assert memory.taken == 0


def test_a_body_in_parts_is_one() -> None:
    assert body(sending([b"ab", b"", b"c"]), 100, Shares(100)) == b"abc"


def test_bodies_that_hold_too_much_together_are_refused() -> None:
    memory = Shares(100)
    assert memory.take("192.0.2.7", 60)
    with pytest.raises(RequestRefused, match="hold all the memory") as caught:
        asyncio.run(held(memory))
    assert caught.value.code == 503
    assert memory.taken == 60


async def held(memory: Shares) -> None:
    async with body_of(sending([b"x" * 20, b"x" * 21]), 100, memory):
        raise AssertionError


def test_bodies_of_one_address_leave_room_for_those_of_another() -> None:
    memory = Shares(100)
    assert memory.take("192.0.2.7", 75)
    assert not memory.take("192.0.2.7", 1)
    assert memory.take("192.0.2.8", 25)


@pytest.mark.parametrize("length", ["", "11"])
def test_a_body_that_is_too_large_is_refused(length: str) -> None:
    with pytest.raises(RequestRefused, match="at most 10 bytes") as caught:
        body(sending([b"x" * 11], length=length), 10, Shares(100))
    assert caught.value.code == 413


def test_a_sender_that_stops_loses_its_place() -> None:
    with pytest.raises(RequestRefused, match="only 2 bytes of the body came") as caught:
        body(sending([b"ab"], ends=False), 100, Shares(100), seconds=0.01)
    assert caught.value.code == 408
