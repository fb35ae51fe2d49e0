"""The network interfaces of this machine and their addresses.

Python can name interfaces but not tell their addresses, so the C library is asked.
"""

from __future__ import annotations

import ctypes
import ctypes.util
import ipaddress
import socket
import sys
from collections.abc import Callable
from typing import Final, NamedTuple

__all__ = ["Interface", "Interfaces", "Look", "interfaces", "interfaces_at", "local_addresses"]

Address = ipaddress.IPv4Address | ipaddress.IPv6Address

_UP: Final = 0x1
_LOOPBACK: Final = 0x8
_MULTICAST: Final = 0x1000 if sys.platform == "linux" else 0x8000


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


class _SocketAddress(ctypes.Structure):
    # Linux begins with two bytes of family; the BSDs with one of length and one of family.
    # The rest is long enough for the addresses of both families.
    _fields_ = (("head", ctypes.c_uint8 * 2), ("rest", ctypes.c_uint8 * 26))


class _IfAddrs(ctypes.Structure):
    pass


_IfAddrs._fields_ = [
    ("next", ctypes.POINTER(_IfAddrs)),
    ("name", ctypes.c_char_p),
    ("flags", ctypes.c_uint),
    ("address", ctypes.POINTER(_SocketAddress)),
    # The rest is not read.
]


def interfaces(look: Look | None = None) -> Interfaces:
    """All interfaces, with the addresses they have at this moment; guessed where
    `look`, by default the C library, fails.
    """
    try:
        return (look or _from_c_library)()
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


def _from_c_library() -> Interfaces:
    libc = ctypes.CDLL(ctypes.util.find_library("c"), use_errno=True)
    first = ctypes.POINTER(_IfAddrs)()
    if libc.getifaddrs(ctypes.byref(first)) != 0:
        raise OSError(ctypes.get_errno(), "getifaddrs failed")
    flags: dict[str, int] = {}
    addresses: dict[str, list[Address]] = {}
    try:
        entry = first
        while bool(entry):  # a null pointer is false
            name = entry.contents.name.decode()
            flags[name] = entry.contents.flags
            known = addresses.setdefault(name, [])
            address = _address(entry.contents.address) if entry.contents.address else None
            if address is not None:
                known.append(address)
            entry = entry.contents.next
    finally:
        libc.freeifaddrs(first)
    numbers = {name: number for number, name in socket.if_nameindex()}
    return tuple(
        Interface(
            name,
            numbers.get(name, 0),
            bool(flags[name] & _UP),
            bool(flags[name] & _LOOPBACK),
            bool(flags[name] & _MULTICAST),
            tuple(addresses_of),
        )
        for name, addresses_of in addresses.items()
    )


def _address(pointer: ctypes._Pointer[_SocketAddress]) -> Address | None:
    head = pointer.contents.head
    family = int.from_bytes(bytes(head), sys.byteorder) if sys.platform == "linux" else head[1]
    rest = bytes(pointer.contents.rest)
    if family == socket.AF_INET:
        return ipaddress.IPv4Address(rest[2:6])
    if family == socket.AF_INET6:
        return ipaddress.IPv6Address(rest[6:22])
    return None


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
