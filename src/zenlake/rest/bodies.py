"""The body of a request, within bounds of size and of time.

A sender that stops, or sends a byte now and then, is refused after a while. Until its body is there
a request has no place among those that are answered (`max_requests`), so that it keeps nobody out.
What all bodies hold together is bounded, and so is what those of one address hold.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Final, final

from starlette.requests import ClientDisconnect, Request

from zenlake.http.shares import Shares, holder_of
from zenlake.rest.requests import RequestRefused, address_of

__all__ = ["BODY_SECONDS", "SLOWEST", "body_of"]

BODY_SECONDS: Final = 30.0
"""Seconds that a body may take, and more for what has come of it."""
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
    with _Held(memory, holder_of(address_of(request))) as held:
        yield await _read(request, most, held, seconds)


@final
class _Held:
    """What one body holds of the memory for all."""

    def __init__(self, memory: Shares, holder: str) -> None:
        self._memory = memory
        self._holder = holder
        self.size = 0

    def __enter__(self) -> _Held:
        return self

    def __exit__(self, *_: object) -> None:
        self._memory.give_back(self._holder, self.size)

    def add(self, size: int) -> None:
        if not self._memory.take(self._holder, size):
            raise RequestRefused(
                503, "requests that are being read hold all the memory for them; try again"
            )
        self.size += size


async def _read(request: Request, most: int, held: _Held, seconds: float) -> bytes:
    length = request.headers.get("content-length", "")
    if length.isdecimal() and int(length) > most:
        raise RequestRefused(413, f"a body has at most {most} bytes (plugins/rest/max_body)")
    parts: list[bytes] = []
    loop = asyncio.get_running_loop()
    began = loop.time()
    try:
        async with asyncio.timeout(seconds) as patience:
            async for part in request.stream():
                if held.size + len(part) > most:
                    raise RequestRefused(
                        413, f"a body has at most {most} bytes (plugins/rest/max_body)"
                    )
                held.add(len(part))
                parts.append(part)
                patience.reschedule(began + seconds + held.size / SLOWEST)
    except ClientDisconnect:
        raise RequestRefused(400, "the body ended too early") from None
    except TimeoutError:
        taken = loop.time() - began
        raise RequestRefused(
            408, f"only {held.size} bytes of the body came in {taken:.0f} s; send it faster"
        ) from None
    return b"".join(parts)
