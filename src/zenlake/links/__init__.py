"""Links: the sockets to neighbours, on an event loop.

`connect` and `listen` take an endpoint of any implemented protocol and return a `Link` or a
`LinkListener`. `Multicast` carries the datagrams of scouting.
"""

from __future__ import annotations

from zenlake.links.link import MAX_BATCH, Link, LinkListener
from zenlake.links.multicast import DEFAULT_GROUP, Multicast
from zenlake.links.registry import PROTOCOLS, check, connect, listen, supports

__all__ = [
    "DEFAULT_GROUP",
    "MAX_BATCH",
    "PROTOCOLS",
    "Link",
    "LinkListener",
    "Multicast",
    "check",
    "connect",
    "listen",
    "supports",
]
