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
from zenlake.node import sessions
from zenlake.node.connect import Attempt, ConnectPlan
from zenlake.node.counts import Past
from zenlake.node.entities import Publication
from zenlake.node.forward import Inbound, Relay
from zenlake.node.groups import Crowd, Member
from zenlake.node.guard import intercept
from zenlake.node.local import Local
from zenlake.node.meeting import meet, purpose_of
from zenlake.node.neighbour import Neighbour, outbox_for
from zenlake.node.rejections import PENDING, Rejections
from zenlake.node.settings import NodeSettings
from zenlake.node.stamps import Stamps
from zenlake.node.surroundings import Surroundings
from zenlake.node.traffic import Traffic
from zenlake.node.ways import find_publication_way, find_way
from zenlake.routing.borders import Borders
from zenlake.routing.face import Branch, Face, InterestOut
from zenlake.routing.home import Home
from zenlake.routing.mesh import Mesh
from zenlake.routing.policy.gate import Counters
from zenlake.routing.policy.messages import FLOWS
from zenlake.routing.policy.policy import Policy
from zenlake.routing.queries import Questions
from zenlake.routing.regions import CLIENT, LOCAL, ROUTER
from zenlake.routing.resources import SUBSCRIBER
from zenlake.routing.tables import Tables
from zenlake.scouting.autoconnect import Autoconnect, gossip_delay
from zenlake.transport.handshake import Terms
from zenlake.transport.multicast import MulticastTerms
from zenlake.transport.outbox import Outbox
from zenlake.transport.rsa import PrivateKey
from zenlake.values.qos import QOS_PRIORITY
from zenlake.wire.codec_network import Oam, Push, TimestampRecord, TimestampStack
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
        meshes: dict[int, Mesh] = {}
        self.borders: Borders = Borders(settings.zid, meshes)
        self.questions: Questions = Questions(
            self.tables, self.borders, self, settings.query_timeout
        )
        self.face: Face = Face(0, settings.zid, LOCAL, None)
        self.tables.add(self.face, 0.0)
        self.next_face: int = 1
        #: What passed, by key.
        self.traffic: Traffic = Traffic(
            settings.prefix_depth, settings.prefix_limit, settings.counted_keys
        )
        self.past: Past = Past()
        #: What neighbours and strangers sent that was not taken.
        self.rejections: Rejections = Rejections()
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
            settings, self.tables, meshes, self.locators, self.time
        )
        self.mesh: Mesh | None = self.surroundings.mesh
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
        self.surroundings.change(settings)
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
        neighbour = meet(self, src, dst, stream, mtu, attempt.id, patience, purpose)
        self.now = now
        unicast = neighbour.unicast
        assert unicast is not None
        unicast.connect(now, attempt.expected)
        self.wake_by(unicast.deadline)
        return neighbour

    def accepted(self, src: str, dst: str, stream: bool, mtu: int, now: float) -> Neighbour:
        """Somebody connected to us."""
        neighbour = meet(self, src, dst, stream, mtu, 0, self.settings.accept_timeout)
        self.now = now
        unicast = neighbour.unicast
        assert unicast is not None
        unicast.listen(now, self.cookie())
        self.wake_by(unicast.deadline)
        return neighbour

    def may_accept(self, peer: str) -> bool:
        """Whether one more stranger, connected from `peer`, may begin to open a session."""
        pending = 0
        for neighbour in self.neighbours:
            if not neighbour.attempt and neighbour.face is None:
                pending += 1
        if pending < self.settings.accept_pending:
            return True
        what = f"not let in: {pending} others are opening a session"
        self.rejections.add(PENDING, peer, what, self.moment())
        return False

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

    def join(self, place: str, terms: MulticastTerms, outbox: Outbox, now: float) -> Crowd:
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

    # -------------------------------------------------------------------- told by neighbours

    def admit(self, neighbour: Neighbour, terms: Terms) -> int:
        """Whether a neighbour may open a session: -1, or the reason why not."""
        return sessions.admit(self, neighbour, terms)

    def opened(self, neighbour: Neighbour, terms: Terms, now: float) -> None:
        """A link is open, and with the first one to somebody a session."""
        sessions.opened(self, neighbour, terms, now)

    def closed(self, neighbour: Neighbour, error: Exception | None, now: float) -> None:
        """A link is gone, and with its last one the session; or it never began."""
        sessions.closed(self, neighbour, error, now)

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

    # ------------------------------------------------------------------------------- policy

    def obey(self, policy: Policy) -> None:
        """Have another policy from now on; what was declared under the old one stays."""
        self.policy = policy
        for neighbour in self.neighbours:
            unicast = neighbour.unicast
            if unicast is not None and unicast.terms is not None and neighbour.face is not None:
                intercept(neighbour, unicast.terms)
        for crowd in self.crowds:
            crowd.obey()
        self.tables.version += 1

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

    # ------------------------------------------------------------------------------------ data

    def renew(self, publication: Publication) -> None:
        """Find out anew where a publication goes; the edge sees that nobody else is in the tables.

        Publications come here from any thread, when the tables have changed.
        """
        guard = self.guard
        if guard is None:
            find_publication_way(self, publication)
        else:
            guard(publication)

    def find_way(self, neighbour: Neighbour, inbound: Inbound) -> None:
        """Find out anew who hears what a neighbour says under a key."""
        find_way(self, neighbour, inbound)

    def forward(self, push: Push, inbound: Inbound, reliable: bool, relay: Relay) -> None:
        """Pass a sample on to other neighbours, written anew for each."""
        for face in inbound.faces:
            outbox = face.way(push.qos & QOS_PRIORITY, reliable)
            if outbox is None or face.closed:
                continue
            scope, mine, suffix = face.wire_key(inbound.key, False)
            copy = Push(
                scope=scope,
                suffix=suffix,
                sender_mapping=mine,
                qos=push.qos,
                node_id=inbound.number if face.region == inbound.region else 0,
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
        self.local.liveliness.interest_final(interest)

    def token_present(self, interest: InterestOut, key: str) -> None:
        """A token is alive now."""
        self.local.liveliness.token_present(interest, key)

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
