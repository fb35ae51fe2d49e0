"""The topology: what a node tells its neighbours about other nodes, and what it is told.

Peers gossip among themselves. A router shares a map of the network with other routers, of each
region by itself. A gateway introduces the peers of a region to each other, unless it is
their broker. In the north a client neither tells nor is told.
"""

from __future__ import annotations

from collections.abc import Callable, Container

from zenlake.node.settings import NodeSettings
from zenlake.routing.face import Face
from zenlake.routing.introductions import Introductions
from zenlake.routing.linkstate import LinkStateTable
from zenlake.routing.mesh import Mesh
from zenlake.routing.regions import CLIENT, NORTH, PEER, ROUTER, south
from zenlake.routing.tables import Tables
from zenlake.scouting.gossip import Gossip
from zenlake.wire.codec_network import Oam
from zenlake.wire.link_state import LINK_STATE, KnownNode


class Topology:
    """What one node knows of others beyond its neighbours."""

    def __init__(
        self,
        settings: NodeSettings,
        tables: Tables,
        meshes: dict[int, Mesh],
        locators: Callable[[], list[str]],
        now: Callable[[], float],
    ) -> None:
        """`meshes`: filled with the routers of each region; `locators`: where this node listens;
        `now`: what time it is for it.
        """
        self.mode: int = settings.mode
        self.gossips: bool = settings.gossip
        self.gossip: Gossip = Gossip(
            settings.zid,
            1 << settings.mode,
            locators,
            settings.gossip_multihop,
            settings.gossip_targets,
        )
        self.tables: Tables = tables
        #: The peers that it serves, by region.
        self.introductions: dict[int, Introductions] = {}
        #: The other routers, if this is one, by region; and those in the north.
        self.meshes: dict[int, Mesh] = meshes
        self.mesh: Mesh | None = None
        self._settings: NodeSettings = settings
        self._locators: Callable[[], list[str]] = locators
        self._now: Callable[[], float] = now
        if settings.mode == ROUTER:
            self.mesh = self._mesh(NORTH)
        subregions = len(settings.south or ())
        if settings.mode == ROUTER and settings.south is None:
            subregions = 1
        for index in range(subregions):
            self._introductions(south(index, PEER))
        self._faces: dict[int, Face] = {}
        #: Those of peers in the south: there may be a hundred thousand clients beside them.
        self._served: dict[int, Face] = {}

    def _introductions(self, region: int) -> Introductions:
        """The peers of a region."""
        introductions = self.introductions.get(region)
        if introductions is None:
            settings = self._settings
            # Peers that are served by a broker need not meet: one or the other, never both.
            gossip = settings.gossip and not self.tables.brokering
            introductions = Introductions(settings.zid, gossip, settings.gossip_targets)
            self.introductions[region] = introductions
        return introductions

    def _mesh(self, region: int) -> Mesh:
        """The routers of a region; in the south there is a mesh as soon as there is a router."""
        mesh = self.meshes.get(region)
        if mesh is None:
            settings = self._settings
            state = LinkStateTable(
                settings.zid,
                self._locators,
                settings.gossip,
                settings.gossip_multihop,
                settings.gossip_targets,
                dict(settings.link_weights),
            )
            state.most_links = settings.limits.links
            mesh = Mesh(self.tables, state, self._now, self.meshes, region)
            self.tables.routers[region] = mesh
            self.meshes[region] = mesh
        return mesh

    def passed_over(self) -> int:
        """How many entries of neighbours were about unknown nodes, or beyond what is remembered."""
        counted = self.gossip.passed_over
        for introductions in self.introductions.values():
            counted += introductions.passed_over
        for mesh in self.meshes.values():
            counted += mesh.state.passed_over
        return counted

    def greet(self, face: Face) -> None:
        """Tell a new neighbour who else is there; before anything is declared to it."""
        self._faces[face.id] = face
        if face.kind == ROUTER:
            self._say(self._mesh(face.region).added(face))
        elif face.south:
            if face.kind == PEER:
                self._served[face.id] = face
                self._say(self._introductions(face.region).added(face.id, face.zid))
        elif face.kind == PEER and self.gossips:
            self._say(self.gossip.added(face.id, face.zid, 1 << face.role, face.serves))
        self._share()

    def part(self, face: Face) -> None:
        """A neighbour has gone: tell the other routers or peers of its region."""
        if self._faces.pop(face.id, None) is None:
            return
        if face.kind == ROUTER:
            self._say(self.meshes[face.region].removed(face))
        elif face.south:
            if face.kind == PEER:
                self._served.pop(face.id, None)
                self.introductions[face.region].removed(face.id)
        else:
            self._say(self.gossip.removed(face.id))
        self._share()

    def heard(self, face: Face, message: Oam) -> list[KnownNode]:
        """A neighbour speaks of others: those that it made known."""
        if message.id != LINK_STATE:
            return []
        if face.kind == ROUTER:
            known, passed_on = self.meshes[face.region].received(face, message)
        elif face.south:
            introductions = self.introductions.get(face.region)
            if introductions is None:
                return []
            known, passed_on = introductions.received(face.id, message)
        else:
            if not self.gossips:
                return []
            known, passed_on = self.gossip.received(face.id, message)
        self._say(passed_on)
        self._share()
        return known if self.gossips else []

    def _share(self) -> None:
        """Share the work with other gateways of the same peers."""
        if not self._served:
            return
        reachable = self._reachable()
        tables = self.tables
        for face in list(self._served.values()):
            introductions = self.introductions[face.region]
            gateways = introductions.gateways(face.id)
            if gateways != face.gateways:
                face.gateways = gateways
                tables.version += 1
            tables.relink(face, introductions.links(face.id))
            tables.carry(face, introductions.leads(face.id, reachable))

    def _reachable(self) -> Container[bytes] | None:
        """The nodes of the north that things can be left to; None: it cannot be known."""
        if self.mesh is not None:
            return self.mesh.state.nodes
        if self.mode == CLIENT:
            return None
        return {face.zid for face in self._faces.values() if not face.south}

    def links_of(self, face: Face) -> frozenset[bytes]:
        """The nodes that a neighbour in the south has sessions with, as far as announced."""
        introductions = self.introductions.get(face.region)
        return frozenset() if introductions is None else introductions.links(face.id)

    def relocated(self) -> None:
        """This node listens elsewhere now: tell the other routers."""
        for mesh in self.meshes.values():
            self._say(mesh.state.relocated())

    def change(self, settings: NodeSettings) -> None:
        """Other settings hold from now on, for what begins later."""
        self._settings = settings

    def reweighed(self, weights: dict[bytes, int]) -> None:
        """The links to other routers should weigh something else now."""
        for mesh in self.meshes.values():
            self._say(mesh.reweighed(weights))

    def tick(self, now: float) -> None:
        """Do what is due."""
        for mesh in self.meshes.values():
            mesh.tick(now)

    def deadline(self) -> float:
        """When `tick` has something to do."""
        return min((mesh.deadline() for mesh in self.meshes.values()), default=float("inf"))

    def _say(self, messages: list[tuple[int, Oam]]) -> None:
        for id, message in messages:
            face = self._faces.get(id)
            if face is not None:
                face.send(message)
