"""Which protocols there are, and the way from an endpoint to a link.

    link = await connect(EndPoint.parse("tcp/127.0.0.1:7447"), loop, timeout=10)
    listening = await listen(EndPoint.parse("tcp/[::]:7447"), loop, on_link)

What is not honoured, be it a protocol, an option or metadata, is refused by name.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final

from zenlake.errors import LocatorError
from zenlake.links import tcp, udp, unix
from zenlake.links.link import MAX_BATCH, Link, Listening, OnLink
from zenlake.links.options import (
    BIND,
    DSCP,
    IFACE,
    RETRY,
    SO_RCVBUF,
    SO_SNDBUF,
    Metadata,
    Option,
    Side,
    check_metadata,
    check_options,
)
from zenlake.values.locator import EndPoint, Locator

__all__ = ["NOT_YET", "PROTOCOLS", "Protocol", "check", "connect", "listen", "supports"]


@dataclass(frozen=True, slots=True)
class Protocol:
    """A kind of link: how it is made, and what an endpoint may say of it."""

    name: str
    summary: str
    example: str
    batch: int
    connect: Callable[[EndPoint, asyncio.AbstractEventLoop, float], Awaitable[Link]]
    listen: Callable[[EndPoint, asyncio.AbstractEventLoop, OnLink], Awaitable[Listening]]
    options: tuple[Option, ...]
    metadata: tuple[Metadata, ...]


_INET: Final = (IFACE, BIND, SO_SNDBUF, SO_RCVBUF, DSCP, *RETRY)
_RELIABLE: Final = Metadata("rel", ("1",), "Says that the link is reliable, as it is anyway.")
_BEST_EFFORT: Final = Metadata("rel", ("0",), "Says that datagrams may be lost, as they may.")

PROTOCOLS: Final[dict[str, Protocol]] = {
    protocol.name: protocol
    for protocol in (
        Protocol(
            "tcp",
            "A stream over the network, IPv4 or IPv6; `[::]` listens for both.",
            "tcp/192.168.0.1:7447",
            MAX_BATCH,
            tcp.connect,
            tcp.listen,
            _INET,
            (_RELIABLE,),
        ),
        Protocol(
            "udp",
            "Datagrams over the network, which may be lost.",
            "udp/192.168.0.1:7447",
            udp.MTU,
            udp.connect,
            udp.listen,
            _INET,
            (_BEST_EFFORT,),
        ),
        Protocol(
            unix.PROTOCOL,
            "A stream between processes of one machine, by a path in its file system.",
            "unixsock-stream//run/zenoh.sock",
            MAX_BATCH,
            unix.connect,
            unix.listen,
            RETRY,
            (_RELIABLE,),
        ),
    )
}

NOT_YET: Final = ("quic", "serial", "tls", "unixpipe", "vsock", "ws")
"""Protocols of Zenoh that have no links here."""


async def connect(endpoint: EndPoint, loop: asyncio.AbstractEventLoop, timeout: float) -> Link:
    """A link to the endpoint, not yet started.

    Raises `LocatorError` when the endpoint asks for what is not honoured, and `LinkError` when
    there is no way, with every address that was tried and why it failed.
    """
    return await check(endpoint, "connect").connect(endpoint, loop, timeout)


async def listen(endpoint: EndPoint, loop: asyncio.AbstractEventLoop, on_link: OnLink) -> Listening:
    """Take links at the endpoint, each handed to `on_link` before it is started."""
    return await check(endpoint, "listen").listen(endpoint, loop, on_link)


def check(endpoint: EndPoint, side: Side) -> Protocol:
    """The protocol of an endpoint, all of which is honoured; else `LocatorError`."""
    protocol = PROTOCOLS.get(endpoint.protocol)
    if protocol is None:
        known = ", ".join(sorted(PROTOCOLS))
        what = "is not spoken yet" if endpoint.protocol in NOT_YET else "is no protocol"
        raise LocatorError(f"'{endpoint}': '{endpoint.protocol}' {what}; these are: {known}")
    if protocol.name != unix.PROTOCOL:
        endpoint.port  # noqa: B018 - raises when the address has none
    check_options(endpoint, protocol.options, side)
    check_metadata(endpoint, protocol.metadata)
    return protocol


def supports(locator: str) -> bool:
    """Whether a locator that another node told could be connected to."""
    try:
        check(EndPoint(Locator.parse(locator)), "connect")
    except LocatorError:
        return False
    return True
