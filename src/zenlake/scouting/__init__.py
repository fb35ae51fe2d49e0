"""Who is there: scouting by datagrams, gossip through neighbours, and whom to connect to.

Nothing here touches a socket, a clock or chance: datagrams, the time and a random number are
arguments. A role is its flag, as in a matcher: router 1, peer 2, client 4.
"""

from __future__ import annotations

from zenlake.scouting.autoconnect import Autoconnect, gossip_delay
from zenlake.scouting.gossip import Gossip
from zenlake.scouting.scout import DiscoveredNode, HelloResponder, ScoutSender, is_loopback

__all__ = [
    "Autoconnect",
    "DiscoveredNode",
    "Gossip",
    "HelloResponder",
    "ScoutSender",
    "gossip_delay",
    "is_loopback",
]
