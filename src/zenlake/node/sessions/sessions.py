"""Sessions of a node: links are made and met, sessions open, gain and lose links, and end.

What that means for the rest of the node happens here: a face in the tables, routes found anew, the
neighbours that are told of the network, the connections that are tried again.
"""

from __future__ import annotations

from collections.abc import Callable

from zenlake.errors import ClosedError, HandshakeError, LimitError, RemoteError
from zenlake.node.core import Core
from zenlake.node.programs.local import Local
from zenlake.node.rejections import KEY, LIMIT, LOGIN, PENDING, PROTOCOL, UNDECODABLE, host_of
from zenlake.node.routes.routes import Routes
from zenlake.node.sessions.connect import Attempt, ConnectPlan
from zenlake.node.sessions.counts import ClosedSessionCounts
from zenlake.node.sessions.events import (
    LinkFinished,
    NodesDiscovered,
    SessionClosed,
    SessionOpened,
)
from zenlake.node.sessions.multicast import MulticastSession
from zenlake.node.sessions.neighbour import Neighbour, SessionOwner
from zenlake.node.sessions.openings import limit_reporter, overflow_of, room_for
from zenlake.node.sessions.topology import Topology
from zenlake.routing.face import Face
from zenlake.routing.policy.gate import PolicyCounters
from zenlake.routing.policy.messages import FLOWS
from zenlake.routing.regions import (
    CLIENT,
    NOT_YET,
    PEER,
    UNSAID,
    Placement,
    Traits,
    bound,
    claimed,
    place,
)
from zenlake.scouting.autoconnect import Autoconnect, gossip_delay
from zenlake.scouting.believed import believed
from zenlake.transport.budget import MemoryAccount
from zenlake.transport.handshake import (
    CONNECTION_TO_SELF,
    GENERIC,
    INVALID,
    MAX_LINKS,
    Offer,
    Terms,
    no_bound,
)
from zenlake.transport.multicast import MulticastTerms
from zenlake.transport.multilink import Purpose
from zenlake.transport.outbox import Outbox
from zenlake.transport.rsa import PrivateKey
from zenlake.transport.unicast import Unicast
from zenlake.values.locator import EndPoint
from zenlake.values.loopback import stays_within
from zenlake.values.qos import QOS_CONTROL
from zenlake.wire.codec_declare import DeclareFinal
from zenlake.wire.codec_network import Declare, Oam


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
        self.neighbours: list[Neighbour] = []
        #: Those whose session is not open yet: few, beside a hundred thousand that are.
        self.opening: dict[Neighbour, None] = {}
        #: The multicast groups that the node is in.
        self.multicasts: list[MulticastSession] = []
        self.past: ClosedSessionCounts = ClosedSessionCounts()
        #: What the policy stopped and changed of neighbours that have gone.
        self.stopped_in: PolicyCounters = PolicyCounters()
        self.stopped_out: PolicyCounters = PolicyCounters()
        self.plan: ConnectPlan = ConnectPlan(
            settings.mode == CLIENT and not settings.connect_all,
            settings.retry_init,
            settings.retry_max,
            settings.retry_factor,
        )
        #: Shown with each link by a node that allows several to one neighbour.
        self.link_key: PrivateKey | None = (
            PrivateKey.make(node.chance) if settings.max_links > 1 else None
        )
        self.gossip_connect: Autoconnect = Autoconnect(
            settings.zid, settings.autoconnect, settings.strategy
        )
        #: Discovered nodes to connect to, and when (gossip waits a moment, so that not all jump).
        self.discovered: list[tuple[float, tuple[str, ...], bytes]] = []
        #: Locators that neighbours told and that are not dialled on their word alone.
        self.passed_over: int = 0
        #: Connections to discovered nodes that the edge should make now.
        self.started: list[Attempt] = []

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
    ) -> Neighbour:
        """A new neighbour, whose session is to open within `timeout` seconds."""
        node = self.node
        settings = node.settings
        neighbour = Neighbour(node, self.routes, self, src, dst, stream, mtu, attempt)
        offer = Offer(
            zid=node.zid,
            whatami=node.mode,
            resolution=settings.resolution,
            batch_size=min(settings.batch_size, mtu),
            lease=settings.lease,
            qos=settings.qos,
            low_latency=settings.low_latency,
            compression=settings.compression,
            credentials=settings.credentials,
            region_name=settings.region_name.encode(),
            bound=no_bound if settings.south is None else self._bound_of(neighbour),
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
        unicast.outbox.on_overflow = overflow_of(neighbour)
        neighbour.unicast = unicast
        self.neighbours.append(neighbour)
        self.opening[neighbour] = None
        return neighbour

    def may_accept(self, peer: str) -> bool:
        """Whether one more stranger, connected from `peer`, may begin to open a session."""
        wait = self.node.brake.wait(host_of(peer), self.node.moment())
        if wait > 0.0:
            what = f"not let in: too many logins failed; again in {wait:.0f} s"
            self.node.rejections.add(LOGIN, peer, what, self.node.moment())
            return False
        settings = self.node.settings
        may, displaced = room_for(
            peer, self.opening, settings.limits.openings, settings.accept_pending
        )
        now = self.node.moment()
        if displaced is not None and displaced.unicast is not None:
            what = "too many of its address are opening a session, and others wait"
            displaced.unicast.fail(HandshakeError(what, GENERIC, PENDING), now)
        if not may:
            what = f"not let in: {len(self.opening)} others are opening a session"
            self.node.rejections.add(PENDING, peer, what, now)
        return may

    # ---------------------------------------------------------------------------------- opening

    def admit(self, neighbour: Neighbour, terms: Terms) -> int:
        """Whether a neighbour may open: -1, or the reason why not."""
        node = self.node
        if terms.zid == node.zid:
            return CONNECTION_TO_SELF
        if node.closing:
            return INVALID
        if not neighbour.attempt:
            self._check_proof(neighbour, terms)
        if terms.assigned != NOT_YET:
            self._place_of(neighbour, terms)  # which raises if there is none
        first = self.by_zid.get(terms.zid)
        if first is not None:
            return -1 if self._may_join(first, terms) else MAX_LINKS
        if (
            not neighbour.attempt
            and terms.link_key is None
            and self._is_opening_to(terms.zid)
            and node.zid > terms.zid
        ):
            # Both connected to each other at once: the link of the greater id stays.
            return MAX_LINKS
        if len(self.by_zid) >= node.settings.max_sessions:
            return INVALID
        if not neighbour.attempt:
            self._check_address(neighbour)
        return -1

    def _check_address(self, neighbour: Neighbour) -> None:
        """Refuse one session more from an address that has all that it may have."""
        host = host_of(neighbour.dst)
        most = self.node.settings.limits.sessions
        if len(self.by_zid) < most:
            return
        if sum([host_of(other.dst) == host for other in self.by_zid.values()]) >= most:
            raise HandshakeError(
                f"{most} sessions are open from its address (limits/address/sessions)",
                INVALID,
                LIMIT,
            )

    def _check_proof(self, neighbour: Neighbour, terms: Terms) -> None:
        """Refuse who guessed too often, and who claims a role that it has not proven."""
        node = self.node
        host = host_of(neighbour.dst)
        if node.settings.credentials.users is not None:
            wait = node.brake.wait(host, node.moment(), terms.user)
            if wait > 0.0:
                raise HandshakeError(
                    f"user '{terms.user[:64]}' must wait {wait:.0f} s: too many logins failed",
                    INVALID,
                    LOGIN,
                )
            node.brake.succeeded(host, terms.user)
        demanded = node.settings.proven.get(terms.whatami)
        if demanded is not None:
            shown = {terms.user, *neighbour.identity().certificates}
            if not demanded & shown:
                raise HandshakeError(
                    "it claims a role that only those named in transport/auth/roles may have, and "
                    "showed neither the user nor the certificate of one of them",
                    INVALID,
                    LOGIN,
                )

    def _claim_of(self, neighbour: Neighbour, terms: Terms) -> int:
        """Where this node's own list puts a neighbour."""
        node = self.node
        subregions = node.settings.south
        if subregions is None:
            return UNSAID
        name = terms.region_name.decode("utf-8", "replace")
        interfaces = neighbour.identity().interfaces
        return claimed(node.mode, subregions, Traits(terms.zid, terms.whatami, name, interfaces))

    def _bound_of(self, neighbour: Neighbour) -> Callable[[Terms], int]:
        """Tells in the opening where this node's own list puts a neighbour."""
        return lambda terms: bound(self._claim_of(neighbour, terms))

    def _place_of(self, neighbour: Neighbour, terms: Terms) -> Placement:
        """Where a neighbour lies; raises `HandshakeError` if both sides do not agree on that."""
        claim = self._claim_of(neighbour, terms)
        return place(self.node.mode, terms.whatami, claim, terms.assigned)

    def _may_join(self, first: Neighbour, terms: Terms) -> bool:
        """Whether a link may be one more of the session that there is."""
        node = self.node
        session = None if first.unicast is None else first.unicast.terms
        return (
            session is not None
            and terms.link_key is not None
            and terms.link_key == session.link_key
            and (terms.qos, terms.mask) == (session.qos, session.mask)
            and len(first.links) < node.settings.max_links
        )

    def _is_opening_to(self, zid: bytes) -> bool:
        for neighbour in self.opening:
            unicast = neighbour.unicast
            if neighbour.attempt and unicast is not None:
                initiator = unicast.initiator
                terms = None if initiator is None else initiator.terms
                if terms is not None and terms.zid == zid:
                    return True
        return False

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
        lies = self._place_of(neighbour, terms)
        face.lie(node.mode, lies.region, lies.serves)
        # Only peers of one region tell each other unasked, and when they have told all.
        mutual = face.kind == PEER and not face.south and not face.serves
        face.settled = not mutual
        neighbour.face = face
        neighbour.links = [neighbour]
        neighbour.obey(terms)
        self.by_zid[terms.zid] = neighbour
        face.on_illegal_key = _reporter(neighbour)
        face.on_limit = limit_reporter(neighbour)
        self.plan.opened(neighbour.attempt)
        node.wake_by(unicast.deadline)
        self.topology.greet(face)
        node.wake_by(self.topology.deadline())
        node.tables.add(face, now)
        self.local.greet(face, now)
        if mutual:
            face.send(Declare(interest_id=0, qos=QOS_CONTROL, body=DeclareFinal()))
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
        neighbour.face = face
        neighbour.links = first.links
        neighbour.links.append(neighbour)
        # What comes over a link is judged by what is known of that link.
        egress = face.egress
        neighbour.obey(terms)
        face.egress = egress
        self.plan.opened(neighbour.attempt)
        node.wake_by(unicast.deadline)
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
        if neighbour in self.neighbours:
            self.neighbours.remove(neighbour)
        if neighbour in neighbour.links:
            neighbour.links.remove(neighbour)
        face = neighbour.face
        if neighbour.unicast is not None and not neighbour.links:
            neighbour.unicast.free()
        self._reject(neighbour, error, now)
        neighbour.fold()
        self.past.add(neighbour)
        if face is not None:
            self.stopped_in.add(neighbour.stopped_in)
            self.stopped_out.add(neighbour.stopped_out)
        if face is not None and neighbour.links:
            # The session goes on over its other links.
            self.by_zid[face.zid] = neighbour.links[0]
            self._assign_outboxes(neighbour.links)
            node.happened.add(SessionClosed(neighbour, error))
        elif face is not None:
            if self.by_zid.get(face.zid) is neighbour:
                del self.by_zid[face.zid]
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
            initiator = None if unicast is None else unicast.initiator
            if face is None and initiator is not None and initiator.terms is not None:
                zid = initiator.terms.zid
                if zid in self.by_zid:
                    self.plan.taken(neighbour.attempt, zid, now)
            text = str(error) if error is not None else "closed"
            self.plan.over(neighbour.attempt, face is not None, text, now)
            node.wake_by(self.plan.deadline)
        node.happened.add(LinkFinished(neighbour))

    def _reject(self, neighbour: Neighbour, error: Exception | None, now: float) -> None:
        """Note that a link was given up for what came over it."""
        node = self.node
        unicast = neighbour.unicast
        if isinstance(error, ClosedError) or not isinstance(error, RemoteError):
            # It said goodbye, or the network failed; or it never said anything that could be read.
            stranger = neighbour.face is None and not neighbour.attempt
            if stranger and unicast is not None and unicast.bytes_received:
                acceptor = unicast.acceptor
                if acceptor is not None and acceptor.terms is None:
                    received = unicast.bytes_received
                    what = f"no session: it left after {received} bytes without an InitSyn"
                    node.rejections.add(UNDECODABLE, neighbour.dst, what, now)
            return
        if neighbour.face is not None:
            reason = error.about if isinstance(error, LimitError) else PROTOCOL
            node.rejections.add(reason, neighbour.dst, f"session closed: {error}", now)
        elif not neighbour.attempt:
            reason = UNDECODABLE
            if isinstance(error, HandshakeError):
                reason = error.about
            user = ""
            if reason == LOGIN:
                acceptor = None if unicast is None else unicast.acceptor
                user = "" if acceptor is None else acceptor.auth.tried
                if user:  # a guess; who shows nothing at all guesses nothing
                    node.brake.failed(host_of(neighbour.dst), user, now)
            node.rejections.add(reason, neighbour.dst, f"no session: {error}", now, user)

    # ------------------------------------------------------------------------- other nodes, groups

    def maintained(self, neighbour: Neighbour, message: Oam) -> None:
        """A neighbour tells of other nodes of the network."""
        face = neighbour.face
        if face is None:
            return
        within = stays_within(neighbour.src, neighbour.dst)
        discovered = self.topology.heard(face, message)
        if discovered:
            self.node.happened.add(NodesDiscovered(neighbour, discovered))
        for known in discovered:
            delay = gossip_delay(self.node.random())
            dialable = believed(known.locators, within, self.node.settings.gossip_networks)
            self.passed_over += len(known.locators) - len(dialable)
            if dialable:
                self.discover(known.zid, known.role, dialable, self.gossip_connect, delay)
        self.node.wake_by(self.topology.deadline())
        self.node.wake_by(self.node.tables.deadline())

    def discover(
        self, zid: bytes, role: int, locators: list[str], autoconnect: Autoconnect, delay: float
    ) -> None:
        """A node was discovered (`role` as a flag): connect to it if we want to, after `delay`."""
        node = self.node
        if node.closing or not autoconnect.wants(zid, role, locators, self.by_zid):
            return
        when = node.now + delay
        self.discovered.append((when, tuple(locators[:8]), zid))
        del self.discovered[:-1024]
        node.wake_by(when)

    def connect_discovered(self, now: float) -> float:
        """Connect to the discovered nodes whose time has come; when the next one is due."""
        due = [item for item in self.discovered if item[0] <= now]
        if due:
            self.discovered = [item for item in self.discovered if item[0] > now]
            for _, locators, zid in due:
                if zid in self.by_zid or self.node.closing:
                    continue
                attempt = self.plan.find(locators, zid, now)
                if attempt is not None:
                    self.started.append(attempt)
        return min([item[0] for item in self.discovered], default=float("inf"))

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


def _reporter(neighbour: Neighbour) -> Callable[[str], None]:
    """Takes what is wrong with keys that a neighbour names."""
    node = neighbour.node

    def report(flaw: str) -> None:
        node.rejections.add(KEY, neighbour.dst, f"ignored: {flaw}", node.now)

    return report


def purpose_of(endpoint: str) -> int:
    """What an endpoint says that its link is for, as the number on the wire."""
    metadata = dict(EndPoint.parse(endpoint).metadata)
    first = last = -1
    if "prio" in metadata:
        low, _, high = metadata["prio"].partition("-")
        first, last = int(low), int(high or low)
    return Purpose(first, last, int(metadata.get("rel", "-1"))).number()
