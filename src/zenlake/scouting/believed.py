"""Which of the locators that others tell are dialled: addresses of the network, and no more.

What a stranger says becomes a connection of ours. So it may name a protocol of the network, a host
and a port; no file or device, no options (those after `#` belong to the owner of a node), no
address that means this machine to us unless it means that to the teller, too.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable
from typing import Final

from zenlake.errors import ZError
from zenlake.values.locator import Locator

__all__ = ["PROTOCOLS", "believed"]

PROTOCOLS: Final = frozenset(("tcp", "udp", "tls", "quic", "ws", "wss"))
"""Protocols that a stranger may have us speak; the others name files and devices of this one."""

Network = ipaddress.IPv4Network | ipaddress.IPv6Network


def believed(
    locators: Iterable[str], within: bool, networks: tuple[str, ...] | None = None
) -> list[str]:
    """The locators that may be dialled because a neighbour announced them.

    `within`: the teller is on this machine. `networks`: where they may be; None: anywhere.
    """
    allowed = None if networks is None else [ipaddress.ip_network(text) for text in networks]
    return [text for text in locators if _believed(text, within, allowed)]


def _believed(text: str, within: bool, networks: list[Network] | None) -> bool:
    try:
        locator = Locator.parse(text)
        if locator.protocol not in PROTOCOLS or not 0 < locator.port < 65536:
            return False
        host = locator.host
    except (ZError, ValueError):
        return False
    try:
        address = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        # A name: its resolver decides where it leads, so it needs networks to be free.
        return networks is None and host != "localhost" and not host.endswith(".localhost")
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is not None:
        address = address.ipv4_mapped
    if address.is_multicast or address.is_unspecified or str(address) == "255.255.255.255":
        return False
    if address.is_loopback:
        return within
    return networks is None or any(
        address.version == network.version and address in network for network in networks
    )
