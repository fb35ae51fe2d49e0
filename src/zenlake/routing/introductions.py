"""What a gateway tells the peers it serves about each other: where they listen, so that they meet.

Peers speak to each other directly, but a gateway has to introduce them. When a peer arrives, the
gateway (a router, if nothing else is said) tells it of those of its region that are there already
(nothing, if it is the first: an empty list is still said, and waited for); when a peer says where
it listens, the others are told. The gateway does not speak of itself.

A peer also tells its links, and which of its neighbours are gateways of its own. Of several
that can reach each other only one carries what a peer says, the one with the greatest id. What a
peer should hear it hears from the gateway where it comes from, if that is one of its own, or else
from that same one.

The words are those of link states (`zenlake.wire.link_state`), in a numbering of their own.
"""

from __future__ import annotations

from collections.abc import Container
from typing import Final, final

from zenlake.routing.linkstate import MAX_NODES
from zenlake.values.whatami import WhatAmI
from zenlake.wire import LinkState, Oam
from zenlake.wire.link_state import (
    MAX_LOCATORS,
    KnownNode,
    NodeNames,
    NodeNumbers,
    Outgoing,
    read_entries,
    write_entries,
)

__all__ = ["Introductions"]

# As nodes name it on the wire; `regions` counts otherwise.
_ROUTER: Final[int] = WhatAmI.ROUTER.value
_PEER: Final[int] = WhatAmI.PEER.value


@final
class _Peer:
    """A peer, and the numbers that it uses for others."""

    __slots__ = ("gateways", "links", "locators", "names", "psid", "role", "sn", "zid")

    def __init__(self, psid: int, zid: bytes) -> None:
        self.psid: int = psid
        self.zid: bytes = zid
        self.role: int = _PEER
        self.sn: int = 0
        self.locators: tuple[str, ...] | None = None
        self.links: set[bytes] = set()
        self.names: NodeNames = NodeNames(MAX_NODES)
        #: The nodes that it calls routers of its own.
        self.gateways: set[bytes] = set()


@final
class Introductions:
    """The peers of one region of a gateway; each call says what to send to whom.

    Args:
        zid: this gateway.
        gossip: whether peers are introduced to each other at all.
        targets: the roles of nodes that are told where others listen.
    """

    __slots__ = ("_numbers", "_peers", "_zid", "gossip", "passed_over", "targets")

    def __init__(self, zid: bytes, gossip: bool = True, targets: int = 0b011) -> None:
        self.gossip: bool = gossip
        self.targets: int = targets
        self.passed_over: int = 0
        """How many entries were about unknown nodes, or beyond what is remembered."""
        self._zid: bytes = zid
        self._peers: dict[int, _Peer] = {}
        self._numbers: NodeNumbers = NodeNumbers()

    def added(self, link: int, zid: bytes) -> Outgoing:
        """A session with a peer is open, known as `link` until it is removed."""
        heard = [self._entry(peer) for peer in self._peers.values() if peer.sn > 0]
        self._peers[link] = _Peer(self._numbers.take(), zid)
        return [(link, write_entries(heard))]

    def known(self) -> list[tuple[int, bytes]]:
        """The peers it serves, with its number for each."""
        return [(peer.psid, peer.zid) for peer in self._peers.values()]

    def removed(self, link: int) -> None:
        """The session with a peer is over."""
        peer = self._peers.pop(link, None)
        if peer is not None:
            self._numbers.give_back(peer.psid)

    def received(self, link: int, message: Oam) -> tuple[list[KnownNode], Outgoing]:
        """Take what a peer tells: the nodes it made known, and what to tell the others.

        Raises `DecodeError` when the body is not made of link states.
        """
        peer = self._peers.get(link)
        if peer is None:
            return [], []
        entries = read_entries(message)
        for entry in entries:
            self._name(peer, entry)
        near = {each.zid for each in self._peers.values()}
        known: dict[bytes, KnownNode] = {}
        news = False
        for entry in entries:
            zid = entry.zid or peer.names.get(entry.psid)
            if not zid:
                self.passed_over += 1
            elif zid == peer.zid:
                news = self._take(peer, entry) or news
            elif entry.locators and zid not in near and zid != self._zid:
                locators = entry.locators[:MAX_LOCATORS]
                known[zid] = KnownNode(zid, entry.whatami or _ROUTER, locators)
        return list(known.values()), self._introduced(link, peer) if news else []

    def links(self, link: int) -> frozenset[bytes]:
        """The nodes that a peer is connected to, as far as it has announced them."""
        peer = self._peers.get(link)
        return frozenset() if peer is None else frozenset(peer.links)

    def gateways(self, link: int) -> frozenset[bytes]:
        """The gateways of a peer, as far as it has told."""
        peer = self._peers.get(link)
        return frozenset() if peer is None else frozenset(peer.links & peer.gateways)

    def leads(self, link: int, reachable: Container[bytes] | None) -> bool:
        """Whether this gateway is the one that carries the words of a peer.

        `reachable`: those that it could leave that to; None: all.
        """
        return not any(
            zid > self._zid and (reachable is None or zid in reachable)
            for zid in self.gateways(link)
        )

    def _name(self, peer: _Peer, entry: LinkState) -> None:
        if not entry.zid:
            return
        if not peer.names.learn(entry.psid, entry.zid):
            self.passed_over += 1
            return
        if entry.gateway:
            peer.gateways.add(entry.zid)
        else:
            peer.gateways.discard(entry.zid)

    def _take(self, peer: _Peer, entry: LinkState) -> bool:
        """Remember what a peer says of itself; whether it says where it listens, anew."""
        if entry.sn <= peer.sn:
            return False
        peer.sn = entry.sn
        peer.role = entry.whatami or peer.role
        peer.links = {zid for zid in map(peer.names.get, entry.links) if zid}
        if entry.locators is None:
            return False
        locators = entry.locators[:MAX_LOCATORS]
        if locators == peer.locators:
            return False
        peer.locators = locators
        return True

    def _introduced(self, link: int, peer: _Peer) -> Outgoing:
        if not self.gossip:
            return []
        message = write_entries([self._entry(peer)])
        return [(number, message) for number in self._peers if number != link]

    def _entry(self, peer: _Peer) -> LinkState:
        introduces = self.gossip and _PEER & self.targets
        return LinkState(
            psid=peer.psid,
            sn=peer.sn,
            zid=peer.zid,
            whatami=peer.role,
            locators=peer.locators if introduces else None,
            links=(),
        )
