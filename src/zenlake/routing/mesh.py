"""A router among routers: what each declares, where it is passed on, and the route to each.

A router declares to the others all that lies south of it, unasked, and passes on what others
declare, down the tree of the router that declares it (see `trees`). In the tables a router beyond
the links is a face like any other, only that nothing can be sent to it directly: what is for it
goes to the neighbour that lies on the route, in the tree of the router where it came from.

On the wire a router is a number of the sender's own counting (see `linkstate`). Declarations
have no ids between routers: an undeclaration names its key.

When trees change, a router sends to each neighbour that is now below it in some tree all that
the root of that tree declares, since it may have missed a word while the trees were changing.
For the same reason it says again, for a while, what is declared no more; but not to those that
cannot have missed it (see `withdrawn`): other implementations pass such a word on as it is, and
their clients would be told that a token has died which they have not heard of.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from zenlake.routing.announce import RouterRegion, declaration, undeclaration
from zenlake.routing.face import CONTROL_QOS, Face
from zenlake.routing.keyids import key_flaw
from zenlake.routing.limits import NO_LIMITS, key_excess
from zenlake.routing.linkstate import LinkStateTable
from zenlake.routing.policy.messages import DECLARE_SUBSCRIBER
from zenlake.routing.regions import NORTH, ROUTER
from zenlake.routing.resources import KINDS, QUERYABLE, SUBSCRIBER, TOKEN, Resource, merged
from zenlake.routing.tables import Tables
from zenlake.routing.trees import Recomputation, Trees
from zenlake.routing.withdrawn import REMEMBERED, Withdrawn
from zenlake.wire.codec_declare import (
    DeclareQueryable,
    DeclareSubscriber,
    DeclareToken,
    KeyExt,
    UndeclareQueryable,
    UndeclareSubscriber,
    UndeclareToken,
)
from zenlake.wire.codec_network import Declare, Oam
from zenlake.wire.link_state import KnownNode, Outgoing

#: Instead of information: what was declared is declared no more.
NO_MORE: Final = -1
#: How many declarations wait for the next trees, to be believed or not.
DOUBTED: Final = 1 << 17
#: Those of one neighbour that may be in doubt before it is named for them.
MANY_DOUBTED: Final = 4096


class RemoteRouter(Face):
    """A router beyond the links, holding in the tables what it declared."""

    def __init__(self, zid: bytes, region: int = NORTH) -> None:
        """It has declared nothing yet."""
        super().__init__(-1, zid, ROUTER, None, NO_LIMITS)
        self.lie(ROUTER, region, False)
        self.meshed = True
        #: By kind: the number that stands for each key it declared.
        self.numbers: list[dict[str, int]] = [{}, {}, {}]
        #: By kind: what it declares (key → information), and the neighbour that said so first,
        #: which is charged for it: the router that tells pays, not the one it tells of.
        self.held: list[dict[str, int]] = [{}, {}, {}]
        self.payers: list[dict[str, Face]] = [{}, {}, {}]


class RowsBelow:
    """What a root declares, as far as a neighbour that is new below it was not told."""

    __slots__ = ("face", "root", "rows")

    def __init__(self, face: Face, root: bytes) -> None:
        """Which rows there are is seen when it is their turn."""
        self.face: Face = face
        self.root: bytes = root
        self.rows: list[tuple[int, str]] | None = None


class Mesh(RouterRegion):
    """The other routers of a router, in one of its regions."""

    def __init__(
        self,
        tables: Tables,
        state: LinkStateTable,
        now: Callable[[], float],
        meshes: dict[int, Mesh],
        region: int = NORTH,
    ) -> None:
        """`now` tells the time that the node knows; `meshes`: all of the node, by region."""
        self.meshes: dict[int, Mesh] = meshes
        self.region: int = region
        #: In the south: the routers that lead out of the region, this one among them.
        self.gateways: frozenset[bytes] = frozenset()
        #: Whether they have changed, so that others may be for me to speak for.
        self._regrouped: bool = False
        state.me.gateway = region != NORTH
        self.tables: Tables = tables
        self.state: LinkStateTable = state
        self.now: Callable[[], float] = now
        self.me: bytes = state.me.zid
        self.trees: Trees = Trees(self.me, state.graph())
        self.plan: Recomputation = Recomputation()
        #: The routers that declared something, and the neighbours among all routers.
        self.routers: dict[bytes, RemoteRouter] = {}
        self.links: dict[bytes, Face] = {}
        #: By kind: what this router declares (key → information).
        self.own: list[dict[str, int]] = [{}, {}, {}]
        #: For each root, the links over which all that it declares has been said.
        self._below: dict[bytes, set[int]] = {}
        #: By link and root: what is still to be said over a link that is new below a root.
        self._telling: dict[tuple[int, bytes], RowsBelow] = {}
        self._withdrawn: Withdrawn = Withdrawn()
        #: Declarations that are believed if they prove to come from the right side:
        #: (router, kind, key, link) → (link, information, since when).
        self._doubted: dict[tuple[bytes, int, str, int], tuple[Face, int, float]] = {}
        #: How many of them came over each link.
        self._doubts: dict[int, int] = {}

    # ------------------------------------------------------------------- neighbours and the news

    def added(self, face: Face) -> Outgoing:
        """A session with a router is open; what to say, before anything else."""
        self.links[face.zid] = face
        face.meshed = True
        return self._changed(self.state.added(face.id, face.zid))

    def removed(self, face: Face) -> Outgoing:
        """The session with a router is over."""
        if self.links.get(face.zid) is face:
            del self.links[face.zid]
        for below in self._below.values():
            below.discard(face.id)
        for place in [each for each in self._telling if each[0] == face.id]:
            del self._telling[place]
        self._withdrawn.unlinked(face.id)
        for doubted in [each for each in self._doubted if each[3] == face.id]:
            self._forget_doubt(doubted)
        return self._changed(self.state.removed(face.id))

    def received(self, face: Face, message: Oam) -> tuple[list[KnownNode], Outgoing]:
        """A router speaks of the network."""
        version = self.state.version
        known, out = self.state.received(face.id, message)
        if self.state.version != version:
            self._changed(out)
        for zid in self.state.introduced:
            # It is news to the neighbour, which may have known it before and forgotten it, with
            # all that it declared: tell it again.
            below = self._below.get(zid)
            if below is not None and face.id in below:
                below.discard(face.id)
                self.plan.changed(self.now())
        return known, out

    def reweighed(self, weights: dict[bytes, int]) -> Outgoing:
        """The links of this router should weigh something else now."""
        return self._changed(self.state.reweighed(weights))

    def _changed(self, out: Outgoing) -> Outgoing:
        """The map is another: who is not on it any more is gone with all it declared."""
        now = self.now()
        self.plan.changed(now)
        self.tables.version += 1
        nodes = self.state.nodes
        for zid in [zid for zid in self.routers if zid not in nodes]:
            self._purge(self.routers.pop(zid))
        self._withdrawn.known(nodes, now)
        if self.region != NORTH:
            gateways = frozenset([zid for zid in nodes if nodes[zid].gateway])
            if gateways != self.gateways:
                self.gateways = gateways
                self._regrouped = True
        return out

    def deadline(self) -> float:
        """When `tick` has something to do; 0: as soon as it can be."""
        return 0.0 if self._telling else self.plan.deadline

    def tick(self, now: float) -> None:
        """Tell some rows to routers that are new below; compute the trees anew, if it is time."""
        if self._telling:
            self._tell_more()
        if not self.plan.due(now):
            return
        graph = self.state.graph()
        self.trees = Trees(self.me, graph)
        self.tables.version += 1
        self._withdrawn.keep(graph)
        below: dict[bytes, set[int]] = {}
        for root in dict.fromkeys((self.me, *self.routers, *self._withdrawn.rows)):
            before = self._below.get(root, set())
            below[root] = set()
            for face in self._children(root):
                below[root].add(face.id)
                if face.id not in before:
                    self._telling[face.id, root] = RowsBelow(face, root)
        self._below = below
        for id, root in list(self._telling):
            if id not in below.get(root, set()):
                del self._telling[id, root]  # another tells it
        self._reconsider()
        if self._telling:
            self._tell_more()
        self._decide(now)
        if self._regrouped:
            self._regrouped = False
            self.tables.respread()

    def _reconsider(self) -> None:
        """Tell newcomers what is declared no more, if older routers are behind them now."""
        for id, root in self._withdrawn.spared():
            for face in self._children(root):
                if face.id != id:
                    continue
                telling = self._telling.get((id, root))
                if telling is None:
                    telling = self._telling[id, root] = RowsBelow(face, root)
                    telling.rows = []
                if telling.rows is not None:  # else it has not begun, and will look by itself
                    telling.rows = self._missed(root, face) + telling.rows

    def _decide(self, now: float) -> None:
        """Believe what was doubted, where it came from the right side."""
        for (zid, kind, key, id), (face, info, when) in list(self._doubted.items()):
            if face.closed or when < now - REMEMBERED:
                self._forget_doubt((zid, kind, key, id))
            elif self.trees.parent(zid) == face.zid:
                self._said(face, zid, kind, key, info)

    def _purge(self, router: RemoteRouter) -> None:
        """A router is gone: all it declared goes with it."""
        for payers in router.payers:
            for key, payer in payers.items():
                payer.let_go(key)
        self.tables.leave(router)

    def _forget_doubt(self, doubted: tuple[bytes, int, str, int]) -> None:
        """Doubt something no more, whatever became of it."""
        doubt = self._doubted.pop(doubted, None)
        if doubt is not None:
            doubt[0].refund(doubted[2])
            left = self._doubts.get(doubted[3], 0) - 1
            if left > 0:
                self._doubts[doubted[3]] = left
            else:
                self._doubts.pop(doubted[3], None)

    # ------------------------------------------------------------------------------- routes

    def number(self, root: bytes) -> int:
        """The number that neighbours are told for a router."""
        return max(self.state.psid(root), 0)

    def hop(self, root: bytes, source: Face, router: Face) -> Face | None:
        """The neighbour that leads to a router in the tree of `root`, if it is for me to send.

        What does not lie below me in that tree is reached by others.
        """
        if root not in self.state.nodes:
            return None
        trees = self.trees
        towards = trees.direction(root, router.zid)
        if not towards or towards == trees.parent(root):
            return None
        face = self.links.get(towards)
        return None if face is source else face

    def hops(self, root: bytes, source: Face, routers: list[Face]) -> list[Face]:
        """The neighbours that lead to some routers in the tree of `root`, each once."""
        hops: list[Face] = []
        for router in routers:
            face = self.hop(root, source, router)
            if face is not None and face not in hops:
                hops.append(face)
        return hops

    def leads(self, root: bytes) -> bool:
        """Whether it is for me to carry what comes from a node into the region, or out of it.

        Of several gateways that see each other in the north, the one with the greatest id does:
        the others hear from it in the north what is said in the region. What a gateway says
        itself, or its other regions, it says to both sides.
        """
        gateways = self.gateways
        if len(gateways) < 2:
            return True
        north = self.meshes[NORTH].state.nodes
        if root in gateways and root in north:
            return False
        return not any(zid > self.me and zid in north for zid in gateways)

    def distance(self, router: Face) -> float:
        """How far away a router is."""
        return self.trees.distance(router.zid)

    def _children(self, root: bytes) -> list[Face]:
        return [self.links[zid] for zid in self.trees.children(root) if zid in self.links]

    # -------------------------------------------------------------------- what lies south of me

    def spread(self, kind: int, resource: Resource) -> None:
        """Who holds a key has changed: bring what this router declares up to date."""
        infos: list[int] = []
        for holder, ids in resource.holders[kind].items():
            if holder.region == self.region or not holder.carried:
                continue
            if not holder.meshed or self._speaks_for(holder):
                infos.extend(ids.values())
        key = resource.key
        own = self.own[kind]
        if not infos:
            if own.pop(key, None) is not None:
                self._pass_on(self.me, None, kind, key, NO_MORE)
            return
        info = merged(infos) if kind == QUERYABLE else 0
        if own.get(key) != info:
            own[key] = info
            self._pass_on(self.me, None, kind, key, info)

    def _speaks_for(self, holder: Face) -> bool:
        """Whether what a router elsewhere holds is declared here.

        What another gateway declares within a region of the south it declares in the north, too.
        """
        return not holder.south or holder.zid not in self.meshes[holder.region].gateways

    # ----------------------------------------------------------------------- what others declare

    def heard(self, face: Face, message: Declare) -> None:
        """A neighbour declares something, for itself or another router."""
        zid = self.state.named(face.id, message.node_id)
        body = message.body
        if not zid or zid == self.me:
            face.ignored += 1
        elif isinstance(body, DeclareSubscriber):
            key = face.keys.resolve(body.scope, body.sender_mapping, body.suffix)
            self._said(face, zid, SUBSCRIBER, key, 0)
        elif isinstance(body, DeclareQueryable):
            key = face.keys.resolve(body.scope, body.sender_mapping, body.suffix)
            self._said(face, zid, QUERYABLE, key, body.info)
        elif isinstance(body, DeclareToken):
            key = face.keys.resolve(body.scope, body.sender_mapping, body.suffix)
            self._said(face, zid, TOKEN, key, 0)
        elif isinstance(body, UndeclareSubscriber):
            self._said(face, zid, SUBSCRIBER, self._named(face, body.key), NO_MORE)
        elif isinstance(body, UndeclareQueryable):
            self._said(face, zid, QUERYABLE, self._named(face, body.key), NO_MORE)
        elif isinstance(body, UndeclareToken):
            self._said(face, zid, TOKEN, self._named(face, body.key), NO_MORE)
        else:
            face.ignored += 1

    def _named(self, face: Face, key: KeyExt | None) -> str | None:
        if key is None:
            return None
        return face.keys.resolve(key.scope, key.sender_mapping, key.suffix)

    def _said(self, face: Face, zid: bytes, kind: int, key: str | None, info: int) -> None:
        """A neighbour said that a router declares a key, or declares it no more."""
        flaw = key_flaw(key)
        if key is not None and not flaw:
            flaw = key_excess(key, face.limits)
        if key is None or flaw:
            face.illegal_key(flaw)
            return
        if zid not in self.state.nodes:
            face.ignored += 1
            return
        router = self.routers.get(zid)
        if router is None:
            router = RemoteRouter(zid, self.region)
            self.routers[zid] = router
        held = router.held[kind].get(key, NO_MORE)
        self._forget_doubt((zid, kind, key, face.id))
        if held == info and (info != NO_MORE or self._withdrawn.lately(zid, kind, key, self.now())):
            return  # said before: those below have heard it
        # If it is not the neighbour that should say so, it is either old news on a long way, or
        # the first word from a new side, or a lie: the next trees will tell.
        parent = self.trees.parent(zid)
        if parent and parent != face.zid:
            if len(self._doubted) >= DOUBTED or not face.charge(key):
                face.refused("more declarations for routers that are behind others than may wait")
                return
            self._doubted[zid, kind, key, face.id] = (face, info, self.now())
            doubts = self._doubts.get(face.id, 0) + 1
            self._doubts[face.id] = doubts
            if doubts > MANY_DOUBTED:
                face.held_back(
                    f"more than {MANY_DOUBTED} declarations for routers that are behind others: "
                    "they are believed if the map of routers comes to agree"
                )
            return
        self._hold(face, router, kind, key, info)
        self._pass_on(zid, face, kind, key, info)

    def _hold(self, face: Face, router: RemoteRouter, kind: int, key: str, info: int) -> None:
        """Bring the tables up to date with what a router declares, by the word of a neighbour."""
        numbers = router.numbers[kind]
        if info == NO_MORE:
            number = numbers.pop(key, -1)
            router.held[kind].pop(key, None)
            payer = router.payers[kind].pop(key, None)
            if payer is not None:
                payer.let_go(key)
            self.tables.undeclare(router, kind, number)
            return
        if key not in numbers:
            face.take_on(key)
            router.payers[kind][key] = face
            numbers[key] = router.fresh_id()
        router.held[kind][key] = info
        self.tables.declare(router, kind, numbers[key], key, info)

    # -------------------------------------------------------------------------- passing it on

    def _pass_on(self, zid: bytes, source: Face | None, kind: int, key: str, info: int) -> None:
        """Tell those below in a router's tree what it declares."""
        if info == NO_MORE:
            self._withdrawn.withdraw(zid, kind, key, self.now())
        else:
            self._withdrawn.declare(zid, kind, key)
        children = self._children(zid)
        if zid not in self._below:  # its first word
            self._below[zid] = {face.id for face in children}
        for face in children:
            if face is not source:
                self._say(face, zid, kind, key, info)

    def _tell_more(self) -> None:
        """Tell a slice more to those that are new below: one after the other.

        What changes meanwhile they are told at once, as all below are.
        """
        left = self.tables.slice
        while left > 0 and self._telling:
            place, telling = next(iter(self._telling.items()))
            if telling.rows is None:
                telling.rows = self._rows_of(telling.root, telling.face)
                left -= 1  # looking costs something where there is nothing, too
            rows = telling.rows
            now = rows[-left:]
            del rows[-left:]
            left -= len(now)
            for kind, key in now:
                self._tell(telling.face, telling.root, kind, key)
            if not rows:
                self._telling.pop(place, None)

    def _rows_of(self, root: bytes, face: Face) -> list[tuple[int, str]]:
        """All that a router declares, and what it declared until just now."""
        rows: list[tuple[int, str]] = []
        router = self.routers.get(root)
        for kind in KINDS:
            if root == self.me:
                rows.extend([(kind, key) for key in self.own[kind]])
            elif router is not None:
                rows.extend([(kind, key) for key in router.held[kind]])
        return rows + self._missed(root, face)

    def _missed(self, root: bytes, face: Face) -> list[tuple[int, str]]:
        return self._withdrawn.missed(root, face.id, face.zid, self.trees, self.now())

    def _tell(self, face: Face, root: bytes, kind: int, key: str) -> None:
        """Tell a neighbour whether a router declares a key now."""
        info = NO_MORE
        if root == self.me:
            info = self.own[kind].get(key, NO_MORE)
        else:
            router = self.routers.get(root)
            if router is not None:
                info = router.held[kind].get(key, NO_MORE)
        if info != NO_MORE or self._withdrawn.holds(root, kind, key):
            self._say(face, root, kind, key, info)

    def _say(self, face: Face, zid: bytes, kind: int, key: str, info: int) -> None:
        if not face.may_learn(DECLARE_SUBSCRIBER + kind, key):
            return
        number = self.state.psid(zid)
        if number < 0:
            # Forgotten, and perhaps back before the next computation: it shall be said then.
            self._below.get(zid, set()).discard(face.id)
            return
        if info == NO_MORE:
            self._say_no_more(face, number, kind, key)
            return
        scope, mine, suffix = face.wire_key(key, True)
        body = declaration(kind, 0, scope, suffix, mine, info)
        face.send(Declare(qos=CONTROL_QOS, node_id=number, body=body))

    def _say_no_more(self, face: Face, number: int, kind: int, key: str) -> None:
        scope, mine, suffix = face.wire_key(key, False)
        named = KeyExt(scope=scope, suffix=suffix, sender_mapping=mine)
        face.send(Declare(qos=CONTROL_QOS, node_id=number, body=undeclaration(kind, 0, named)))
