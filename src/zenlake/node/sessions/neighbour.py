"""A neighbour: the conversation over its link, and its face in the tables."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from mypy_extensions import i64

from zenlake.node.core import Core
from zenlake.node.entities import SAMPLES
from zenlake.node.queries.replies import ReplyReader
from zenlake.node.routes.forward import FrameSink, HeadRoute, Inbound, Lane, Relay
from zenlake.node.routes.routes import Routes
from zenlake.node.sample import Sample, sample_of
from zenlake.node.sessions.admission import (
    NO_IDENTITY,
    LinkIdentity,
    admitted,
    reporter,
    subject_of,
)
from zenlake.routing.face import Face
from zenlake.routing.keyids import UNDECLARED, key_flaw
from zenlake.routing.policy.gate import Interceptors, PolicyCounters, PolicyGate
from zenlake.routing.policy.messages import FLOWS
from zenlake.routing.queries import RECEIVE, ROUTE
from zenlake.routing.regions import ROUTER
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
    TimestampStack,
)
from zenlake.wire.codec_zenoh import Put, read_source_info
from zenlake.wire.cursor import Reader
from zenlake.wire.message import Message
from zenlake.wire.numbers import (
    EXTENSION,
    ID,
    MORE,
    PUSH_EXT_NODE_ID,
    PUSH_EXT_QOS,
    PUSH_FLAG_SUFFIX,
    PUT,
    PUT_EXT_ATTACHMENT,
    PUT_EXT_SOURCE_INFO,
    PUT_FLAG_ENCODING,
    PUT_FLAG_TIMESTAMP,
)  # fmt: skip

#: How many keys of a neighbour are remembered with their route.
INBOUND = 1 << 14
#: Heads of up to this size are compared byte by byte: that is cheaper than to cut them out.
LONG: Final = 32
#: Payloads up to this size are copied at once: that is cheaper than to keep the read alive.
SMALL: Final = 512


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
    ) -> None:
        """`attempt`: the connection plan's number for it; 0 if it connected to us."""
        self.node: Core = node
        self.routes: Routes = routes
        self.owner: SessionOwner = owner
        self.src: str = src
        self.dst: str = dst
        self.stream: bool = stream
        self.mtu: int = mtu
        self.attempt: int = attempt
        #: Tells what its link knows of it; asked only if there are rules.
        self.link_identity: Callable[[], LinkIdentity] | None = None
        #: What the policy does to what is said in both directions; None: nothing.
        self.interceptors: Interceptors | None = None
        self.ingress: PolicyGate | None = None
        #: What it has stopped and changed so far.
        self.stopped_in: PolicyCounters = PolicyCounters()
        self.stopped_out: PolicyCounters = PolicyCounters()
        #: Whether it may do something to samples that come.
        self.guarded: bool = False
        self.face: Face | None = None
        self.unicast: Unicast | None = None
        #: All links of its session, this one among them; each is a neighbour by itself.
        self.links: list[Neighbour] = []
        self.error: Exception | None = None
        #: Routes by key, and by the very bytes of heads: up to the header of the value.
        self._by_key: dict[str, Inbound] = {}
        self._by_head: dict[bytes, HeadRoute] = {}
        #: The route of the last message: the next one has the same head as a rule.
        self._last_route: HeadRoute | None = None
        #: Between routers: routes of what comes from beyond the neighbour, by its number for that.
        self._by_node: dict[int, dict[str, Inbound]] = {}
        self._remembered: int = 0
        #: The head of the message that is being read, if it is new.
        self._head: bytes = b""
        #: Gathers what it sends for other neighbours.
        self.relay: Relay = Relay(True)
        #: Where the messages go that one sink alone hears, and those sinks.
        self._lanes: list[Lane] = []
        self._lane_sinks: list[FrameSink] = []
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
            interceptors = policy.for_neighbour(subject_of(self.src, self.identity(), terms))
        self.intercept(interceptors)
        if interceptors is not None:
            if interceptors.ingress is not None:
                interceptors.ingress.stopped = reporter(self.node, self.face, FLOWS[0])
            if interceptors.egress is not None:
                interceptors.egress.stopped = reporter(self.node, self.face, FLOWS[1])

    def intercept(self, interceptors: Interceptors | None) -> None:
        """Obey a policy from now on."""
        self.interceptors = interceptors
        self._forget_names()  # they know the QoS that the old one gave, and what passes freely
        self.ingress = None
        egress: PolicyGate | None = None
        if interceptors is not None:
            self.ingress = interceptors.ingress
            egress = interceptors.egress
        if self.ingress is not None:
            self.ingress.counters = self.stopped_in
        if egress is not None:
            egress.counters = self.stopped_out
        self.guarded = self.ingress is not None and self.ingress.concerns(SAMPLES)
        face = self.face
        if face is not None:
            face.egress = egress

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
            self._head = b""
            return
        if isinstance(message, Push):
            self._push(message, reliable)
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
            node.queries.request(face, message, node.now)
            node.wake_by(node.now + node.queries.patience(message))
        elif isinstance(message, Declare):
            self._forget_names()
            for link in self.links:
                link._forget_names()
            node.tables.heard(face, message)
        elif isinstance(message, Interest):
            node.tables.interest(face, message, node.now)
            node.wake_by(node.tables.deadline())
        elif isinstance(message, Oam):
            self.owner.maintained(self, message)

    def heard_reply(self, r: Reader) -> bool:
        """The fast lane of ordinary replies to our own programs."""
        face = self.face
        if face is None or self.ingress is not None:
            return False
        return self._reply_reader.read(face, r)

    def _inbound(self, push: Push) -> Inbound | None:
        """The route of a key, or None if it means nothing."""
        face = self.face
        if face is None:
            return None
        key = face.keys.resolve(push.scope, push.sender_mapping, push.suffix)
        if key is None:
            face.illegal_key(UNDECLARED)
            return None
        node_id = push.node_id if face.role == ROUTER else 0
        inbounds = self._by_key
        if node_id:
            inbounds = self._by_node.setdefault(node_id, {})
        inbound = inbounds.get(key)
        if inbound is None:
            flaw = key_flaw(key)
            if flaw:
                face.illegal_key(flaw)
                return None
            if self._remembered >= INBOUND:
                self.fold()
            inbound = Inbound(key, node_id)
            self._remembered += 1
            if node_id:
                self._by_node.setdefault(node_id, {})[key] = inbound
            else:
                self._by_key[key] = inbound
        return inbound

    def inbounds(self) -> list[Inbound]:
        """The keys that it publishes on, as far as they are remembered."""
        routes = list(self._by_key.values())
        for inbounds in self._by_node.values():
            routes.extend(inbounds.values())
        return routes

    def fold(self) -> None:
        """Forget all routes; the samples that took them stay counted."""
        heard = self.node.traffic.heard
        for inbound in self.inbounds():
            heard.add(inbound.key, inbound.samples, inbound.size)
        self._remembered = 0
        self._by_key.clear()
        self._by_node.clear()
        self._forget_names()

    def _forget_names(self) -> None:
        """Bytes that named keys may name others now."""
        self._by_head.clear()
        self._last_route = None
        for lane in self._lanes:
            lane.clear()

    def _push(self, push: Push, reliable: bool) -> None:
        head = self._head
        self._head = b""
        inbound = self._inbound(push)
        if inbound is None:
            return
        if head and len(self._by_head) < INBOUND:
            self._by_head[head] = HeadRoute(inbound, push.qos, head)
        body = push.body
        inbound.samples += 1
        if isinstance(body, Put):
            inbound.size += len(body.payload)
        node = self.node
        if inbound.version != node.tables.version:
            self.routes.find(self.face, self.ingress, inbound)
        stamps = node.stamps
        if stamps is not None:
            heard = inbound.subscribers or inbound.frames or inbound.faces
            if heard and isinstance(body, Put) and not stamps.stamp(body):
                return
        stack = push.timestamp_stack
        if stack is not None:
            self._push_stamped(push, inbound, reliable, stack)
            return
        self._deliver(push, inbound, reliable)
        if inbound.faces:
            self.routes.forward(push, inbound, reliable, self.relay)
        if self._is_columnar(inbound):
            self._learn(push, inbound)

    def _is_columnar(self, inbound: Inbound) -> bool:
        """Whether one sink makes rows of it, and no other program of ours and no rule has a say.

        Its lane also passes on what other neighbours hear.
        """
        if len(inbound.frames) != 1 or inbound.subscribers or inbound.guarded or inbound.node_id:
            return False
        return not self.guarded or inbound.free

    def _learn(self, push: Push, inbound: Inbound) -> None:
        """Have the next messages like this one read by the sink that makes rows of them."""
        node = self.node
        if push.node_id:
            return
        if self._lanes and self._lanes[0].version != node.tables.version:
            self._lanes.clear()
            self._lane_sinks.clear()
        sink = inbound.frames[0]
        if sink not in self._lane_sinks:
            lane = sink.lane(node.stamps, self.relay)
            lane.version = node.tables.version
            self._lanes.append(lane)
            self._lane_sinks.append(sink)
        self.rows = True
        index = self._lane_sinks.index(sink)
        # Only of puts it was asked whether they pass freely; and a Del is passed on otherwise.
        deletes = not self.guarded and not inbound.faces
        self._lanes[index].learn(push.scope, push.sender_mapping, push.suffix, inbound, deletes)

    def heard_rows(self, r: Reader, reliable: bool) -> int:
        """The lanes of sinks that make tables: messages that no other program of ours hears."""
        for lane in self._lanes:
            if lane.version != self.node.tables.version:
                self.rows = False
                return 0
            taken = lane.walk(r, reliable)
            if taken:
                return taken
        return 0

    def _push_stamped(
        self, push: Push, inbound: Inbound, reliable: bool, stack: TimestampStack
    ) -> None:
        """A message that has its times taken: what is passed on has not arrived here."""
        stack = self.node.stamped(stack, ROUTE)
        if inbound.faces:
            push.timestamp_stack = stack
            self.routes.forward(push, inbound, reliable, self.relay)
        if inbound.subscribers or inbound.frames:
            push.timestamp_stack = self.node.stamped(stack, RECEIVE)
            self._deliver(push, inbound, reliable)

    def _deliver(self, push: Push, inbound: Inbound, reliable: bool) -> None:
        """Hand a sample to those of this node who hear it."""
        if inbound.subscribers:
            sample = sample_of(inbound.key_expr, push, reliable)
            for subscriber in inbound.subscribers:
                subscriber.sink.push(sample)
            for frame in inbound.frames:
                frame.push(sample)
        elif inbound.frames:
            sample = sample_of(inbound.key_expr, push, reliable)
            for frame in inbound.frames:
                frame.push(sample)

    def settle(self) -> None:
        """Hand over what was gathered for others; what comes next comes at another time."""
        self.relay.settle()
        stamps = self.node.stamps
        if stamps is not None:
            stamps.forget()

    def heard_push(self, r: Reader, reliable: bool) -> int:
        """The fast lane: ordinary puts, straight into samples or on to other neighbours.

        Ordinary is: a head that came before in these very bytes, and for our own subscribers a
        value with at most a timestamp and a plain encoding. All that follow under the same head
        are taken as well; how many. 0: not ordinary, nothing was read.
        """
        data = r.data
        start = r.pos
        route = self._last_route
        if route is None or not begins(data, start, r.end, route.head):
            pos = walk_head(data, start, r.end)
            if not pos:
                return 0
            name = data[start:pos]
            route = self._by_head.get(name)
            if route is None:
                self._head = name  # learnt when the whole message has been read
                return 0
            self._last_route = route
        inbound = route.inbound
        node = self.node
        version = node.tables.version
        if inbound.version != version:
            self.routes.find(self.face, self.ingress, inbound)
        if inbound.frames and self._is_columnar(inbound):
            return 0  # the sink has a lane of its own, or is told of this name now
        faces = inbound.faces
        if faces and (route.version != inbound.version or route.reliable != reliable):
            self.relay.lay(route, reliable, node.stamps is not None)
        delivered = bool(inbound.subscribers or inbound.frames)
        if inbound.guarded or (faces and route.fan is None) or (route.put & MORE and delivered):
            return 0
        if self.guarded and not inbound.free:
            return 0
        taken = 0
        while self._one_push(r, route, delivered, reliable):
            taken += 1
            if self._last_route is not route or node.tables.version != version:
                break  # a subscriber changed the tables
            if not begins(data, r.pos, r.end, route.head):
                break
        return taken

    def _one_push(self, r: Reader, route: HeadRoute, delivered: bool, reliable: bool) -> bool:
        """Take one put whose head is known; `delivered`: our own programs hear it.

        Whatever is wrong with its value is wrong in any lane.
        """
        data = r.data
        start = r.pos
        pos = start + len(route.head)
        r.pos = pos
        put = route.put
        seconds = 0
        fraction = 0
        stamp_id = b""
        encoding = 0
        if put & PUT_FLAG_TIMESTAMP:
            seconds, fraction = r.ntp64()
            stamp_id = r.zid(r.vle(0xFF))
        if put & PUT_FLAG_ENCODING:
            encoding = r.vle(0xFFFF_FFFF)
            if encoding > 0x1_FFFF or (encoding & 1 and delivered):  # no such, or one with a schema
                r.pos = start
                return False
            if encoding & 1:
                r.skip(r.vle(0xFF))
            encoding >>= 1
        if put & MORE and not skip_known(r):
            r.pos = start
            return False
        size = r.vle(0xFFFF_FFFF)
        at = r.pos
        r.skip(size)
        inbound = route.inbound
        fan = route.fan if inbound.faces else None
        first = b""
        time = b""
        stamps = self.node.stamps
        if stamps is not None and (delivered or fan is not None):
            if not stamp_id:
                stamps.next()
                first = stamps.first
                time = stamps.rest
                seconds = stamps.seconds
                fraction = stamps.fraction
                stamp_id = stamps.id
            elif not stamps.believes(seconds, fraction):
                r.pos = start
                return False
        inbound.samples += 1
        inbound.size += size
        if delivered:
            sample = Sample(
                inbound.key_expr, None if size > SMALL else data[at : at + size], True, encoding,
                b"", seconds, fraction, stamp_id, route.qos, reliable, None,
            )  # fmt: skip
            if size > SMALL:
                sample.lies_in(data, at, size)
            for subscriber in inbound.subscribers:
                subscriber.sink.push(sample)
            for frame in inbound.frames:
                frame.push(sample)
        if fan is not None:
            self.relay.add(route, fan, first, time, data[pos : r.pos])
        return True


def begins(data: bytes, start: i64, end: i64, head: bytes) -> bool:
    """Whether the bytes from `start` on begin with `head`."""
    size: i64 = len(head)
    if start + size > end:
        return False
    if size > LONG:
        return data[start : start + size] == head
    at: i64 = 0
    while at < size:
        if data[start + at] != head[at]:
            return False
        at += 1
    return True


def walk_head(data: bytes, start: int, end: int) -> int:
    """Where the value of a put begins, behind its header; 0 if the head is not an ordinary one.

    Ordinary: a number and a text of at most two bytes each to say how large they are, and no
    extensions but quality of service and node id.
    """
    pos = start + 2
    if pos + 2 >= end:
        return 0
    header = data[start]
    if data[start + 1] >= 0x80:
        if data[pos] >= 0x80:
            return 0
        pos += 1
    if header & PUSH_FLAG_SUFFIX:
        length = data[pos]
        pos += 1
        if length >= 0x80:
            if pos >= end or data[pos] >= 0x80:
                return 0
            length = (length & 0x7F) | (data[pos] << 7)
            pos += 1
        pos += length
    more = header & MORE
    while more:
        if pos + 2 >= end:
            return 0
        tag = data[pos]
        kind = tag & EXTENSION
        pos += 1
        if kind == PUSH_EXT_NODE_ID:
            if data[pos] >= 0x80:
                pos += 1  # never more than two: such a node id is read by others
        elif kind != PUSH_EXT_QOS:
            return 0
        if pos >= end or data[pos] >= 0x80:
            return 0
        pos += 1
        more = tag & MORE
    if pos >= end or data[pos] & ID != PUT:
        return 0
    return pos + 1


def skip_known(r: Reader) -> bool:
    """Pass over the extensions of a value if all are known; they are checked all the same."""
    while True:
        tag = r.u8()
        kind = tag & EXTENSION
        if kind == PUT_EXT_ATTACHMENT:
            r.skip(r.vle(0xFFFF_FFFF))
        elif kind == PUT_EXT_SOURCE_INFO:
            former = r.narrow(r.vle(0xFFFF_FFFF))
            read_source_info(r)
            r.widen(former, "Put.source_info")
        else:
            return False
        if tag < MORE:
            return True


def outbox_for(stream: bool, depth: int) -> Outbox:
    """An outbox before any terms are agreed."""
    return Outbox(65535, 2 if stream else 0, 0x0FFF_FFFF, 0, False, depth)
