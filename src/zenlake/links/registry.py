"""The protocols that are implemented: from an endpoint to a link or a listener.

    link = await connect(EndPoint.parse("tcp/127.0.0.1:7447"), loop, timeout=10)
    listening = await listen(EndPoint.parse("tcp/[::]:7447"), loop, on_link)

What is not honoured, be it a protocol, an option or metadata, is refused by name. Modules of
protocols other than tcp are imported when the first link of theirs is made.
"""

from __future__ import annotations

import asyncio
import importlib
from collections.abc import Awaitable, Callable
from importlib.util import find_spec
from typing import Final

from zenlake.config.model_transport import LinkSettings
from zenlake.errors import LocatorError
from zenlake.links import tcp
from zenlake.links.link import MAX_BATCH, UDP_BATCH, LinkListener, OnLink, UnicastLink
from zenlake.links.options import (
    INET,
    RETRY,
    SERIAL,
    TLS,
    LinkOption,
    Metadata,
    Side,
    check_metadata,
    check_options,
    only_inet,
    shown,
)
from zenlake.links.serial_frame import MAX_PAYLOAD
from zenlake.records import record
from zenlake.values.locator import EndPoint, Locator

__all__ = ["NOT_YET", "PROTOCOLS", "Protocol", "check", "connect", "listen", "supports"]

Connect = Callable[
    [EndPoint, asyncio.AbstractEventLoop, float, LinkSettings], Awaitable[UnicastLink]
]
Listen = Callable[
    [EndPoint, asyncio.AbstractEventLoop, OnLink, LinkSettings], Awaitable[LinkListener]
]

DEFAULTS: Final = LinkSettings()


@record(frozen=True, slots=True)
class Protocol:
    """A kind of link: how it is made, and which options an endpoint may have."""

    name: str
    summary: str
    example: str
    batch: int
    connect: Connect
    listen: Listen
    options: tuple[LinkOption, ...]
    metadata: tuple[Metadata, ...]
    needs: str = ""
    """The package that it takes, if it is not part of an ordinary installation."""
    extra: str = ""
    """What to install to have that package."""


def _imported(module: str, *, configured: bool = True) -> tuple[Connect, Listen]:
    """How to connect and listen by a module that is imported when it is needed.

    Args:
        module: Its name below `zenlake.links`; packages that it needs may not be installed.
        configured: Whether its functions take `transport/link` of the configuration too.
    """

    async def connect(
        endpoint: EndPoint, loop: asyncio.AbstractEventLoop, timeout: float, settings: LinkSettings
    ) -> UnicastLink:
        made = importlib.import_module(f"zenlake.links.{module}")
        more = (settings,) if configured else ()
        link: UnicastLink = await made.connect(endpoint, loop, timeout, *more)
        return link

    async def listen(
        endpoint: EndPoint, loop: asyncio.AbstractEventLoop, on_link: OnLink, settings: LinkSettings
    ) -> LinkListener:
        made = importlib.import_module(f"zenlake.links.{module}")
        more = (settings,) if configured else ()
        listening: LinkListener = await made.listen(endpoint, loop, on_link, *more)
        return listening

    return connect, listen


async def _tcp_connect(
    endpoint: EndPoint, loop: asyncio.AbstractEventLoop, timeout: float, settings: LinkSettings
) -> UnicastLink:
    sized = only_inet(endpoint, settings.tcp.so_sndbuf, settings.tcp.so_rcvbuf)
    return await tcp.connect(sized, loop, timeout)


async def _tcp_listen(
    endpoint: EndPoint, loop: asyncio.AbstractEventLoop, on_link: OnLink, settings: LinkSettings
) -> LinkListener:
    sized = only_inet(endpoint, settings.tcp.so_sndbuf, settings.tcp.so_rcvbuf)
    return await tcp.listen(sized, loop, on_link)


_WS: Final = _imported("ws")
_PRIORITIES: Final = Metadata(
    "prio",
    tuple(f"{a}-{b}" for a in range(8) for b in range(a, 8)) + tuple(str(a) for a in range(8)),
    "Which priorities this link of a session is for, if there are several (`max_links`).",
    "`first-last`, of 0 to 7",
)
_RELIABLE: Final = Metadata(
    "rel", ("0", "1"), "Whether this link of a session is for what must not be lost."
)
_BEST_EFFORT: Final = Metadata(
    "rel", ("0",), "Says that datagrams may be lost, as they may: for what may be lost."
)

PROTOCOLS: Final[dict[str, Protocol]] = {
    protocol.name: protocol
    for protocol in (
        Protocol(
            "tcp",
            "A stream over the network, IPv4 or IPv6; `[::]` listens for both.",
            "tcp/192.168.0.1:7447",
            MAX_BATCH,
            _tcp_connect,
            _tcp_listen,
            (*INET, *RETRY),
            (_PRIORITIES, _RELIABLE),
        ),
        Protocol(
            "udp",
            "Datagrams over the network, which may be lost. Listening on the address of a "
            "multicast group (`udp/224.0.0.225:7447#iface=eth0`) joins it: publications go to all "
            "of its members at once, without a session; queries do not cross it.",
            "udp/192.168.0.1:7447",
            UDP_BATCH,
            *_imported("udp", configured=False),
            (*INET, *RETRY),
            (_PRIORITIES, _BEST_EFFORT),
        ),
        Protocol(
            "unixsock-stream",
            "A stream between processes of one machine, by a path in its file system.",
            "unixsock-stream//run/zenoh.sock",
            MAX_BATCH,
            *_imported("unix", configured=False),
            RETRY,
            (_PRIORITIES, _RELIABLE),
        ),
        Protocol(
            "tls",
            "As tcp, encrypted; the side that is connected to shows a certificate, with mTLS both.",
            "tls/node.example:7447",
            MAX_BATCH,
            *_imported("tls"),
            (*INET, *TLS, *RETRY),
            (_PRIORITIES, _RELIABLE),
        ),
        Protocol(
            "ws",
            "A WebSocket, one batch in each binary message.",
            "ws/192.168.0.1:7447",
            MAX_BATCH,
            *_WS,
            (*INET, *RETRY),
            (_PRIORITIES, _RELIABLE),
            "wsproto",
            "ws",
        ),
        Protocol(
            "wss",
            "A WebSocket over TLS.",
            "wss/node.example:7447",
            MAX_BATCH,
            *_WS,
            (*INET, *TLS, *RETRY),
            (_PRIORITIES, _RELIABLE),
            "wsproto",
            "ws",
        ),
        Protocol(
            "quic",
            "One stream of a QUIC connection, which is always encrypted; no mTLS when listening.",
            "quic/node.example:7447",
            MAX_BATCH,
            *_imported("quic"),
            (*INET, *TLS, *RETRY),
            (
                _PRIORITIES,
                Metadata("rel", ("1",), "The one stream is reliable."),
                Metadata("multistream", ("0", "auto"), "One stream is used, whatever is allowed."),
                Metadata("mixed_rel", ("0", "auto"), "Everything is sent reliably."),
            ),
            "aioquic",
            "quic",
        ),
        Protocol(
            "serial",
            "A serial line between two, such as to a board; damaged batches are dropped.",
            "serial//dev/ttyUSB0#baudrate=115200",
            MAX_PAYLOAD,
            *_imported("serial", configured=False),
            (*SERIAL, *RETRY),
            (_PRIORITIES, _BEST_EFFORT),
        ),
    )
}

NOT_YET: Final = ("unixpipe", "vsock")
"""Protocols of Zenoh that have no links here."""


async def connect(
    endpoint: EndPoint,
    loop: asyncio.AbstractEventLoop,
    timeout: float,
    settings: LinkSettings = DEFAULTS,
) -> UnicastLink:
    """A link to the endpoint, not yet started; `settings` is `transport/link` of a configuration.

    Raises `LocatorError` when the endpoint asks for what is not honoured, and `LinkError` when
    it cannot be reached, with every address that was tried and why it failed.
    """
    protocol = check(endpoint, "connect", settings)
    return await protocol.connect(endpoint, loop, timeout, settings)


async def listen(
    endpoint: EndPoint,
    loop: asyncio.AbstractEventLoop,
    on_link: OnLink,
    settings: LinkSettings = DEFAULTS,
) -> LinkListener:
    """Take links at the endpoint, each handed to `on_link` before it is started."""
    protocol = check(endpoint, "listen", settings)
    return await protocol.listen(endpoint, loop, on_link, settings)


def check(endpoint: EndPoint, side: Side, settings: LinkSettings = DEFAULTS) -> Protocol:
    """The protocol of an endpoint, all of which is honoured; else `LocatorError`."""
    protocol = PROTOCOLS.get(endpoint.protocol)
    if protocol is None:
        known = ", ".join(sorted(PROTOCOLS))
        what = "is not spoken yet" if endpoint.protocol in NOT_YET else "is no protocol"
        raise LocatorError(f"'{shown(endpoint)}': '{endpoint.protocol}' {what}; these are: {known}")
    if settings.protocols is not None and protocol.name not in settings.protocols:
        raise LocatorError(
            f"'{shown(endpoint)}': '{protocol.name}' is not among transport/link/protocols, "
            f"which allows: {', '.join(settings.protocols) or 'none'}"
        )
    if protocol.needs and find_spec(protocol.needs) is None:
        raise LocatorError(
            f"'{shown(endpoint)}': '{protocol.name}' needs the package {protocol.needs}, which is "
            f"not installed; run: pip install 'zenlake[{protocol.extra}]'"
        )
    if protocol.name not in ("unixsock-stream", "serial"):
        endpoint.port  # noqa: B018 - raises when the address has none
    check_options(endpoint, protocol.options, side)
    check_metadata(endpoint, protocol.metadata)
    return protocol


def supports(locator: str) -> bool:
    """Whether a locator that another node announced could be connected to."""
    try:
        check(EndPoint(Locator.parse(locator)), "connect")
    except LocatorError:
        return False
    return True
