"""What neighbours tell each other about where nodes listen.

A peer says to each new neighbour who it is and where it listens, and of its other neighbours the
same. When a neighbour's own word arrives, it is passed on to the others: that is how peers find
each other without multicast. Words are entries of link states (`zenlake.wire.link_state`), whose
links a peer tells to routers alone. A peer tells a router of each change of its links as well: the
router needs them to choose which of several routers serves the peer.

A client takes no part: it neither tells nor is told. The trees of routers are another matter.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, final

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

__all__ = ["MAX_NODES", "MAX_PSIDS", "Gossip"]

MAX_PSIDS: Final = 4096
"""The numbers that are remembered for one neighbour; entries with more are passed over."""
MAX_NODES: Final = 4096
"""The nodes beyond the neighbours that are remembered, with multihop."""

_ROUTER: Final = WhatAmI.ROUTER.value
_PEER: Final = WhatAmI.PEER.value
_CLIENT: Final = WhatAmI.CLIENT.value


@final
class _Node:
    """What is known of a node, under the number this node gave it."""

    __slots__ = ("gateway", "locators", "psid", "role", "sn", "via", "zid")

    def __init__(self, psid: int, zid: bytes, role: int, via: int) -> None:
        #: Whether it serves this node.
        self.gateway = False
        self.psid = psid
        self.zid = zid
        self.role = role
        self.via = via
        self.sn = 0
        self.locators: tuple[str, ...] | None = None


@final
class _Neighbour:
    """A link to a node, and the numbers that the other side uses on it."""

    __slots__ = ("gateway", "names", "role", "zid")

    def __init__(self, zid: bytes, role: int, gateway: bool) -> None:
        self.zid = zid
        self.gateway = gateway
        self.role = role
        self.names = NodeNames(MAX_PSIDS)


@final
class Gossip:
    """The gossip of one peer or client; each call says what to send to whom.

    Args:
        zid: this node.
        role: its role; a client stays silent and learns nothing.
        locators: gives the places it listens at now.
        multihop: whether what neighbours tell of others is passed on, too.
        targets: the roles of the neighbours that are told anything.
    """

    __slots__ = (
        "_locators",
        "_neighbours",
        "_nodes",
        "_numbers",
        "_role",
        "_sn",
        "_zid",
        "multihop",
        "passed_over",
        "targets",
    )

    def __init__(
        self,
        zid: bytes,
        role: int,
        locators: Callable[[], list[str]],
        multihop: bool = False,
        targets: int = _ROUTER | _PEER,
    ) -> None:
        self.multihop = multihop
        self.targets = targets
        self.passed_over = 0
        """How many entries were about unknown nodes, or beyond what is remembered."""
        self._zid = zid
        self._role = role
        self._locators = locators
        self._sn = 1
        self._neighbours: dict[int, _Neighbour] = {}
        # In the order of arrival, which is the order in which they are told.
        self._nodes: dict[bytes, _Node] = {}
        self._numbers = NodeNumbers()

    def added(self, neighbour: int, zid: bytes, role: int, gateway: bool | None = None) -> Outgoing:
        """A session with a node is open, known as `neighbour` until it is removed.

        `gateway`: whether it serves this node; None: if it is a router, it does.

        Must be called, and its messages sent, before anything is declared to the neighbour.
        """
        if gateway is None:
            gateway = role == _ROUTER
        if self._role == _CLIENT or (role == _CLIENT and not gateway):
            return []
        self._neighbours[neighbour] = _Neighbour(zid, role, gateway)
        node = self._nodes.get(zid)
        new = node is None
        if node is None:
            node = self._add_node(zid, role, neighbour)
        node.via = neighbour
        node.gateway = gateway
        self._sn += 1
        update = [self._entry(node, with_locators=False)] if new else []
        update.append(self._self_entry(introduce=False, links=True))
        out = self._to_gateways(update, but=neighbour)
        if role & self.targets:
            everything = [self._self_entry(introduce=True, links=gateway)]
            everything += [
                self._entry(each, with_locators=True)
                for each in sorted(self._nodes.values(), key=lambda known: known.psid)
            ]
            out.append((neighbour, write_entries(everything)))
        return out

    def received(self, neighbour: int, oam: Oam) -> tuple[list[KnownNode], Outgoing]:
        """Take what a neighbour tells: the nodes it made known, and what to pass on.

        Nodes that are neighbours themselves are not made known again. Raises `DecodeError` when
        the body is not made of link states.
        """
        source = self._neighbours.get(neighbour)
        if source is None:
            return [], []
        known: dict[bytes, KnownNode] = {}
        news: dict[bytes, _Node] = {}
        connected = {each.zid for each in self._neighbours.values()}
        for entry in read_entries(oam):
            zid = self._named(source, entry)
            if not zid or zid == self._zid:
                continue
            locators = None if entry.locators is None else entry.locators[:MAX_LOCATORS]
            role = entry.whatami or _ROUTER
            if locators and zid not in connected:
                known[zid] = KnownNode(zid, role, locators)
            if zid != source.zid and (not self.multihop or zid in connected):
                continue
            node = self._heard(neighbour, zid, role, entry.sn, locators)
            if node is not None:
                news[zid] = node
        return list(known.values()), self._passed_on(neighbour, list(news.values()))

    def known(self) -> list[tuple[int, bytes]]:
        """The nodes it has heard of, with its number for each."""
        return [(node.psid, node.zid) for node in self._nodes.values()]

    def removed(self, neighbour: int) -> Outgoing:
        """The session with a neighbour is over."""
        gone = self._neighbours.pop(neighbour, None)
        if gone is None:
            return []
        for node in [each for each in self._nodes.values() if each.via == neighbour]:
            other = self._neighbour_of(node.zid)
            if other is None:
                del self._nodes[node.zid]
                self._numbers.give_back(node.psid)
            else:
                node.via = other
        # With a greater number than before: else the gateways would take it for old news.
        self._sn += 1
        return self._to_gateways([self._self_entry(introduce=False, links=True)], but=neighbour)

    def relocated(self) -> Outgoing:
        """This node listens elsewhere now: what to tell everyone."""
        self._sn += 1
        return [
            (
                number,
                write_entries([self._self_entry(introduce=True, links=other.gateway)]),
            )
            for number, other in self._neighbours.items()
            if other.role & self.targets
        ]

    def _passed_on(self, source: int, news: list[_Node]) -> Outgoing:
        """One message for each neighbour, with all that it should hear."""
        out: Outgoing = []
        for number, other in self._neighbours.items():
            if number == source or not other.role & self.targets:
                continue
            entries = [
                self._entry(node, with_locators=True) for node in news if node.zid != other.zid
            ]
            if entries:
                out.append((number, write_entries(entries)))
        return out

    def _neighbour_of(self, zid: bytes) -> int | None:
        for number, other in self._neighbours.items():
            if other.zid == zid:
                return number
        return None

    def _named(self, source: _Neighbour, entry: LinkState) -> bytes:
        """The id of the node that an entry is about; empty if nobody knows."""
        if entry.zid:
            if not source.names.learn(entry.psid, entry.zid):
                self.passed_over += 1
            return entry.zid
        zid = source.names.get(entry.psid)
        if not zid:
            self.passed_over += 1
        return zid

    def _heard(
        self, neighbour: int, zid: bytes, role: int, sn: int, locators: tuple[str, ...] | None
    ) -> _Node | None:
        """Remember what an entry says; the node, if others should hear of it."""
        node = self._nodes.get(zid)
        if node is None:
            if len(self._nodes) >= MAX_NODES + len(self._neighbours):
                self.passed_over += 1
                return None
            node = self._add_node(zid, role, neighbour)
        elif sn <= node.sn:
            return None
        node.sn = sn
        if locators is None or locators == node.locators:
            return None
        node.locators = locators
        return node

    def _add_node(self, zid: bytes, role: int, via: int) -> _Node:
        node = _Node(self._numbers.take(), zid, role, via)
        self._nodes[zid] = node
        return node

    def _to_gateways(self, entries: list[LinkState], but: int) -> Outgoing:
        message = write_entries(entries)
        return [
            (number, message)
            for number, other in self._neighbours.items()
            if number != but and other.gateway and other.role & self.targets
        ]

    def _self_entry(self, introduce: bool, links: bool) -> LinkState:
        linked: tuple[int, ...] = ()
        if links:
            linked = tuple(self._nodes[each.zid].psid for each in self._neighbours.values())
        return LinkState(
            psid=0,
            sn=self._sn,
            zid=self._zid if introduce else b"",
            whatami=self._role,
            locators=tuple(self._locators()),
            links=linked,
        )

    def _entry(self, node: _Node, with_locators: bool) -> LinkState:
        """A node by its id; `with_locators` adds where it listens, if it has said so."""
        return LinkState(
            psid=node.psid,
            sn=node.sn,
            zid=node.zid,
            whatami=node.role,
            locators=node.locators if with_locators else None,
            links=(),
            gateway=node.gateway,
        )
