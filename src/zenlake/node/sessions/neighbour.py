"""A neighbour: the conversation over its link, and its face in the tables."""

from __future__ import annotations

from collections.abc import Callable

from zenlake.node.core import Core
from zenlake.node.queries.replies import ReplyReader
from zenlake.node.rejections import host_of
from zenlake.node.routes.pushes import PushReader
from zenlake.node.routes.routes import Routes
from zenlake.node.sessions.admission import (
    NO_IDENTITY,
    LinkIdentity,
    admitted,
    name_asker,
    reporter,
    restrict,
    subject_of,
)
from zenlake.routing.deadlines import Timed
from zenlake.routing.face import Face
from zenlake.routing.policy.gate import Interceptors, PolicyCounters, PolicyGate
from zenlake.routing.policy.messages import FLOWS
from zenlake.transport.drops import DropLog
from zenlake.transport.handshake import Terms
from zenlake.transport.listener import Listener
from zenlake.transport.multilink import Purpose
from zenlake.transport.outbox import Outbox
from zenlake.transport.unicast import OPEN, Unicast
from zenlake.wire.codec_network import (
    Declare,
    Interest,
    Oam,
    Push,
    Request,
    Response,
    ResponseFinal,
)
from zenlake.wire.cursor import Reader
from zenlake.wire.message import Message


class SessionOwner:
    """What keeps the sessions of a node: neighbours tell it how theirs go."""

    def __init__(self) -> None:
        """No sessions yet."""
        #: The open sessions, each by its first link.
        self.by_zid: dict[bytes, Neighbour] = {}

    def admit(self, neighbour: Neighbour, terms: Terms) -> int:
        """Whether a neighbour may open a session: -1, or the reason why not."""
        raise NotImplementedError

    def opened(self, neighbour: Neighbour, terms: Terms, now: float) -> None:
        """A link is open, and with the first one to a node a session."""
        raise NotImplementedError

    def closed(self, neighbour: Neighbour, error: Exception | None, now: float) -> None:
        """A link is gone, and with its last one the session; or it never began."""
        raise NotImplementedError

    def maintained(self, neighbour: Neighbour, message: Oam) -> None:
        """A neighbour tells of other nodes of the network."""
        raise NotImplementedError

    def member_changed(self, neighbour: Neighbour, joined: bool) -> None:
        """A member of a multicast group joined it, or left it."""
        raise NotImplementedError


class Neighbour(Listener):
    """The node at the other end of a link."""

    def __init__(
        self,
        node: Core,
        routes: Routes,
        owner: SessionOwner,
        src: str,
        dst: str,
        stream: bool,
        mtu: int,
        attempt: int,
        patient: bool = True,
    ) -> None:
        """`attempt`: the connection plan's number for it; 0 if it connected to us.

        `patient`: it can be held up while what it sends is more than others take.
        """
        self.node: Core = node
        self.owner: SessionOwner = owner
        self.src: str = src
        self.dst: str = dst
        #: The address that it counts for, among all of one address.
        self.host: str = host_of(dst)
        self.stream: bool = stream
        self.mtu: int = mtu
        self.attempt: int = attempt
        #: Whether it came over the listener that is for parts of the same service.
        self.part: bool = False
        #: Tells what its link knows of it; asked only if there are rules.
        self.link_identity: Callable[[], LinkIdentity] | None = None
        #: What the policy does to what is said in both directions; None: nothing.
        self.interceptors: Interceptors | None = None
        self.ingress: PolicyGate | None = None
        #: What it has stopped and changed so far.
        self.stopped_in: PolicyCounters = PolicyCounters()
        self.stopped_out: PolicyCounters = PolicyCounters()
        self.face: Face | None = None
        self.unicast: Unicast | None = None
        #: When its link is looked at next.
        self.timed: Timed | None = None
        #: All links of its session, this one among them; each is a neighbour by itself.
        self.links: list[Neighbour] = []
        self.error: Exception | None = None
        #: How many of its reads ended within their turn, since it last used one up.
        self.brief: int = 0
        #: Reads its samples.
        self.pushes: PushReader = PushReader(node, routes, patient)
        self._reply_reader: ReplyReader = ReplyReader()

    # ------------------------------------------------------------------------------- life

    def admit(self, terms: Terms) -> int:
        """Whether it may open a session with this node."""
        return self.owner.admit(self, terms)

    def opened(self, terms: Terms, now: float) -> None:
        """The session is open."""
        self.owner.opened(self, terms, now)

    def refused(self, limit: str) -> None:
        """Something of it was refused because of a limit."""
        face = self.face
        if face is not None:
            face.refused(limit)

    def held_back(self, what: str) -> None:
        """It is named for something that it has much of."""
        face = self.face
        if face is not None:
            face.held_back(what)

    def user(self) -> str:
        """The user that it logged in as; empty if it did not."""
        unicast = self.unicast
        terms = None if unicast is None else unicast.terms
        return "" if terms is None else terms.user

    def closed(self, error: Exception | None, now: float) -> None:
        """The session is over."""
        self.error = error
        self.owner.closed(self, error, now)

    def identity(self) -> LinkIdentity:
        """What its link knows of it."""
        ask = self.link_identity
        return NO_IDENTITY if ask is None else ask()

    def obey(self, terms: Terms) -> None:
        """Have the node's policy look at what it sends and is sent."""
        policy = self.node.policy
        interceptors: Interceptors | None = None
        if not policy.is_idle():
            who = subject_of(self.src, self.identity(), terms, self.part)
            interceptors = policy.for_neighbour(who)
        self.intercept(interceptors)
        if interceptors is not None:
            if interceptors.ingress is not None:
                interceptors.ingress.stopped = reporter(self.node, self.face, FLOWS[0])
            if interceptors.egress is not None:
                interceptors.egress.stopped = reporter(self.node, self.face, FLOWS[1])

    def intercept(self, interceptors: Interceptors | None) -> None:
        """Obey a policy from now on."""
        self.interceptors = interceptors
        self.ingress = None
        egress: PolicyGate | None = None
        if interceptors is not None:
            self.ingress = interceptors.ingress
            egress = interceptors.egress
        if self.ingress is not None:
            self.ingress.counters = self.stopped_in
        if egress is not None:
            egress.counters = self.stopped_out
        self.pushes.obey(self.ingress)
        face = self.face
        if face is not None:
            face.egress = egress

    def enter(self, face: Face) -> None:
        """Stand in the tables as `face` from now on."""
        self.face = face
        self.pushes.face = face

    def purpose(self) -> tuple[Purpose, Outbox]:
        """What this link is for; a stream is reliable if nothing else is said."""
        unicast = self.unicast
        assert unicast is not None
        terms = unicast.terms
        purpose = Purpose.read(0 if terms is None else terms.purpose)
        if purpose.reliable < 0:
            purpose.reliable = 1 if self.stream else 0
        return purpose, unicast.outbox

    def is_open(self) -> bool:
        """Whether a session is open."""
        unicast = self.unicast
        return unicast is not None and unicast.state == OPEN

    # ------------------------------------------------------------------------------ hearing

    def heard(self, message: Message, priority: int, reliable: bool) -> None:
        """A network message came."""
        self.settle()  # what came before it goes before it
        ingress = self.ingress
        if ingress is not None and not admitted(self.node, self.face, ingress, message, reliable):
            self.pushes.stopped()
            return
        if isinstance(message, Push):
            self.pushes.message(message, reliable)
            self.rows = self.pushes.lanes.ready
            return
        face = self.face
        if face is None:
            return
        node = self.node
        if isinstance(message, Response):
            node.queries.response(face, message)
        elif isinstance(message, ResponseFinal):
            node.queries.response_final(face, message.id)
        elif isinstance(message, Request):
            interceptors = self.interceptors
            if interceptors is not None and interceptors.readable is not None:
                restrict(face, message, interceptors.readable)
            name_asker(node, face, message)
            node.queries.request(face, message, node.now)
            node.wake_by(node.now + node.queries.patience(message))
        elif isinstance(message, Declare):
            self.pushes.forget_heads()
            for link in self.links:
                link.pushes.forget_heads()
            node.tables.heard(face, message)
        elif isinstance(message, Interest):
            node.tables.interest(face, message, node.now)
            node.wake_by(node.tables.deadline())
        elif isinstance(message, Oam):
            self.owner.maintained(self, message)

    def heard_reply(self, r: Reader) -> bool:
        """The fast lane of ordinary replies, to our own programs and to others."""
        face = self.face
        if face is None or self.ingress is not None:
            return False
        if self._reply_reader.read(face, r):
            return True
        self.settle()  # what came before it goes before it
        return self._reply_reader.pass_on(face, r)

    def heard_push(self, r: Reader, reliable: bool) -> int:
        """The fast lane of ordinary samples."""
        return self.pushes.heard_push(r, reliable)

    def heard_rows(self, r: Reader, reliable: bool) -> int:
        """The lanes of sinks that make tables: messages that no other program of ours hears."""
        lanes = self.pushes.lanes
        taken = lanes.walk(r, reliable)
        if not taken:
            self.rows = lanes.ready
        return taken

    def settle(self) -> None:
        """Hand over what was gathered for others; what comes next comes at another time."""
        self.pushes.settle()


def drop_log(node: Core, face: Face) -> DropLog:
    """Counts what cannot be sent to a face, by the keys that both sides know."""
    log = DropLog(node.drops)
    log.resolve = face.keys.resolve
    return log


def outbox_for(stream: bool, depth: int) -> Outbox:
    """An outbox before any terms are agreed."""
    return Outbox(65535, 2 if stream else 0, 0x0FFF_FFFF, 0, False, depth)
