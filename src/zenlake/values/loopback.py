"""Whether a link stays within this machine."""

from __future__ import annotations

import ipaddress

from zenlake.errors import ZError
from zenlake.values.locator import Locator

#: Links that cannot leave the machine.
WITHIN = frozenset(("unixsock-stream", "unixpipe"))


def stays_within(src: str, dst: str) -> bool:
    """Whether both ends of a link are on this machine.

    They are if the far end has a loopback address, or the very address of the near end: then
    a node here has connected to an address of this machine that others can use, too.
    """
    if dst.partition("/")[0] in WITHIN:
        return True
    near, far = _address(src), _address(dst)
    return far is not None and (far.is_loopback or far == near)


def _address(locator: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        address = ipaddress.ip_address(Locator.parse(locator).host.partition("%")[0])
    except (ValueError, ZError):
        return None
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is not None:
        return address.ipv4_mapped
    return address


def is_within_machine(locator: str) -> bool:
    """Whether a locator to listen at is reached from this machine only."""
    protocol, _, address = locator.partition("/")
    if protocol in WITHIN or address.rpartition(":")[0] == "localhost":
        return True
    found = _address(locator)
    return found is not None and found.is_loopback
