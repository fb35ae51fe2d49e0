"""Everything a node decides, with no socket, no clock and no thread.

The edge gives it links and time, and does what it asks:

    node.start(now)
    node.attempts(now)                 connections to make; then connected() or failed()
    node.connected(...), node.accepted(...)   a link is up: a Neighbour to feed and to empty
    neighbour.unicast.receive(data, now), neighbour.unicast.outbox.take()
    node.deadline, node.tick(now)

Programs declare and ask through `local`, and publish through `Publication`, which needs no lock.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from zenlake.errors import RemoteError
from zenlake.keys.keyexpr import KeyExpr
from zenlake.node.connect import Attempt, ConnectPlan
from zenlake.node.counts import Past
from zenlake.node.entities import Publication, Remote
from zenlake.node.forward import Inbound, Relay
from zenlake.node.groups import Crowd, Member
from zenlake.node.guard import subject_of
from zenlake.node.local import Local
from zenlake.node.neighbour import Neighbour, outbox_for
from zenlake.node.settings import NodeSettings
from zenlake.node.sink import FrameSink
from zenlake.node.stamps import Stamps
from zenlake.node.surroundings import Surroundings
from zenlake.node.traffic import Traffic
from zenlake.routing.face import Face, InterestOut
from zenlake.routing.home import Home
from zenlake.routing.mesh import Mesh
from zenlake.routing.policy.gate import Counters, Gate, Interceptors
from zenlake.routing.policy.messages import FLOWS, KINDS, PUT
from zenlake.routing.policy.policy import Policy
from zenlake.routing.pubsub import destinations
from zenlake.routing.queries import Branch, Questions
from zenlake.routing.regions import CLIENT, LOCAL, PEER, ROUTER
from zenlake.routing.resources import SUBSCRIBER
from zenlake.routing.tables import Tables
from zenlake.scouting.autoconnect import Autoconnect, gossip_delay
from zenlake.transport.handshake import (
    CONNECTION_TO_SELF,
    INVALID,
    MAX_LINKS,
    Offer,
    Terms,
)
from zenlake.transport.multicast import GroupTerms
from zenlake.transport.multilink import Purpose
from zenlake.transport.outbox import Outbox, vle
from zenlake.transport.rsa import PrivateKey
from zenlake.transport.unicast import Unicast
from zenlake.values.locator import EndPoint
from zenlake.wire.codec_declare import DeclareFinal
from zenlake.wire.codec_network import Declare, Oam, Push, TimestampRecord, TimestampStack
from zenlake.wire.codec_zenoh import Query
from zenlake.wire.cursor import Writer

FOREVER: Final = float("inf")

#: The most times that a message carries.
TIMES: Final = 255


class Node(Home):
    """A client, a peer or a router."""

    def __init__(
        self,
        settings: NodeSettings,
        cookie: Callable[[], bytes],
        random: Callable[[], float],
        make_outbox: Callable[[bool, int], Outbox] = outbox_for,
        stamps: Stamps | None = None,
    ) -> None:
        """`cookie` gives bytes nobody can guess, `random` a number from 0 to 1.

        With `stamps`, values that pass without a time are given one.
        """
        self.settings: NodeSettings = settings
        self.zid: bytes = settings.zid
        self.mode: int = settings.mode
        self.cookie: Callable[[], bytes] = cookie
        self.random: Callable[[], float] = random
        self.make_outbox: Callable[[bool, int], Outbox] = make_outbox
        self.stamps: Stamps | None = stamps
        #: Takes the time at a point of a message's way; None: nobody here does.
        self.take_time: Callable[[int], TimestampRecord | None] | None = None
        self.now: float = 0.0
        #: Tells the time to publications, which do not wait for `now`; None: it is `now`.
        self.clock: Callable[[], float] | None = None
        self.policy: Policy = settings.policy
        #: What the policy stopped and changed of neighbours that have gone.
        self.stopped_in: Counters = Counters()
        self.stopped_out: Counters = Counters()
        #: Told of each message that it stops: (neighbour, flow, reason, kind, key).
        self.on_stopped: Callable[[Neighbour, str, str, str, str], None] | None = None
        self.tables: Tables = Tables(settings.mode, self)
        self.tables.interest_timeout = settings.interest_timeout
        self.tables.brokering = settings.brokering and settings.mode == ROUTER
        self.questions: Questions = Questions(self.tables, self, settings.query_timeout)
        self.face: Face = Face(0, settings.zid, LOCAL, None)
        self.tables.add(self.face, 0.0)
        self.next_face: int = 1
        #: What passed, by key.
        self.traffic: Traffic = Traffic(
            settings.prefix_depth, settings.prefix_limit, settings.counted_keys
        )
        self.past: Past = Past()
        self.neighbours: list[Neighbour] = []
        self.by_zid: dict[bytes, Neighbour] = {}
        #: The multicast groups that it is in.
        self.crowds: list[Crowd] = []
        self.plan: ConnectPlan = ConnectPlan(
            settings.mode == CLIENT and not settings.connect_all,
            settings.retry_init,
            settings.retry_max,
            settings.retry_factor,
        )
        self.surroundings: Surroundings = Surroundings(
            settings, self.tables, self.locators, self.time
        )
        self.mesh: Mesh | None = self.surroundings.mesh
        self.tables.mesh = self.mesh
        #: Shown with each link by a node that allows several to one neighbour.
        self.link_key: PrivateKey | None = (
            PrivateKey.make(self.chance) if settings.max_links > 1 else None
        )
        self.gossip_connect: Autoconnect = Autoconnect(
            settings.zid, settings.autoconnect, settings.strategy
        )
        self.local: Local = Local(self)
        #: Found nodes to connect to, and when (gossip waits a moment, so that not all jump).
        self.found: list[tuple[float, tuple[str, ...], bytes]] = []
        self._started: list[Attempt] = []
        #: When `tick` wants to be called.
        self.deadline: float = FOREVER
        self.closing: bool = False
        #: Calls `find_publication_way` under the lock of those who have threads.
        self.guard: Callable[[Publication], None] | None = None
        #: Told when sessions open and close: (neighbour, opened).
        self.on_session: Callable[[Neighbour, bool], None] | None = None

    def chance(self, size: int) -> bytes:
        """Bytes nobody can guess."""
        found = b""
        while len(found) < size:
            found += self.cookie()
        return found[:size]

    def time(self) -> float:
        """What time it is, as far as the node was told."""
        return self.now

    def moment(self) -> float:
        """What time it is, for those who come without telling it."""
        clock = self.clock
        return self.now if clock is None else clock()

    def locators(self) -> list[str]:
        """Where others can connect to this node."""
        return list(self.settings.locators)

    # -------------------------------------------------------------------------------- time

    def wake_by(self, when: float) -> None:
        """Have `tick` called by then at the latest."""
        if when < self.deadline:
            self.deadline = when

    def start(self, now: float) -> None:
        """Begin to connect."""
        self.now = now
        self.plan.configure(self.settings.connect, now)
        self.wake_by(now)

    def tick(self, now: float) -> None:
        """Do what is due."""
        self.now = now
        deadline = FOREVER
        for neighbour in list(self.neighbours):
            unicast = neighbour.unicast
            if unicast is None:
                continue
            if unicast.deadline <= now:
                try:
                    unicast.tick(now)
                except RemoteError as error:
                    unicast.fail(error, now)
                    continue
            deadline = min(deadline, unicast.deadline)
        for crowd in self.crowds:
            if crowd.group.deadline <= now:
                crowd.group.tick(now)
            deadline = min(deadline, crowd.group.deadline)
        self.surroundings.tick(now)
        self.tables.expire(now)
        self.questions.expire(now)
        self.local.expire(now)
        due = [item for item in self.found if item[0] <= now]
        if due:
            self.found = [item for item in self.found if item[0] > now]
            for _, locators, zid in due:
                self._connect_found(locators, zid)
        for when, _, _ in self.found:
            deadline = min(deadline, when)
        self.deadline = min(
            deadline,
            self.surroundings.deadline(),
            self.tables.deadline(),
            self.questions.deadline(),
            self.local.deadline(),
            self.plan.deadline,
        )

    # --------------------------------------------------------------------------------- links

    def attempts(self, now: float) -> list[Attempt]:
        """The connections that the edge should make now."""
        self.now = now
        started = self.plan.due(now) + self._started
        self._started = []
        self.wake_by(self.plan.deadline)
        return started

    def connect(self, endpoint: str, now: float) -> None:
        """Keep a connection to one more endpoint."""
        self.plan.add(endpoint, now)
        self.wake_by(now)

    def change_endpoints(self, endpoints: tuple[str, ...], now: float) -> None:
        """Keep connections to these endpoints, and to no others that were configured."""
        self.now = now
        unwanted = self.plan.change(endpoints, now)
        for neighbour in list(self.neighbours):
            unicast = neighbour.unicast
            if neighbour.attempt in unwanted and unicast is not None:
                unicast.close(now)
        self.wake_by(now)

    def change_settings(self, settings: NodeSettings) -> None:
        """Behave otherwise from now on, where that can be changed: places, weights, policy."""
        before = self.settings
        self.settings = settings
        if settings.locators != before.locators:
            self.surroundings.relocated()
        if settings.link_weights != before.link_weights:
            self.surroundings.reweighed(dict(settings.link_weights))
            self.wake_by(self.surroundings.deadline())
        if settings.policy is not before.policy:
            self.obey(settings.policy)

    def _connect_found(self, locators: tuple[str, ...], zid: bytes) -> None:
        if zid in self.by_zid or self.closing:
            return
        attempt = self.plan.find(locators, zid)
        if attempt is not None:
            self._started.append(attempt)

    def failed(self, attempt: Attempt, error: str, now: float) -> None:
        """A connection could not be made."""
        self.now = now
        self.plan.over(attempt.id, False, error, now)
        self.wake_by(self.plan.deadline)

    def connected(
        self, attempt: Attempt, src: str, dst: str, stream: bool, mtu: int, now: float
    ) -> Neighbour:
        """A connection was made: say the first word."""
        patience = self.settings.open_timeout
        purpose = purpose_of(attempt.endpoint)
        neighbour = self._neighbour(src, dst, stream, mtu, attempt.id, patience, purpose)
        self.now = now
        unicast = neighbour.unicast
        assert unicast is not None
        unicast.connect(now, attempt.expected)
        self.wake_by(unicast.deadline)
        return neighbour

    def accepted(self, src: str, dst: str, stream: bool, mtu: int, now: float) -> Neighbour:
        """Somebody connected to us."""
        neighbour = self._neighbour(src, dst, stream, mtu, 0, self.settings.accept_timeout)
        self.now = now
        unicast = neighbour.unicast
        assert unicast is not None
        unicast.listen(now, self.cookie())
        self.wake_by(unicast.deadline)
        return neighbour

    def may_accept(self) -> bool:
        """Whether one more stranger may begin to open a session."""
        pending = 0
        for neighbour in self.neighbours:
            if not neighbour.attempt and neighbour.face is None:
                pending += 1
        return pending < self.settings.accept_pending

    def _neighbour(
        self,
        src: str,
        dst: str,
        stream: bool,
        mtu: int,
        attempt: int,
        timeout: float,
        purpose: int = 0,
    ) -> Neighbour:
        settings = self.settings
        neighbour = Neighbour(self, src, dst, stream, mtu, attempt)
        offer = Offer(
            zid=self.zid,
            whatami=self.mode,
            resolution=settings.resolution,
            batch_size=min(settings.batch_size, mtu),
            lease=settings.lease,
            qos=settings.qos,
            low_latency=settings.low_latency,
            compression=settings.compression,
            credentials=settings.credentials,
            region_name=settings.region_name.encode(),
            link_key=self.link_key,
            purpose=purpose,
            random=self.chance,
        )
        neighbour.unicast = Unicast(
            offer,
            neighbour,
            stream,
            self.make_outbox(stream, settings.queue_depth),
            settings.keep_alive,
            settings.max_message,
            timeout,
        )
        self.neighbours.append(neighbour)
        return neighbour

    def receive(self, neighbour: Neighbour, data: bytes, now: float) -> None:
        """Bytes came over a neighbour's link; what is wrong with them ends its session."""
        self.now = now
        unicast = neighbour.unicast
        if unicast is None:
            return
        try:
            unicast.receive(data, now)
        except RemoteError as error:
            neighbour.settle()
            unicast.fail(error, now)
            return
        neighbour.settle()

    def lost(self, neighbour: Neighbour, error: Exception | None, now: float) -> None:
        """A neighbour's link is gone."""
        self.now = now
        unicast = neighbour.unicast
        if unicast is not None:
            unicast.lost(error, now)

    def close(self, now: float) -> None:
        """Say goodbye to everybody."""
        self.now = now
        self.closing = True
        self.plan.stopped = True
        self.found = []
        for neighbour in list(self.neighbours):
            unicast = neighbour.unicast
            if unicast is not None:
                unicast.close(now)
        for crowd in self.crowds:
            crowd.group.close(now)
        self.local.end()

    # ---------------------------------------------------------------------------------- groups

    def fresh_face(self) -> int:
        """A number for one more face."""
        number = self.next_face
        self.next_face = number + 1
        return number

    def join(self, place: str, terms: GroupTerms, outbox: Outbox, now: float) -> Crowd:
        """Be a member of a multicast group from now on."""
        self.now = now
        crowd = Crowd(self, place, terms, outbox)
        self.crowds.append(crowd)
        self.tables.version += 1  # whoever publishes looks anew where to
        crowd.group.start(now)
        self.wake_by(crowd.group.deadline)
        return crowd

    def member_changed(self, member: Member, joined: bool) -> None:
        """Somebody joined a group, or left it."""
        if self.on_session is not None:
            self.on_session(member, joined)

    # ------------------------------------------------------------------------------- sessions

    def admit(self, neighbour: Neighbour, terms: Terms) -> int:
        """Whether a neighbour may open: -1, or the reason why not."""
        if terms.zid == self.zid:
            return CONNECTION_TO_SELF
        if self.closing:
            return INVALID
        if self.mode == CLIENT and terms.whatami == CLIENT:
            return INVALID
        first = self.by_zid.get(terms.zid)
        if first is not None:
            return -1 if self._may_join(first, terms) else MAX_LINKS
        if (
            not neighbour.attempt
            and terms.link_key is None
            and self._opening_to(terms.zid)
            and self.zid > terms.zid
        ):
            # Both connected to each other at once: the link of the greater id stays.
            return MAX_LINKS
        if len(self.by_zid) >= self.settings.max_sessions:
            return INVALID
        return -1

    def _may_join(self, first: Neighbour, terms: Terms) -> bool:
        """Whether a link may be one more of the session that there is."""
        session = None if first.unicast is None else first.unicast.terms
        return (
            session is not None
            and terms.link_key is not None
            and terms.link_key == session.link_key
            and (terms.qos, terms.mask) == (session.qos, session.mask)
            and len(first.links) < self.settings.max_links
        )

    def _opening_to(self, zid: bytes) -> bool:
        for neighbour in self.neighbours:
            unicast = neighbour.unicast
            if neighbour.attempt and unicast is not None and not neighbour.is_open():
                initiator = unicast.initiator
                terms = None if initiator is None else initiator.terms
                if terms is not None and terms.zid == zid:
                    return True
        return False

    def opened(self, neighbour: Neighbour, terms: Terms, now: float) -> None:
        """A session is open: tell it what it must know, ask what we must know."""
        self.now = now
        unicast = neighbour.unicast
        assert unicast is not None
        first = self.by_zid.get(terms.zid)
        if first is not None:
            self._joined(first, neighbour, terms)
            return
        face = Face(self.fresh_face(), terms.zid, terms.whatami, unicast.outbox)
        # Only peers tell each other unasked when they have told all.
        face.settled = not (self.mode == PEER and face.role == PEER)
        neighbour.face = face
        neighbour.links = [neighbour]
        self.intercept(neighbour, terms)
        self.by_zid[terms.zid] = neighbour
        self.plan.opened(neighbour.attempt)
        self.wake_by(unicast.deadline)
        self.surroundings.greet(face)
        self.wake_by(self.surroundings.deadline())
        self.tables.add(face, now)
        self.local.neighbour_added(face, now)
        if self.mode == PEER and face.role == PEER:
            face.send(Declare(interest_id=0, qos=0x08, body=DeclareFinal()))
        if self.on_session is not None:
            self.on_session(neighbour, True)

    def obey(self, policy: Policy) -> None:
        """Have another policy from now on; what was declared under the old one stays."""
        self.policy = policy
        for neighbour in self.neighbours:
            unicast = neighbour.unicast
            if unicast is not None and unicast.terms is not None and neighbour.face is not None:
                self.intercept(neighbour, unicast.terms)
        for crowd in self.crowds:
            crowd.obey()
        self.tables.version += 1

    def intercept(self, neighbour: Neighbour, terms: Terms) -> None:
        """Have the policy look at what a neighbour says and hears."""
        policy = self.policy
        interceptors: Interceptors | None = None
        if not policy.is_idle():
            interceptors = policy.for_neighbour(subject_of(neighbour, terms))
        neighbour.intercept(interceptors)
        if interceptors is not None:
            self._listen_to(neighbour, interceptors.ingress, FLOWS[0])
            self._listen_to(neighbour, interceptors.egress, FLOWS[1])

    def _listen_to(self, neighbour: Neighbour, gate: Gate | None, flow: str) -> None:
        if gate is None:
            return

        def stopped(reason: str, kind: int, key: str) -> None:
            tell = self.on_stopped
            if tell is not None:
                tell(neighbour, flow, reason, KINDS[kind], key)

        gate.stopped = stopped

    def stops(self) -> dict[str, dict[str, int]]:
        """How many messages the policy stopped and changed since the start, by flow and reason."""
        ingress = Counters()
        egress = Counters()
        ingress.add(self.stopped_in)
        egress.add(self.stopped_out)
        for neighbour in self.neighbours:
            ingress.add(neighbour.stopped_in)
            egress.add(neighbour.stopped_out)
        return {FLOWS[0]: ingress.to_dict(), FLOWS[1]: egress.to_dict()}

    def _joined(self, first: Neighbour, neighbour: Neighbour, terms: Terms) -> None:
        """A link joins the session of another."""
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
        self.intercept(neighbour, terms)
        face.egress = egress
        self.plan.opened(neighbour.attempt)
        self.wake_by(unicast.deadline)
        self._find_ways(first.links)
        if self.on_session is not None:
            self.on_session(neighbour, True)

    def _find_ways(self, links: list[Neighbour]) -> None:
        """Find out anew which link of a session is for what."""
        face = links[0].face
        assert face is not None
        ways = [link.way() for link in links]
        face.outbox = ways[0][1]
        face.ways = ways if len(ways) > 1 else []
        self.tables.version += 1

    def closed(self, neighbour: Neighbour, error: Exception | None, now: float) -> None:
        """A link is gone, and with its last one the session; or it never began."""
        self.now = now
        if neighbour in self.neighbours:
            self.neighbours.remove(neighbour)
        if neighbour in neighbour.links:
            neighbour.links.remove(neighbour)
        face = neighbour.face
        neighbour.fold()
        self.past.add(neighbour)
        if face is not None:
            self.stopped_in.add(neighbour.stopped_in)
            self.stopped_out.add(neighbour.stopped_out)
        if face is not None and neighbour.links:
            # The session goes on over its other links.
            self.by_zid[face.zid] = neighbour.links[0]
            self._find_ways(neighbour.links)
            if self.on_session is not None:
                self.on_session(neighbour, False)
        elif face is not None:
            if self.by_zid.get(face.zid) is neighbour:
                del self.by_zid[face.zid]
                self.plan.released(face.zid, now)
            face.closed = True
            self.questions.remove(face)
            self.tables.remove(face)
            self.surroundings.part(face)
            self.wake_by(self.surroundings.deadline())
            if self.on_session is not None:
                self.on_session(neighbour, False)
        if neighbour.attempt:
            unicast = neighbour.unicast
            initiator = None if unicast is None else unicast.initiator
            if face is None and initiator is not None and initiator.terms is not None:
                zid = initiator.terms.zid
                if zid in self.by_zid:
                    self.plan.taken(neighbour.attempt, zid, now)
            text = str(error) if error is not None else "closed"
            self.plan.over(neighbour.attempt, face is not None, text, now)
            self.wake_by(self.plan.deadline)

    def maintained(self, neighbour: Neighbour, message: Oam) -> None:
        """A neighbour speaks of the network: who else is there."""
        face = neighbour.face
        if face is None:
            return
        for node in self.surroundings.heard(face, message):
            delay = gossip_delay(self.random())
            self.discover(node.zid, node.role, node.locators, self.gossip_connect, delay)
        self.wake_by(self.surroundings.deadline())

    def discover(
        self, zid: bytes, role: int, locators: list[str], autoconnect: Autoconnect, delay: float
    ) -> None:
        """A node was found (`role` as a flag): connect to it if we want to, after `delay`."""
        if self.closing or not autoconnect.wants(zid, role, locators, self.by_zid):
            return
        when = self.now + delay
        self.found.append((when, tuple(locators[:8]), zid))
        del self.found[:-1024]
        self.wake_by(when)

    # ------------------------------------------------------------------------------------ data

    def renew(self, publication: Publication) -> None:
        """Find out anew where a publication goes; the edge sees that nobody else is in the tables.

        Publications come here from any thread, when the tables have changed.
        """
        guard = self.guard
        if guard is None:
            self.find_publication_way(publication)
        else:
            guard(publication)

    def find_publication_way(self, publication: Publication) -> None:
        """Find out where a publication goes, alone with the tables."""
        tables = self.tables
        version = tables.version
        key = self.local.outside(publication.key)
        remotes: list[Remote] = []
        if publication.destination != 0:
            for face in destinations(tables, self.face, key, self.zid):
                outbox = face.way(publication.priority, publication.reliable)
                if outbox is not None:
                    remote = Remote(face, outbox, key)
                    remote.put_head = put_head(publication, remote)
                    remotes.append(remote)
            for crowd in self.crowds:
                remote = Remote(crowd.face, crowd.group.outbox, key)
                remote.put_head = put_head(publication, remote)
                remotes.append(remote)
        publication.remotes = remotes
        publication.guarded = any(
            remote.face.egress is not None and not remote.face.egress.is_free(PUT, key)
            for remote in remotes
        )
        publication.locals = (
            self.local.subscribers_of(publication.key, True) if publication.destination != 1 else []
        )
        publication.tally = self.traffic.tally(key)
        if self.traffic.folded:
            self.traffic.folded = False
            tables.version += 1  # all who publish find their way, and their tally, anew
        publication.version = version

    def find_way(self, neighbour: Neighbour, inbound: Inbound) -> None:
        """Find out anew who hears what a neighbour says under a key."""
        face = neighbour.face
        ingress = neighbour.ingress
        inbound.free = ingress is None or ingress.is_free(PUT, inbound.key)
        inbound.version = self.tables.version
        inbound.subscribers = []
        inbound.frames = []
        name = self.local.inside(inbound.key)
        if name is not None and name != inbound.name:
            inbound.name = name
            inbound.key_expr = KeyExpr.trusted(name)
        for subscriber in self.local.heard_by(inbound.key):
            sink = subscriber.sink
            if isinstance(sink, FrameSink):
                inbound.frames.append(sink)
            else:
                inbound.subscribers.append(subscriber)
        root = b""
        mesh = self.mesh
        if mesh is not None and face is not None:
            root = mesh.root(face, inbound.node_id)
            inbound.number = mesh.number(root)
            if not face.carried or (root == self.zid and face.role == ROUTER):
                # Another router carries it, or it is our own that came back.
                inbound.subscribers = []
                inbound.frames = []
                inbound.faces = []
                return
        inbound.faces = [] if face is None else destinations(self.tables, face, inbound.key, root)
        if face is not None and face.role == CLIENT:
            # What clients say reaches a group through us.
            inbound.faces += [crowd.face for crowd in self.crowds]
        inbound.guarded = any(
            face.egress is not None and not face.egress.is_free(PUT, inbound.key)
            for face in inbound.faces
        )

    def forward(self, push: Push, inbound: Inbound, reliable: bool, relay: Relay) -> None:
        """Pass a sample on to other neighbours, written anew for each."""
        for face in inbound.faces:
            outbox = face.way(push.qos & 7, reliable)
            if outbox is None or face.closed:
                continue
            scope, mine, suffix = face.wire_key(inbound.key, False)
            copy = Push(
                scope=scope,
                suffix=suffix,
                sender_mapping=mine,
                qos=push.qos,
                node_id=inbound.number if face.role == ROUTER else 0,
                timestamp_stack=push.timestamp_stack,
                body=push.body,
            )
            if face.may_have(copy, inbound.key, reliable, self.now):
                w = Writer()
                copy.write(w)
                relay.one(outbox, b"".join(w.parts), copy.qos, reliable)

    def stamped(self, stack: TimestampStack, point: int) -> TimestampStack:
        """The times of a message, with ours if it is wanted at this point."""
        take = self.take_time
        if take is None or not stack.points & point or len(stack.records) >= TIMES:
            return stack
        record = take(point)
        if record is None:
            return stack
        return TimestampStack(points=stack.points, records=(*stack.records, record))

    # ------------------------------------------------------------------------ told by the tables

    def changed(self, kind: int, key: str, face: Face, added: bool) -> None:
        """Somebody declared or undeclared something."""
        self.local.changed(kind, key, face, added)

    def interest_final(self, interest: InterestOut) -> None:
        """An interest of one of our programs has been answered."""
        self.local.interest_final(interest)

    def token_present(self, interest: InterestOut, key: str) -> None:
        """A token is alive now."""
        self.local.token_present(interest, key)

    def ask(self, branch: Branch, key: str, body: Query, target: int) -> None:
        """A question for our own queryables."""
        self.local.ask(branch, key, body, target)

    def settled(self) -> bool:
        """Whether everybody we opened a session with has told what it had at the start."""
        for neighbour in self.neighbours:
            face = neighbour.face
            if face is None or not face.settled:
                return False
        return True

    def matches(self, key: str) -> bool:
        """Whether a neighbour subscribes to something that meets `key`."""
        return bool(self.tables.holders(SUBSCRIBER, key, self.face))


def purpose_of(endpoint: str) -> int:
    """What an endpoint says that its link is for, as the number on the wire."""
    metadata = dict(EndPoint.parse(endpoint).metadata)
    first = last = -1
    if "prio" in metadata:
        low, _, high = metadata["prio"].partition("-")
        first, last = int(low), int(high or low)
    return Purpose(first, last, int(metadata.get("rel", "-1"))).number()


def put_head(publication: Publication, remote: Remote) -> bytes:
    """All of a put up to the length of its payload: it is the same for every sample."""
    header = 0x1D
    parts: list[bytes] = [b"", vle(remote.scope)]
    if remote.suffix:
        header |= 0x20
        suffix = remote.suffix.encode("utf-8")
        parts.append(vle(len(suffix)))
        parts.append(suffix)
    if remote.mine:
        header |= 0x40
    if publication.qos != 5:
        header |= 0x80
        parts.append(bytes((0x21, publication.qos)))
    parts[0] = bytes((header,))
    if publication.encoding or publication.schema:
        schema = publication.schema
        parts.append(b"\x41")
        parts.append(vle((publication.encoding << 1) | (1 if schema else 0)))
        if schema:
            parts.append(vle(len(schema)))
            parts.append(schema)
    else:
        parts.append(b"\x01")
    return b"".join(parts)
