"""The body of a request, within bounds of size and of time.

A sender that stops, or sends a byte now and then, is refused after a while. Until its body is there
a request has no place among those that are answered (`max_requests`), so that it keeps nobody out.
What all bodies hold together is bounded, and so is what those of one address hold.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Final

from starlette.requests import ClientDisconnect, Request

from zenlake.http.shares import Holding, Shares, holder_of
from zenlake.rest.requests import RequestRefused, address_of

__all__ = ["BODY_SECONDS", "SLOWEST", "body_of"]

BODY_SECONDS: Final = 30.0
"""Seconds that a body may take, and more for what has come of it."""
NO_ROOM: Final = "requests that are being read hold all the memory for them; try again"
SLOWEST: Final = 1 << 16
"""Bytes a second that a long body comes with at least."""


@contextlib.asynccontextmanager
async def body_of(
    request: Request, most: int, memory: Shares, seconds: float = BODY_SECONDS
) -> AsyncIterator[bytes]:
    """Give the body of a request while it is answered; then it holds nothing of `memory`.

    Raises `RequestRefused` if it is too large or too slow, or all bodies together are too large.

    Args:
        request: whose body has not been read.
        most: how many bytes it may have.
        memory: bytes that all bodies share.
        seconds: how long it may take, if nothing of it has come.
    """
    held = Holding(memory, holder_of(address_of(request)))
    try:
        yield await _read(request, most, held, seconds)
    finally:
        held.close()


async def _read(request: Request, most: int, held: Holding, seconds: float) -> bytes:
    length = request.headers.get("content-length", "")
    if length.isdecimal() and int(length) > most:
        raise RequestRefused(413, f"a body has at most {most} bytes (plugins/rest/max_body)")
    parts: list[bytes] = []
    loop = asyncio.get_running_loop()
    began = loop.time()
    try:
        async with asyncio.timeout(seconds) as patience:
            async for part in request.stream():
                size = held.amount + len(part)
                if size > most:
                    raise RequestRefused(
                        413, f"a body has at most {most} bytes (plugins/rest/max_body)"
                    )
                if not held.hold(size):
                    raise RequestRefused(503, NO_ROOM, "memory")
                parts.append(part)
                patience.reschedule(began + seconds + size / SLOWEST)
    except ClientDisconnect:
        raise RequestRefused(400, "the body ended too early") from None
    except TimeoutError:
        taken = loop.time() - began
        raise RequestRefused(
            408, f"only {held.amount} bytes of the body came in {taken:.0f} s; send it faster"
        ) from None
    return b"".join(parts)
