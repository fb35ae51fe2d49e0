"""The body of a request, within bounds of size and of time.

Requests that are read count among those that are answered at a time (`max_requests`). A sender that
stops, or sends a byte now and then, would have such a place for ever.
"""

from __future__ import annotations

import asyncio
from typing import Final

from starlette.requests import ClientDisconnect, Request

from zenlake.rest.requests import RequestRefused

__all__ = ["BODY_SECONDS", "SLOWEST", "body_of"]

BODY_SECONDS: Final = 30.0
"""Seconds that a body may take, and more for what has come of it."""
SLOWEST: Final = 1 << 16
"""Bytes a second that a long body comes with at least."""


async def body_of(request: Request, most: int, seconds: float = BODY_SECONDS) -> bytes:
    """The body of a request; raises `RequestRefused` if it is too large or too slow.

    Args:
        request: whose body has not been read.
        most: how many bytes it may have.
        seconds: how long it may take, if nothing of it has come.
    """
    length = request.headers.get("content-length", "")
    if length.isdecimal() and int(length) > most:
        raise RequestRefused(413, f"a body has at most {most} bytes (plugins/rest/max_body)")
    parts: list[bytes] = []
    size = 0
    loop = asyncio.get_running_loop()
    began = loop.time()
    try:
        async with asyncio.timeout(seconds) as patience:
            async for part in request.stream():
                size += len(part)
                if size > most:
                    raise RequestRefused(
                        413, f"a body has at most {most} bytes (plugins/rest/max_body)"
                    )
                parts.append(part)
                patience.reschedule(began + seconds + size / SLOWEST)
    except ClientDisconnect:
        raise RequestRefused(400, "the body ended too early") from None
    except TimeoutError:
        taken = loop.time() - began
        raise RequestRefused(
            408, f"only {size} bytes of the body came in {taken:.0f} s; send it faster"
        ) from None
    return b"".join(parts)
