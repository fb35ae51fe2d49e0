"""The network interfaces of this machine as its C library lists them."""

from __future__ import annotations

import ctypes
import ipaddress
import socket
import sys
from typing import Final

from zenlake.links.interfaces import Address, Interface, Interfaces

__all__ = ["interfaces_of_c_library"]

_UP: Final = 0x1
_LOOPBACK: Final = 0x8
_MULTICAST: Final = 0x1000 if sys.platform == "linux" else 0x8000


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


def interfaces_of_c_library() -> Interfaces:
    """All interfaces; raises `OSError` or `AttributeError` where the library cannot tell."""
    # The process itself, which has its C library loaded: looking for the file starts `ldconfig`.
    libc = ctypes.CDLL(None, use_errno=True)
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
