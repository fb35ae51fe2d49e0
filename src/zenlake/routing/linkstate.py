"""What routers tell each other about the network: who is linked to whom, by everybody's own word.

Each router speaks for itself alone: "these are my links, and this is the n-th time I say so".
What it says is passed on from router to router until all know it; a greater number wins. So all
routers come to hold the same states, and compute the same trees from them. The words are entries
of link states (`zenlake.wire.link_state`); a router that has not been heard yet has the version 0.

On a new link everything known is said, with ids. On the others: who the newcomer is (with its
id, nothing else) and the links of this router (without its id). Of what is heard, a router that
was not known before, or that had not spoken yet, is passed on with its id over all links, even
the one it came over; one that has spoken anew is passed on without its id, and not to where it
came from. All that one message brings is passed on in one message: half of it could make
a node believe that a router is gone.

A router that cannot be reached any more by following links is forgotten with all it said.

Two words go beyond what others do, and harm nobody who does not expect them. Who introduces a
router by something that it said long ago, or by nothing at all, is told what we know: it may
have forgotten the router at a moment when we had not, and then heard an old word on a long way.
And a router that hears itself quoted with a greater number than its own, from a former life,
continues from there.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, final

from zenlake.errors import LimitError
from zenlake.routing.limits import DEFAULTS
from zenlake.values.whatami import WhatAmI
from zenlake.wire import LinkState, Oam
from zenlake.wire.link_state import (
    LINK_STATE,
    MAX_LOCATORS,
    KnownNode,
    NodeNames,
    NodeNumbers,
    Outgoing,
    read_entries,
    write_entries,
)

__all__ = ["MAX_NODES", "LinkStateTable", "RouterNode"]

MAX_NODES: Final = 1024
"""The routers that are remembered, and the numbers that one neighbour may use."""
LATEST_SN: Final = 1 << 62
"""Beyond this no router can have spoken in earnest."""

#: As nodes name it on the wire; `regions.ROUTER` counts otherwise.
_ROUTER: Final[int] = WhatAmI.ROUTER.value


@final
class RouterNode:
    """A router and what it said last, under the number this router gave it."""

    __slots__ = ("gateway", "links", "locators", "psid", "role", "sn", "zid")

    def __init__(self, psid: int, zid: bytes, role: int) -> None:
        """Nothing was heard from it yet; `role` 0: not known."""
        self.psid: int = psid
        self.zid: bytes = zid
        self.role: int = role
        self.sn: int = 0
        #: Its neighbours, and what the link to each should weigh (0: it does not say).
        self.links: dict[bytes, int] = {}
        self.locators: tuple[str, ...] | None = None
        self.gateway: bool = False


@final
class _Link:
    """A neighbour, and the numbers that it uses for routers."""

    __slots__ = ("greeted", "names", "role", "zid")

    def __init__(self, zid: bytes, role: int) -> None:
        self.zid: bytes = zid
        #: Whether it has said all it knew when the link came up, as we have.
        self.greeted: bool = False
        self.role: int = role
        self.names: NodeNames = NodeNames(MAX_NODES)


@final
class LinkStateTable:
    """All routers of a network as one of them knows them; each call says what to send to whom.

    Args:
        zid: this router.
        locators: gives the places it listens at now.
        gossip: whether locators are told at all.
        multihop: whether those of routers beyond the neighbours are told, too.
        targets: the roles of the neighbours that are told locators.
        weights: what links to certain routers should weigh.
    """

    __slots__ = (
        "_links", "_locators", "_numbers", "gossip", "introduced", "me", "most_links", "multihop",
        "nodes", "passed_over", "targets", "version", "weights",
    )  # fmt: skip

    def __init__(
        self,
        zid: bytes,
        locators: Callable[[], list[str]],
        gossip: bool = True,
        multihop: bool = False,
        targets: int = 0b011,
        weights: dict[bytes, int] | None = None,
    ) -> None:
        self.gossip: bool = gossip
        self.multihop: bool = multihop
        self.targets: int = targets
        self.weights: dict[bytes, int] = dict(weights or {})
        self.passed_over: int = 0
        """How many entries were about unknown nodes, or beyond what is remembered."""
        self.most_links: int = DEFAULTS.links
        """The links of all routers that are kept: who tells of more is cut."""
        self.version: int = 0
        """Grows whenever routers, their links or their numbers change."""
        self.introduced: list[bytes] = []
        """The routers that the last message named by their ids: they were news to its sender."""
        self.me: RouterNode = RouterNode(0, zid, _ROUTER)
        self.me.sn = 1
        self.nodes: dict[bytes, RouterNode] = {zid: self.me}
        """All routers, this one first."""
        self._locators: Callable[[], list[str]] = locators
        self._links: dict[int, _Link] = {}
        self._numbers: NodeNumbers = NodeNumbers()

    # ------------------------------------------------------------------------------ queries

    def named(self, link: int, psid: int) -> bytes:
        """The router that a neighbour calls by a number; empty if it has not said so."""
        neighbour = self._links.get(link)
        return b"" if neighbour is None else neighbour.names.get(psid)

    def psid(self, zid: bytes) -> int:
        """The number this router uses for another; -1 if it does not know it."""
        node = self.nodes.get(zid)
        return -1 if node is None else node.psid

    def graph(self) -> dict[bytes, dict[bytes, int]]:
        """The neighbours that every router lists, with their weights."""
        return {zid: dict(node.links) for zid, node in self.nodes.items()}

    # --------------------------------------------------------------------------------- events

    def added(self, link: int, zid: bytes, role: int = _ROUTER) -> Outgoing:
        """A session with a router is open, known as `link` until it is removed.

        The messages must be sent before anything is declared to the neighbour.
        """
        node = self.nodes.get(zid)
        newcomer = node is None
        if node is None:
            node = self._add(zid, role)
        elif not node.role:
            node.role = role
        self.me.links[zid] = self.weights.get(zid, 0)
        self._spoken()
        out: Outgoing = []
        for number, other in self._links.items():
            entries: list[LinkState] = []
            if newcomer:
                entries.append(self._entry(node, other, introduce=True, linked=False))
            entries.append(self._entry(self.me, other, introduce=False, linked=True))
            out.append((number, write_entries(entries)))
        self._links[link] = _Link(zid, role)
        everything = sorted(self.nodes.values(), key=_psid)
        new = self._links[link]
        out.append(
            (
                link,
                write_entries(
                    [self._entry(each, new, introduce=True, linked=True) for each in everything]
                ),
            )
        )
        return out

    def removed(self, link: int) -> Outgoing:
        """The session with a neighbour is over."""
        gone = self._links.pop(link, None)
        if gone is None:
            return []
        for other in self._links.values():
            if other.zid == gone.zid:
                return []  # it has another link
        self.me.links.pop(gone.zid, None)
        self._spoken()
        self._forget_unreachable()
        return self._to_all(self.me, False)

    def relocated(self) -> Outgoing:
        """This router listens elsewhere now."""
        self._spoken()
        return self._to_all(self.me, False)

    def reweighed(self, weights: dict[bytes, int]) -> Outgoing:
        """The links of this router should weigh something else now."""
        self.weights = dict(weights)
        links = {zid: self.weights.get(zid, 0) for zid in self.me.links}
        if links == self.me.links:
            return []
        self.me.links = links
        self._spoken()
        return self._to_all(self.me, False)

    def received(self, link: int, message: Oam) -> tuple[list[KnownNode], Outgoing]:
        """Take what a neighbour tells: the routers it made known, and what to pass on.

        Raises `DecodeError` when the body is not made of link states.
        """
        source = self._links.get(link)
        if source is None or message.id != LINK_STATE or not isinstance(message.body, bytes):
            return [], []
        received = read_entries(message)
        self._check_size(sum([len(entry.links) for entry in received]))
        states = self._translated(source, received)
        many = sum([len(node.links) for node in self.nodes.values()])
        for zid, entry, links in states:
            node = self.nodes.get(zid)
            if node is None:
                many += len(links)
            elif entry.sn > node.sn:
                many += len(links) - len(node.links)
        self._check_size(many)
        greeted = source.greeted
        source.greeted = True
        fresh: dict[bytes, RouterNode] = {}
        updated: dict[bytes, RouterNode] = {}
        outdated: dict[bytes, RouterNode] = {}
        quoted = 0
        for zid, entry, links in states:
            if zid == self.me.zid:
                quoted = max(quoted, entry.sn)
                continue
            node = self.nodes.get(zid)
            if node is None:
                node = self._new(zid, entry.whatami or _ROUTER)
                if node is None:
                    continue
                fresh[zid] = node
                if entry.sn == 0:
                    self._take(node, entry, links, fresh)
                    continue
            if entry.sn > node.sn:
                if node.sn == 0:
                    fresh[zid] = node
                else:
                    updated[zid] = node
                self._take(node, entry, links, fresh)
            elif entry.zid and entry.sn < node.sn and zid != source.zid and greeted:
                outdated[zid] = node
        out: Outgoing = []
        if fresh or updated:
            self.version += 1
            self._forget_unreachable()
            fresh = {zid: node for zid, node in fresh.items() if zid in self.nodes}
            updated = {zid: node for zid, node in updated.items() if zid in self.nodes}
            out = self._passed_on(source, list(fresh.values()), list(updated.values()))
        outdated = {zid: node for zid, node in outdated.items() if zid in self.nodes}
        if outdated:
            entries = [
                self._entry(node, source, introduce=True, linked=True) for node in outdated.values()
            ]
            out.append((link, write_entries(entries)))
        if self.me.sn < quoted:
            self.me.sn = quoted
            out += self.relocated()
        return self._known(list(fresh.values()) + list(updated.values())), out

    def _check_size(self, links: int) -> None:
        """Refuse a map with more links than are kept."""
        if links > self.most_links:
            raise LimitError(
                f"it tells of more than {self.most_links} links between routers (limits/node/links)"
            )

    # ----------------------------------------------------------------------------- what is told

    def _translated(
        self, source: _Link, entries: tuple[LinkState, ...]
    ) -> list[tuple[bytes, LinkState, dict[bytes, int]]]:
        """Entries with the id of their node and the ids of its neighbours."""
        about: list[tuple[bytes, LinkState]] = []
        self.introduced = []
        # Numbers are learnt first: an entry may list routers that come later.
        for entry in entries:
            zid = entry.zid
            if not zid:
                zid = source.names.get(entry.psid)
            elif source.names.learn(entry.psid, zid) and source.names.changed:
                self.version += 1
            if zid and entry.sn < LATEST_SN:
                about.append((zid, entry))
                if entry.zid:
                    self.introduced.append(zid)
            else:
                self.passed_over += 1
        translated: list[tuple[bytes, LinkState, dict[bytes, int]]] = []
        for zid, entry in about:
            links: dict[bytes, int] = {}
            for at, psid in enumerate(entry.links[:MAX_NODES]):
                other = source.names.get(psid)
                if other and other != zid:
                    links[other] = entry.weights[at] if entry.weights else 0
            translated.append((zid, entry, links))
        return translated

    def _take(
        self,
        node: RouterNode,
        entry: LinkState,
        links: dict[bytes, int],
        fresh: dict[bytes, RouterNode],
    ) -> None:
        """Remember what a router said; neighbours that it lists are known from now on."""
        node.sn = entry.sn
        node.role = entry.whatami or node.role or _ROUTER
        node.gateway = entry.gateway
        if entry.locators is not None:
            node.locators = entry.locators[:MAX_LOCATORS]
        node.links = {}
        for zid, weight in links.items():
            other = self.nodes.get(zid)
            if other is None:
                other = self._new(zid, 0)
                if other is None:
                    continue
                fresh[zid] = other
            node.links[zid] = weight

    def _known(self, nodes: list[RouterNode]) -> list[KnownNode]:
        """Those of some routers that say where they listen and are no neighbours."""
        near = {link.zid for link in self._links.values()}
        return [
            KnownNode(node.zid, node.role or _ROUTER, node.locators)
            for node in nodes
            if node.locators and node.zid not in near
        ]

    # ------------------------------------------------------------------------------ who is there

    def _spoken(self) -> None:
        """This router has something new to say of itself."""
        self.me.sn += 1
        self.version += 1

    def _new(self, zid: bytes, role: int) -> RouterNode | None:
        """A link state told of a router; None if there are too many."""
        if len(self.nodes) >= MAX_NODES:
            self.passed_over += 1
            return None
        return self._add(zid, role)

    def _add(self, zid: bytes, role: int) -> RouterNode:
        node = RouterNode(self._numbers.take(), zid, role)
        self.nodes[zid] = node
        return node

    def _forget_unreachable(self) -> None:
        """Forget the routers that no links lead to, from this one on."""
        seen: set[bytes] = {self.me.zid}
        stack: list[bytes] = [self.me.zid]
        while stack:
            node = self.nodes.get(stack.pop())
            if node is None:
                continue
            for zid in node.links:
                if zid not in seen:
                    seen.add(zid)
                    stack.append(zid)
        for zid in [zid for zid in self.nodes if zid not in seen]:
            self._numbers.give_back(self.nodes.pop(zid).psid)

    # -------------------------------------------------------------------------- what is said

    def _passed_on(
        self, source: _Link, fresh: list[RouterNode], updated: list[RouterNode]
    ) -> Outgoing:
        """One message for each neighbour, with all that it should hear."""
        out: Outgoing = []
        for number, other in self._links.items():
            entries = [self._entry(node, other, introduce=True, linked=True) for node in fresh]
            if other is not source:
                entries += [
                    self._entry(node, other, introduce=False, linked=True)
                    for node in updated
                    if node.zid != other.zid
                ]
            if entries:
                out.append((number, write_entries(entries)))
        return out

    def _to_all(self, node: RouterNode, introduce: bool) -> Outgoing:
        return [
            (number, write_entries([self._entry(node, other, introduce=introduce, linked=True)]))
            for number, other in self._links.items()
        ]

    def _entry(self, node: RouterNode, to: _Link, *, introduce: bool, linked: bool) -> LinkState:
        """What is known of a router, as it is told to a neighbour."""
        links: list[int] = []
        weights: list[int] = []
        if linked:
            for zid, weight in node.links.items():
                other = self.nodes.get(zid)
                if other is not None:
                    links.append(other.psid)
                    weights.append(weight)
        return LinkState(
            psid=node.psid,
            sn=node.sn,
            zid=node.zid if introduce else b"",
            whatami=node.role,
            locators=self._locators_for(node, to),
            links=tuple(links),
            weights=tuple(weights) if any(weights) else (),
            gateway=node.gateway,
        )

    def _locators_for(self, node: RouterNode, to: _Link) -> tuple[str, ...] | None:
        """Where a router listens, if the neighbour should hear of it from this one."""
        if not self.gossip or not to.role & self.targets:
            return None
        if node is self.me:
            return tuple(self._locators())
        if self.multihop or node.zid in self.me.links:
            return node.locators
        return None


def _psid(node: RouterNode) -> int:
    return node.psid
