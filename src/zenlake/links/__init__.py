"""Links: the sockets to neighbours, on an event loop.

`connect` and `listen` take an endpoint of any implemented protocol and return a `UnicastLink` or a
`LinkListener`. `MulticastSockets` carries the datagrams of scouting.
"""

from __future__ import annotations

from zenlake.links.link import MAX_BATCH, LinkListener, UnicastLink
from zenlake.links.multicast import DEFAULT_GROUP, MulticastSockets
from zenlake.links.registry import PROTOCOLS, check, connect, listen, supports

__all__ = [
    "DEFAULT_GROUP",
    "MAX_BATCH",
    "PROTOCOLS",
    "LinkListener",
    "MulticastSockets",
    "UnicastLink",
    "check",
    "connect",
    "listen",
    "supports",
]
