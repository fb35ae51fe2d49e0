"""The ways to a neighbour: sockets, on a loop.

`connect` and `listen` take an endpoint of any protocol that is spoken; `Link` and `Listening` say
what can be done with the result. `Multicast` carries the datagrams of scouting.
"""

from __future__ import annotations

from zenlake.links.link import MAX_BATCH, Link, Listening
from zenlake.links.multicast import DEFAULT_GROUP, Multicast, is_loopback_address
from zenlake.links.registry import PROTOCOLS, check, connect, listen, supports

__all__ = [
    "DEFAULT_GROUP",
    "MAX_BATCH",
    "PROTOCOLS",
    "Link",
    "Listening",
    "Multicast",
    "check",
    "connect",
    "is_loopback_address",
    "listen",
    "supports",
]
