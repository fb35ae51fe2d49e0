"""Accepts connections one by one: each gets a seat before anything is done for it.

A loop of the event loop's own would accept as many at once as wait, and would give a TLS handshake
a minute before anybody counts it.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
import ssl
from collections.abc import Callable
from typing import Final

from zenlake.http.connections import Connections, Seat

__all__ = ["accept_connections"]

log = logging.getLogger("zenlake.http")

NO_DESCRIPTOR_SECONDS: Final = 0.1
"""Seconds to wait where the process has no descriptor for another connection."""
FULL: Final = (
    b"HTTP/1.1 503 Service Unavailable\r\ncontent-type: text/plain; charset=utf-8\r\n"
    b"content-length: 37\r\nretry-after: 5\r\nconnection: close\r\n\r\n"
    b"too many connections; try again later"
)


async def accept_connections(
    sock: socket.socket,
    connections: Connections,
    protocol: Callable[[Seat], asyncio.Protocol],
    tls: ssl.SSLContext | None,
) -> None:
    """Accept connections until it is cancelled; `protocol` makes what serves one."""
    loop = asyncio.get_running_loop()
    sock.setblocking(False)
    opening: set[asyncio.Task[None]] = set()
    while True:
        try:
            link, address = await loop.sock_accept(sock)
        except OSError as error:
            connections.refused["descriptors"] += 1
            log.debug("no connection was accepted: %s", error)
            await asyncio.sleep(NO_DESCRIPTOR_SECONDS)
            continue
        seat = connections.admit(str(address[0]))
        if seat is None:
            if tls is None:
                with contextlib.suppress(OSError):
                    link.send(FULL)
            link.close()
        else:
            task = loop.create_task(_open(link, connections, seat, protocol, tls))
            opening.add(task)
            task.add_done_callback(opening.discard)
        # Others on this loop have their turn, however many connections wait.
        await asyncio.sleep(0)


async def _open(
    link: socket.socket,
    connections: Connections,
    seat: Seat,
    protocol: Callable[[Seat], asyncio.Protocol],
    tls: ssl.SSLContext | None,
) -> None:
    loop = asyncio.get_running_loop()
    seconds = None if tls is None else connections.limits.first_byte_seconds
    try:
        await loop.connect_accepted_socket(
            lambda: protocol(seat), link, ssl=tls, ssl_handshake_timeout=seconds
        )
    except (OSError, ssl.SSLError, TimeoutError) as error:
        connections.refused["tls"] += 1
        log.debug("a connection was not opened: %s", error)
        link.close()
        seat.leave()
    except BaseException:
        link.close()
        seat.leave()
        raise
