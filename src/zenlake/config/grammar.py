"""The texts of a configuration that have a grammar of their own."""

from __future__ import annotations

from ipaddress import ip_address
from typing import Annotated

from zenlake.clock.zid import ZenohId
from zenlake.config.shape import Text
from zenlake.keys.matching import check, is_wild

__all__ = ["Endpoint", "KeyText", "Namespace", "RegionName", "SizeRange", "SocketAddress", "Zid"]


def _check_zid(text: str) -> None:
    ZenohId.parse(text)


def _check_namespace(text: str) -> None:
    check(text)
    if is_wild(text):
        raise ValueError("it may not have wildcards")


def _check_endpoint(text: str) -> None:
    protocol, slash, rest = text.partition("/")
    if not slash or not protocol:
        raise ValueError("the protocol is missing; write tcp/host:port")
    address = rest.partition("#")[0].partition("?")[0]
    if not address:
        raise ValueError("the address is missing; write tcp/host:port")


def _check_region_name(text: str) -> None:
    size = len(text.encode())
    if not 1 <= size <= 32:
        raise ValueError(f"it has {size} bytes")


def _check_socket_address(text: str) -> None:
    host, colon, port = text.rpartition(":")
    if not colon or not port.isascii() or not port.isdigit() or int(port[:6]) > 65535:
        raise ValueError("the port is missing or beyond 65535")
    bracketed = host.startswith("[") and host.endswith("]")
    address = ip_address(host[1:-1] if bracketed else host)
    if (address.version == 6) != bracketed:
        raise ValueError("brackets belong around the address of IPv6, and of no other")


def _check_size_range(text: str) -> None:
    start, dots, end = text.partition("..")
    if not dots:
        raise ValueError("the two dots are missing")
    for bound in (start, end):
        if bound and not (bound.isascii() and bound.isdigit() and len(bound) <= 20):
            raise ValueError(f"'{bound[:40]}' is not a number of bytes")


Zid = Annotated[str, Text("a Zenoh id (1 to 32 lower-case hexadecimal digits)", _check_zid)]
KeyText = Annotated[str, Text("a key expression in canonical form", check)]
Namespace = Annotated[str, Text("a key expression without wildcards", _check_namespace)]
Endpoint = Annotated[
    str, Text("an endpoint (protocol/address?metadata#configuration)", _check_endpoint)
]
RegionName = Annotated[str, Text("a name of 1 to 32 bytes", _check_region_name)]
SocketAddress = Annotated[str, Text("an IP address and a port (ip:port)", _check_socket_address)]
SizeRange = Annotated[str, Text("a range of bytes (least..most, both optional)", _check_size_range)]
