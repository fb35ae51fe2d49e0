"""The network interfaces of this machine and their addresses.

Python can name interfaces but not tell their addresses, so the C library is asked
(`c_interfaces`).
"""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Callable
from typing import NamedTuple

__all__ = [
    "Address",
    "Interface",
    "Interfaces",
    "Look",
    "interfaces",
    "interfaces_at",
    "local_addresses",
]

Address = ipaddress.IPv4Address | ipaddress.IPv6Address


class Interface(NamedTuple):
    """One interface of this machine."""

    name: str
    number: int
    up: bool
    loopback: bool
    multicast: bool
    addresses: tuple[Address, ...]


Interfaces = tuple[Interface, ...]
Look = Callable[[], Interfaces]
"""Lists the interfaces that there are at a moment."""


def interfaces(look: Look | None = None) -> Interfaces:
    """All interfaces, with the addresses they have at this moment; guessed where
    `look`, by default the C library, fails.
    """
    # `ctypes` takes long to load, and nodes that listen nowhere have no use for it.
    from zenlake.links.c_interfaces import interfaces_of_c_library

    try:
        return (look or interfaces_of_c_library)()
    except (OSError, AttributeError):
        return _from_host_name()


def local_addresses(version: int | None = None, present: Interfaces | None = None) -> list[Address]:
    """The addresses under which others may reach this machine; loopback if there are no others.

    Told to another machine, a loopback address names that machine itself. Link-local addresses
    of IPv6 are left out for the same reason: they mean nothing without the name that *this*
    machine gives to an interface.

    Args:
        version: of the addresses, 4 or 6; None for both.
        present: the interfaces; None for those of this machine.
    """
    far: list[Address] = []
    near: list[Address] = []
    for interface in interfaces() if present is None else present:
        if not interface.up:
            continue
        for address in interface.addresses:
            if version not in (None, address.version):
                continue
            if address.is_loopback:
                near.append(address)
            elif not address.is_link_local or address.version == 4:
                far.append(address)
    far.sort(key=_version)
    near.sort(key=_version)
    return far or near


def interfaces_at(host: str) -> list[str]:
    """The names of the interfaces that have this address."""
    try:
        wanted = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return []
    return [each.name for each in interfaces() if wanted in each.addresses]


def _version(address: Address) -> int:
    return address.version


def _from_host_name() -> Interfaces:
    """A guess for systems without `getifaddrs`: what the host's own name resolves to."""
    loopback: Address = ipaddress.IPv4Address("127.0.0.1")
    interfaces = [Interface("loopback", 0, True, True, False, (loopback,))]
    try:
        infos = socket.getaddrinfo(socket.gethostname(), None)
    except OSError:
        infos = []
    texts = {str(info[4][0]).partition("%")[0] for info in infos}
    others = tuple(ipaddress.ip_address(text) for text in sorted(texts))
    if others:
        interfaces.append(Interface("host", 0, True, False, True, others))
    return tuple(interfaces)
