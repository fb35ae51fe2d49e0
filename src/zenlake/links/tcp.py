"""Links over TCP."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from typing import final

from zenlake.errors import LinkError
from zenlake.links.inet import (
    InetAddress,
    address_text,
    apply_options,
    bound,
    host_of,
    listening_locators,
    resolve,
)
from zenlake.links.link import LinkListener, OnLink, UnicastLink, reason
from zenlake.links.stream import StreamAcceptor, StreamLink
from zenlake.values.locator import EndPoint

__all__ = ["connect", "listen"]


async def connect(
    endpoint: EndPoint, loop: asyncio.AbstractEventLoop, timeout: float
) -> UnicastLink:
    """A link to the first address of the endpoint that answers.

    Each address has its share of the time that is left, so that one which swallows everything
    does not keep the others from being tried.
    """
    deadline = loop.time() + timeout
    tried: list[str] = []
    try:
        async with asyncio.timeout_at(deadline):
            places = await resolve(endpoint.host, endpoint.port, socket.SOCK_STREAM, loop)
    except TimeoutError as error:
        raise LinkError(
            f"{endpoint}: the name '{endpoint.host}' did not resolve within {timeout:g} s"
        ) from error
    except LinkError as error:
        raise LinkError(f"{endpoint}: {error}") from error
    for index, place in enumerate(places):
        share = loop.time() + (deadline - loop.time()) / (len(places) - index)
        try:
            async with asyncio.timeout_at(share):
                sock = await _connected(endpoint, place, loop)
            return _link(sock, loop)
        except (OSError, TimeoutError) as error:
            tried.append(f"{address_text(place[1])}: {reason(error)}")
    raise LinkError(f"{endpoint}: cannot connect to {'; '.join(tried)}")


async def listen(
    endpoint: EndPoint, loop: asyncio.AbstractEventLoop, on_link: OnLink
) -> LinkListener:
    """Take connections at the endpoint."""
    sockets = await bound(endpoint, socket.SOCK_STREAM, loop)
    try:
        return _TcpListener(sockets, loop, on_link)
    except OSError as error:
        for sock in sockets:
            sock.close()
        raise LinkError(f"{endpoint}: cannot listen: {reason(error)}") from error


@final
class _TcpListener(LinkListener):
    def __init__(
        self, sockets: list[socket.socket], loop: asyncio.AbstractEventLoop, on_link: OnLink
    ) -> None:
        self._loop = loop
        self._on_link = on_link
        self._acceptors: list[StreamAcceptor] = []
        try:
            for sock in sockets:
                self._acceptors.append(StreamAcceptor(sock, loop, self._accepted))
        except OSError:
            self.close()
            raise

    def locators(self) -> list[str]:
        """Where to reach it."""
        return [
            locator
            for acceptor in self._acceptors
            for locator in listening_locators("tcp", acceptor.sock)
        ]

    def close(self) -> None:
        """Accept no more links."""
        for acceptor in self._acceptors:
            acceptor.close()
        self._acceptors.clear()

    def _accepted(self, sock: socket.socket, _address: object) -> None:
        try:
            link = _link(sock, self._loop)
        except OSError:  # it was gone before we looked
            sock.close()
            return
        self._on_link(link)


async def _connected(
    endpoint: EndPoint, place: InetAddress, loop: asyncio.AbstractEventLoop
) -> socket.socket:
    family, address = place
    sock = socket.socket(family, socket.SOCK_STREAM)
    try:
        sock.setblocking(False)
        apply_options(sock, endpoint)
        await loop.sock_connect(sock, address)
    except BaseException:
        sock.close()
        raise
    return sock


def _link(sock: socket.socket, loop: asyncio.AbstractEventLoop) -> StreamLink:
    local, remote = sock.getsockname(), sock.getpeername()
    with contextlib.suppress(OSError):
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return StreamLink(
        sock, loop, f"tcp/{address_text(local)}", f"tcp/{address_text(remote)}", host_of(local)
    )
