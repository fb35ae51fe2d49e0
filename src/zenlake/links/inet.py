"""Sockets of the internet: names to addresses, addresses to text, options onto sockets."""

from __future__ import annotations

import asyncio
import ipaddress
import socket
from typing import Final

from zenlake.errors import LinkError
from zenlake.links.interfaces import local_addresses
from zenlake.links.link import reason
from zenlake.links.options import parse_integer, traffic_class
from zenlake.values.locator import EndPoint, split_host_port

__all__ = [
    "InetAddress",
    "address_text",
    "apply_options",
    "bound",
    "host_of",
    "listening_locators",
    "resolve",
]

MAX_PLACES: Final = 16
"""How many addresses of one name are tried."""


SocketAddress = tuple[str, int] | tuple[str, int, int, int]
InetAddress = tuple[socket.AddressFamily, SocketAddress]


async def resolve(
    host: str, port: int, kind: socket.SocketKind, loop: asyncio.AbstractEventLoop
) -> list[InetAddress]:
    """The addresses of a host, in the order to try them.

    A numeric address needs no resolver and is not handed to another thread.
    """
    try:
        try:
            addresses = socket.getaddrinfo(host, port, type=kind, flags=socket.AI_NUMERICHOST)
        except socket.gaierror:
            addresses = list(await loop.getaddrinfo(host, port, type=kind))
    except (OSError, ValueError) as error:  # a text that cannot be a name is a ValueError
        raise LinkError(f"the name '{host}' does not resolve: {reason(error)}") from error
    places: list[InetAddress] = []
    for family, _, _, _, address in addresses:
        place: InetAddress = (family, address)  # type: ignore[assignment]
        if place not in places and len(places) < MAX_PLACES:
            places.append(place)
    if not places:
        raise LinkError(f"the name '{host}' has no internet address")
    return places


def host_of(address: object) -> str:
    """The host of a socket's address; an IPv4 one that came over IPv6 as what it is."""
    assert isinstance(address, tuple)
    host = str(address[0])
    if host.startswith("::ffff:") and "." in host:
        return host[7:]
    return host


def address_text(address: object) -> str:
    """A socket's address as locators write it."""
    assert isinstance(address, tuple)
    host = host_of(address)
    return f"[{host}]:{address[1]}" if ":" in host else f"{host}:{address[1]}"


def apply_options(sock: socket.socket, endpoint: EndPoint) -> None:
    """Set the endpoint's options on a socket, before it is bound or connected."""
    for name, option in (("so_sndbuf", socket.SO_SNDBUF), ("so_rcvbuf", socket.SO_RCVBUF)):
        size = parse_integer(endpoint.get(name) or "")
        if size:
            sock.setsockopt(socket.SOL_SOCKET, option, size)
    marked = endpoint.get("dscp")
    if marked is not None:
        byte = traffic_class(marked) or 0
        if sock.family == socket.AF_INET6:
            sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_TCLASS, byte)
        else:
            sock.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, byte)
    interface = endpoint.get("iface")
    if interface is not None:
        device = getattr(socket, "SO_BINDTODEVICE", None)
        if device is None:
            raise LinkError(f"'{endpoint}': this system cannot bind to an interface; use 'bind'")
        sock.setsockopt(socket.SOL_SOCKET, device, interface.encode() + b"\0")
    source = endpoint.get("bind")
    if source is not None:
        host, port = split_host_port(source)
        sock.bind((host, port))


async def bound(
    endpoint: EndPoint,
    kind: socket.SocketKind,
    loop: asyncio.AbstractEventLoop,
    has_ipv6: bool | None = None,
) -> list[socket.socket]:
    """Sockets bound to every address of an endpoint; `[::]` takes IPv4 as well.

    A machine without IPv6 that shall listen at `[::]` listens at `0.0.0.0`, since `[::]` stands for
    every address there is; `has_ipv6` None: find out.
    """
    places = await resolve(endpoint.host, endpoint.port, kind, loop)
    if endpoint.host == "::" and not (_binds_ipv6() if has_ipv6 is None else has_ipv6):
        places = [(socket.AF_INET, ("0.0.0.0", endpoint.port))]
    made: list[socket.socket] = []
    try:
        for place in places:
            made.append(_bound_one(endpoint, kind, place))
    except OSError as error:
        for sock in made:
            sock.close()
        where = address_text(place[1])
        raise LinkError(f"{endpoint}: cannot listen at {where}: {reason(error)}") from error
    return made


def _bound_one(endpoint: EndPoint, kind: socket.SocketKind, place: InetAddress) -> socket.socket:
    family, address = place
    sock = socket.socket(family, kind)
    try:
        sock.setblocking(False)
        if kind == socket.SOCK_STREAM:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            both = address[0] == "::"
            sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0 if both else 1)
        apply_options(sock, endpoint)
        sock.bind(address)
    except BaseException:
        sock.close()
        raise
    return sock


def _binds_ipv6() -> bool:
    try:
        with socket.socket(socket.AF_INET6, socket.SOCK_DGRAM) as probe:
            probe.bind(("::", 0))
    except OSError:
        return False
    return True


def listening_locators(protocol: str, sock: socket.socket) -> list[str]:
    """Where others reach a bound socket; an address that stands for all is replaced by them."""
    address = sock.getsockname()
    host, port = host_of(address), int(address[1])
    if not ipaddress.ip_address(host.partition("%")[0]).is_unspecified:
        return [f"{protocol}/{address_text(address)}"]
    version = 4 if sock.family == socket.AF_INET else None
    return [f"{protocol}/{address_text((str(each), port))}" for each in local_addresses(version)]
