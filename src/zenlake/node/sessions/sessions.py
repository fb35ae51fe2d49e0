"""Sessions of a node: links are made and met, sessions open, gain and lose links, and end.

What that means for the rest of the node happens here: a face in the tables, routes found anew, the
neighbours that are told of the network, the connections that are tried again.
"""

from __future__ import annotations

from collections.abc import Callable

from zenlake.node.core import Core
from zenlake.node.programs.local import Local
from zenlake.node.routes.routes import Routes
from zenlake.node.sessions.connect import ConnectPlan
from zenlake.node.sessions.counts import ClosedSessionCounts
from zenlake.node.sessions.discovered import DiscoveredNodes
from zenlake.node.sessions.events import (
    LinkFinished,
    NodesDiscovered,
    SessionClosed,
    SessionOpened,
)
from zenlake.node.sessions.leases import Leases
from zenlake.node.sessions.multicast import MulticastSession
from zenlake.node.sessions.neighbour import Neighbour, SessionOwner, drop_log
from zenlake.node.sessions.openings import illegal_key_reporter, limit_reporter, overflow_of
from zenlake.node.sessions.session_admission import SessionAdmission
from zenlake.node.sessions.topology import Topology
from zenlake.routing.face import Face
from zenlake.routing.policy.gate import PolicyCounters
from zenlake.routing.policy.messages import FLOWS
from zenlake.routing.regions import CLIENT, PEER
from zenlake.transport.auth import Credentials
from zenlake.transport.budget import MemoryAccount
from zenlake.transport.handshake import Offer, Terms, no_bound
from zenlake.transport.multicast_terms import MulticastTerms
from zenlake.transport.multilink import Purpose
from zenlake.transport.outbox import Outbox
from zenlake.transport.rsa import PrivateKey
from zenlake.transport.unicast import Unicast
from zenlake.values.locator import EndPoint
from zenlake.values.loopback import stays_within
from zenlake.wire.codec_network import Oam


class Sessions(SessionOwner):
    """All sessions of a node, the links of each, and the connections that are wanted."""

    def __init__(
        self,
        node: Core,
        routes: Routes,
        local: Local,
        topology: Topology,
        make_outbox: Callable[[bool, int], Outbox],
    ) -> None:
        """`make_outbox` makes one for a link: (stream, depth of its queues)."""
        super().__init__()
        settings = node.settings
        self.node: Core = node
        self.routes: Routes = routes
        self.local: Local = local
        self.topology: Topology = topology
        self.make_outbox: Callable[[bool, int], Outbox] = make_outbox
        #: A neighbour for each link.
        self.neighbours: dict[Neighbour, None] = {}
        #: Those whose session is not open yet: few, beside a hundred thousand that are.
        self.opening: dict[Neighbour, None] = {}
        #: When each link is looked at next.
        self.leases: Leases = Leases(self.neighbours)
        #: The multicast groups that the node is in.
        self.multicasts: list[MulticastSession] = []
        self.past: ClosedSessionCounts = ClosedSessionCounts()
        #: What the policy stopped and changed of neighbours that have gone.
        self.stopped_in: PolicyCounters = PolicyCounters()
        self.stopped_out: PolicyCounters = PolicyCounters()
        self.plan: ConnectPlan = ConnectPlan(
            settings.mode == CLIENT and not settings.connect_all,
            settings.retry,
        )
        #: Shown with each link by a node that allows several to one neighbour.
        self.link_key: PrivateKey | None = (
            PrivateKey.make(node.chance) if settings.max_links > 1 else None
        )
        #: Which links may become sessions.
        self.admission: SessionAdmission = SessionAdmission(node, self.by_zid, self.opening)
        #: Connections to nodes that are not configured.
        self.discovered: DiscoveredNodes = DiscoveredNodes(node, self.plan, self.by_zid)

    # ------------------------------------------------------------------------------------ links

    def meet(
        self,
        src: str,
        dst: str,
        stream: bool,
        mtu: int,
        attempt: int,
        timeout: float,
        purpose: int = 0,
        parts: Credentials | None = None,
    ) -> Neighbour:
        """A new neighbour, whose session is to open within `timeout` seconds.

        `parts`: it came over the listener of the parts of this service, who are known by these.
        """
        node = self.node
        settings = node.settings
        neighbour = Neighbour(node, self.routes, self, src, dst, stream, mtu, attempt)
        neighbour.part = parts is not None
        offer = Offer(
            zid=node.zid,
            whatami=node.mode,
            resolution=settings.resolution,
            batch_size=min(settings.batch_size, mtu),
            lease=settings.lease,
            qos=settings.qos,
            low_latency=settings.low_latency,
            compression=settings.compression,
            credentials=settings.credentials if parts is None else parts,
            region_name=settings.region_name.encode(),
            bound=no_bound if settings.south is None else self.admission.bound_of(neighbour),
            link_key=self.link_key,
            purpose=purpose,
            random=node.chance,
        )
        limits = settings.limits
        unicast = Unicast(
            offer,
            neighbour,
            stream,
            self.make_outbox(stream, settings.queue_depth),
            settings.keep_alive,
            settings.max_message,
            timeout,
            MemoryAccount(limits.fragments, node.fragments),
        )
        unicast.outbox.share_pool(node.waiting, limits.waiting)
        unicast.outbox.on_overflow = overflow_of(neighbour, self.leases)
        neighbour.unicast = unicast
        self.neighbours[neighbour] = None
        self.opening[neighbour] = None
        return neighbour

    # ---------------------------------------------------------------------------------- opening

    def admit(self, neighbour: Neighbour, terms: Terms) -> int:
        """Whether a neighbour may open a session: -1, or the reason why not."""
        return self.admission.admit(neighbour, terms)

    def opened(self, neighbour: Neighbour, terms: Terms, now: float) -> None:
        """A session is open: tell it what it must know, ask what we must know."""
        self.opening.pop(neighbour, None)
        node = self.node
        node.now = now
        unicast = neighbour.unicast
        assert unicast is not None
        first = self.by_zid.get(terms.zid)
        if first is not None:
            self._join(first, neighbour, terms)
            return
        face = Face(
            node.fresh_face(),
            terms.zid,
            terms.whatami,
            unicast.outbox,
            node.settings.limits,
            node.memory,
        )
        lies = self.admission.place_of(neighbour, terms)
        face.lie(node.mode, lies.region, lies.serves)
        # Only peers of one region tell each other unasked, and when they have told all.
        mutual = face.kind == PEER and not face.south and not face.serves
        face.settled = not mutual
        neighbour.enter(face)
        unicast.outbox.lost = drop_log(node, face)
        neighbour.links = [neighbour]
        neighbour.obey(terms)
        self.by_zid[terms.zid] = neighbour
        self.admission.opened(neighbour)
        face.on_illegal_key = illegal_key_reporter(neighbour)
        face.on_limit = limit_reporter(neighbour)
        self.plan.opened(neighbour.attempt)
        node.wake_by(self.leases.add(neighbour))
        self.topology.greet(face)
        node.wake_by(self.topology.deadline())
        node.tables.add(face, now)
        self.local.greet(face, now)
        if mutual:
            node.tables.conclude(face)
        node.wake_by(node.tables.deadline())
        node.happened.add(SessionOpened(neighbour))

    def _join(self, first: Neighbour, neighbour: Neighbour, terms: Terms) -> None:
        """A link joins the session of another."""
        node = self.node
        unicast = neighbour.unicast
        face = first.face
        assert unicast is not None
        assert first.unicast is not None
        assert face is not None
        unicast.share(first.unicast)
        neighbour.enter(face)
        unicast.outbox.lost = first.unicast.outbox.lost
        neighbour.links = first.links
        neighbour.links.append(neighbour)
        # What comes over a link is judged by what is known of that link.
        egress = face.egress
        neighbour.obey(terms)
        face.egress = egress
        self.plan.opened(neighbour.attempt)
        node.wake_by(self.leases.add(neighbour))
        self._assign_outboxes(first.links)
        node.happened.add(SessionOpened(neighbour))

    def _assign_outboxes(self, links: list[Neighbour]) -> None:
        """Choose anew which link of a session is for which messages."""
        node = self.node
        face = links[0].face
        assert face is not None
        outboxes = [link.purpose() for link in links]
        face.outbox = outboxes[0][1]
        face.outboxes = outboxes if len(outboxes) > 1 else []
        node.tables.version += 1

    # ---------------------------------------------------------------------------------- closing

    def closed(self, neighbour: Neighbour, error: Exception | None, now: float) -> None:
        """A link is gone, and with its last one the session; or it never began."""
        node = self.node
        node.now = now
        self.opening.pop(neighbour, None)
        self.neighbours.pop(neighbour, None)
        self.leases.remove(neighbour)
        if neighbour in neighbour.links:
            neighbour.links.remove(neighbour)
        face = neighbour.face
        if neighbour.unicast is not None and not neighbour.links:
            neighbour.unicast.free()
        self.admission.reject(neighbour, error, now)
        neighbour.pushes.clear()
        self.past.add(neighbour)
        if face is not None:
            self.stopped_in.add(neighbour.stopped_in)
            self.stopped_out.add(neighbour.stopped_out)
        if face is not None and neighbour.links:
            # The session goes on over its other links.
            if self.by_zid.get(face.zid) is neighbour:
                self.by_zid[face.zid] = neighbour.links[0]
                self.admission.closed(neighbour)
                self.admission.opened(neighbour.links[0])
            self._assign_outboxes(neighbour.links)
            node.happened.add(SessionClosed(neighbour, error))
        elif face is not None:
            if self.by_zid.get(face.zid) is neighbour:
                del self.by_zid[face.zid]
                self.admission.closed(neighbour)
                self.plan.released(face.zid, now)
            face.closed = True
            node.queries.remove(face)
            node.tables.remove(face)
            self.topology.part(face)
            node.wake_by(self.topology.deadline())
            node.wake_by(node.tables.deadline())
            node.wake_by(node.queries.deadline())
            node.happened.add(SessionClosed(neighbour, error))
        if neighbour.attempt:
            unicast = neighbour.unicast
            initiator = None if unicast is None else unicast.opening.initiator
            if face is None and initiator is not None and initiator.terms is not None:
                zid = initiator.terms.zid
                if zid in self.by_zid:
                    self.plan.taken(neighbour.attempt, zid, now)
            text = str(error) if error is not None else "closed"
            self.plan.over(neighbour.attempt, face is not None, text, now)
            node.wake_by(self.plan.deadline)
        if neighbour.unicast is not None:
            neighbour.unicast.part()
        if face is not None and face.closed:
            face.part()
        node.happened.add(LinkFinished(neighbour))

    # ------------------------------------------------------------------------- other nodes, groups

    def maintained(self, neighbour: Neighbour, message: Oam) -> None:
        """A neighbour tells of other nodes of the network."""
        face = neighbour.face
        if face is None:
            return
        within = stays_within(neighbour.src, neighbour.dst)
        known = self.topology.heard(face, message)
        if known:
            self.node.happened.add(NodesDiscovered(neighbour, known))
        for other in known:
            self.discovered.gossiped(other, within)
        self.node.wake_by(self.topology.deadline())
        self.node.wake_by(self.node.tables.deadline())

    def join(self, place: str, terms: MulticastTerms, outbox: Outbox) -> MulticastSession:
        """Be a member of a multicast group from now on."""
        node = self.node
        multicast = MulticastSession(node, self.routes, self, place, terms, outbox)
        self.multicasts.append(multicast)
        node.group_faces.append(multicast.face)
        node.tables.version += 1  # every publication finds its route anew
        return multicast

    def member_changed(self, neighbour: Neighbour, joined: bool) -> None:
        """A member of a multicast group joined it, or left it."""
        happened = self.node.happened
        if joined:
            happened.add(SessionOpened(neighbour))
        else:
            happened.add(SessionClosed(neighbour, neighbour.error))

    # ------------------------------------------------------------------------- for operators

    def settled(self) -> bool:
        """Whether every neighbour has told what it had at the start."""
        for neighbour in self.neighbours:
            face = neighbour.face
            if face is None or not face.settled:
                return False
        return True

    def stops(self) -> dict[str, dict[str, int]]:
        """How many messages the policy stopped and changed since the start, by flow and reason."""
        ingress = PolicyCounters()
        egress = PolicyCounters()
        ingress.add(self.stopped_in)
        egress.add(self.stopped_out)
        for neighbour in self.neighbours:
            ingress.add(neighbour.stopped_in)
            egress.add(neighbour.stopped_out)
        return {FLOWS[0]: ingress.to_dict(), FLOWS[1]: egress.to_dict()}


def purpose_of(endpoint: str) -> int:
    """What an endpoint says that its link is for, as the number on the wire."""
    metadata = dict(EndPoint.parse(endpoint).metadata)
    first = last = -1
    if "prio" in metadata:
        low, _, high = metadata["prio"].partition("-")
        first, last = int(low), int(high or low)
    return Purpose(first, last, int(metadata.get("rel", "-1"))).number()
