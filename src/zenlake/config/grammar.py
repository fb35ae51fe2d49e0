"""The texts of a configuration that have a grammar of their own, and what they stand for."""

from __future__ import annotations

from ipaddress import ip_address
from typing import Annotated

from zenlake.clock import ZenohId
from zenlake.config.shape import TextShape
from zenlake.keys import KeyExpr, is_wild
from zenlake.values.locator import EndPoint

__all__ = ["Endpoint", "KeyText", "Namespace", "RegionName", "SizeRange", "SocketAddress", "Zid"]


def _namespace(text: str) -> KeyExpr:
    if is_wild(text):
        raise ValueError("wildcards cannot be put before other keys")
    return KeyExpr(text)


def _region_name(text: str) -> str:
    size = len(text.encode())
    if not 1 <= size <= 32:
        raise ValueError(f"it has {size} bytes")
    return text


def _socket_address(text: str) -> str:
    host, colon, port = text.rpartition(":")
    if not colon or not port.isascii() or not port.isdigit() or int(port[:6]) > 65535:
        raise ValueError("the port is missing or beyond 65535")
    bracketed = host.startswith("[") and host.endswith("]")
    address = ip_address(host[1:-1] if bracketed else host)
    if (address.version == 6) != bracketed:
        raise ValueError("brackets belong around the address of IPv6, and of no other")
    return text


def _size_range(text: str) -> str:
    start, dots, end = text.partition("..")
    if not dots:
        raise ValueError("the two dots are missing")
    for bound in (start, end):
        if bound and not (bound.isascii() and bound.isdigit() and len(bound) <= 20):
            raise ValueError(f"'{bound[:40]}' is not a number of bytes")
    return text


Zid = Annotated[
    ZenohId, TextShape("a Zenoh id (1 to 32 lower-case hexadecimal digits)", ZenohId.parse)
]
KeyText = Annotated[KeyExpr, TextShape("a key expression in canonical form", KeyExpr)]
Namespace = Annotated[KeyExpr, TextShape("a key expression without wildcards", _namespace)]
Endpoint = Annotated[
    EndPoint, TextShape("an endpoint (protocol/address?metadata#configuration)", EndPoint.parse)
]
RegionName = Annotated[str, TextShape("a name of 1 to 32 bytes", _region_name)]
SocketAddress = Annotated[str, TextShape("an IP address and a port (ip:port)", _socket_address)]
SizeRange = Annotated[str, TextShape("a range of bytes (least..most, both optional)", _size_range)]
