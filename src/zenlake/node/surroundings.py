"""Who else is there: what a node tells its neighbours about others, and what it is told.

Peers gossip among themselves. A router shares a map of the network with other routers, and
introduces the peers it serves to each other, unless it is their broker. A client neither tells
nor is told.
"""

from __future__ import annotations

from collections.abc import Callable

from zenlake.node.settings import NodeSettings
from zenlake.routing.face import Face
from zenlake.routing.introductions import Introductions
from zenlake.routing.linkstate import LINK_STATE, LinkStateTable
from zenlake.routing.mesh import Mesh
from zenlake.routing.regions import CLIENT, PEER, ROUTER
from zenlake.routing.tables import Tables
from zenlake.scouting.gossip import Gossip
from zenlake.wire.codec_network import Oam


class Found:
    """A node that a neighbour told of (`role` as a flag)."""

    __slots__ = ("locators", "role", "zid")

    def __init__(self, zid: bytes, role: int, locators: list[str]) -> None:
        """It listens at `locators`."""
        self.zid: bytes = zid
        self.role: int = role
        self.locators: list[str] = locators


class Surroundings:
    """What one node knows of others beyond its neighbours."""

    def __init__(
        self,
        settings: NodeSettings,
        tables: Tables,
        locators: Callable[[], list[str]],
        now: Callable[[], float],
    ) -> None:
        """`locators`: where this node listens; `now`: what time it is for it."""
        self.mode: int = settings.mode
        self.gossips: bool = settings.gossip
        self.gossip: Gossip = Gossip(
            settings.zid,
            1 << settings.mode,
            locators,
            settings.gossip_multihop,
            settings.gossip_targets,
        )
        # Peers that are served by a broker need not meet: one or the other, never both.
        self.introductions: Introductions = Introductions(
            settings.zid, settings.gossip and not settings.brokering, settings.gossip_targets
        )
        #: The other routers, if this is one.
        self.mesh: Mesh | None = None
        if settings.mode == ROUTER:
            state = LinkStateTable(
                settings.zid,
                locators,
                settings.gossip,
                settings.gossip_multihop,
                settings.gossip_targets,
                dict(settings.link_weights),
            )
            self.mesh = Mesh(tables, state, now)
        self._faces: dict[int, Face] = {}

    def greet(self, face: Face) -> None:
        """Tell a new neighbour who else is there; before anything is declared to it."""
        self._faces[face.id] = face
        mesh = self.mesh
        if mesh is None:
            if self.gossips and self.mode != CLIENT and face.role != CLIENT:
                self._say(self.gossip.added(face.id, face.zid, 1 << face.role))
        elif face.role == ROUTER:
            self._say(mesh.added(face))
            self._share(mesh)
        elif face.role == PEER:
            self._say(self.introductions.added(face.id, face.zid))

    def part(self, face: Face) -> None:
        """A neighbour has gone: tell those who should know."""
        if self._faces.pop(face.id, None) is None:
            return
        mesh = self.mesh
        if mesh is None:
            self._say(self.gossip.removed(face.id))
        elif face.role == ROUTER:
            self._say(mesh.removed(face))
            self._share(mesh)
        elif face.role == PEER:
            self.introductions.removed(face.id)

    def heard(self, face: Face, message: Oam) -> list[Found]:
        """A neighbour speaks of others: those that it made known."""
        if message.id != LINK_STATE:
            return []
        mesh = self.mesh
        if mesh is None:
            if not self.gossips:
                return []
            known, passed_on = self.gossip.received(face.id, message)
            self._say(passed_on)
            return [Found(node.zid, node.role, list(node.locators)) for node in known]
        if face.role == ROUTER:
            others, passed_on = mesh.received(face, message)
        else:
            others, passed_on = self.introductions.received(face.id, message)
        self._say(passed_on)
        self._share(mesh)
        if not self.gossips:
            return []
        return [Found(node.zid, node.role, list(node.locators)) for node in others]

    def _share(self, mesh: Mesh) -> None:
        """Share the work with other routers of the same peers."""
        for face in list(self._faces.values()):
            if face.role == PEER:
                gateways = self.introductions.gateways(face.id)
                if gateways != face.gateways:
                    face.gateways = gateways
                    mesh.tables.version += 1
                mesh.tables.relink(face, self.introductions.links(face.id))
                mesh.tables.carry(face, self.introductions.leads(face.id, mesh.state.nodes))

    def relocated(self) -> None:
        """This node listens elsewhere now: tell the other routers."""
        if self.mesh is not None:
            self._say(self.mesh.state.relocated())

    def reweighed(self, weights: dict[bytes, int]) -> None:
        """The links to other routers should weigh something else now."""
        mesh = self.mesh
        if mesh is not None:
            self._say(mesh.reweighed(weights))

    def tick(self, now: float) -> None:
        """Do what is due."""
        if self.mesh is not None:
            self.mesh.tick(now)

    def deadline(self) -> float:
        """When `tick` has something to do."""
        return float("inf") if self.mesh is None else self.mesh.plan.deadline

    def _say(self, messages: list[tuple[int, Oam]]) -> None:
        for id, message in messages:
            face = self._faces.get(id)
            if face is not None:
                face.send(message)
