"""A neighbour: the conversation over its link, and its face in the tables."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from zenlake.keys.keyexpr import KeyExpr
from zenlake.node.entities import SAMPLES, LocalSubscriber
from zenlake.node.guard import Papers, admitted
from zenlake.node.sample import Sample, sample_of
from zenlake.node.sink import FrameSink
from zenlake.routing.face import Face
from zenlake.routing.policy.gate import Counters, Gate, Interceptors
from zenlake.routing.queries import RECEIVE, ROUTE
from zenlake.routing.regions import ROUTER
from zenlake.routing.tables import is_key
from zenlake.transport.handshake import Terms
from zenlake.transport.outbox import Outbox
from zenlake.transport.unicast import OPEN, Listener, Unicast
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
from zenlake.wire.codec_zenoh import Put
from zenlake.wire.cursor import Reader
from zenlake.wire.message import Message

if TYPE_CHECKING:
    from zenlake.node.node import Node

#: How many keys of a neighbour are remembered with their way.
INBOUND = 1 << 14


class Inbound:
    """A key that a neighbour publishes on, and who hears it."""

    __slots__ = (
        "faces", "frames", "guarded", "key", "key_expr", "name", "node_id", "number", "samples",
        "size", "subscribers", "version",
    )  # fmt: skip

    def __init__(self, key: str, node_id: int) -> None:
        """Its way is found when it is first needed.

        `node_id`: between routers, the neighbour's number for where it comes from.
        """
        self.key: str = key
        self.node_id: int = node_id
        #: Our own number for it, to tell other routers.
        self.number: int = 0
        #: What our own programs call the key.
        self.name: str = key
        self.key_expr: KeyExpr = KeyExpr.trusted(key)
        self.version: int = -1
        self.subscribers: list[LocalSubscriber] = []
        #: Those of them that take rows instead of samples.
        self.frames: list[FrameSink] = []
        self.faces: list[Face] = []
        #: What came this way, and the bytes of its payloads.
        self.samples: int = 0
        self.size: int = 0
        #: Whether the policy has a say about one of these faces.
        self.guarded: bool = False


class Neighbour(Listener):
    """Somebody at the other end of a link."""

    def __init__(
        self, node: Node, src: str, dst: str, stream: bool, mtu: int, attempt: int
    ) -> None:
        """`attempt`: the connection plan's number for it; 0 if it connected to us."""
        self.node: Node = node
        self.src: str = src
        self.dst: str = dst
        self.stream: bool = stream
        self.mtu: int = mtu
        self.attempt: int = attempt
        #: Tells what its link knows of it; asked only if there are rules.
        self.papers: Callable[[], Papers] | None = None
        #: What the policy does to what is said in both directions; None: nothing.
        self.interceptors: Interceptors | None = None
        self.ingress: Gate | None = None
        #: What it has stopped and changed so far.
        self.stopped_in: Counters = Counters()
        self.stopped_out: Counters = Counters()
        #: Whether it may do something to samples that come.
        self.guarded: bool = False
        self.face: Face | None = None
        self.unicast: Unicast | None = None
        self.error: Exception | None = None
        #: Told when the conversation is over, so that the link can be closed.
        self.finished: Callable[[], None] | None = None
        #: Ways by whole key, and by the bytes that name the key on the wire.
        self._by_key: dict[str, Inbound] = {}
        self._by_bytes: dict[bytes, Inbound] = {}
        #: Between routers: ways of what comes from beyond the neighbour, by its number for that.
        self._by_node: dict[int, dict[str, Inbound]] = {}
        self._remembered: int = 0
        #: The bytes that name the key of the message that is being read, if they are new.
        self._name: bytes = b""

    # ------------------------------------------------------------------------------- life

    def admit(self, terms: Terms) -> int:
        """Whether it may open a session with this node."""
        return self.node.admit(self, terms)

    def opened(self, terms: Terms, now: float) -> None:
        """The session is open."""
        self.node.opened(self, terms, now)

    def closed(self, error: Exception | None, now: float) -> None:
        """The session is over."""
        self.error = error
        self.node.closed(self, error, now)
        finished = self.finished
        if finished is not None:
            finished()

    def intercept(self, interceptors: Interceptors | None) -> None:
        """Obey a policy from now on."""
        self.interceptors = interceptors
        self.ingress = None
        egress: Gate | None = None
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

    def is_open(self) -> bool:
        """Whether a session is open."""
        unicast = self.unicast
        return unicast is not None and unicast.state == OPEN

    # ------------------------------------------------------------------------------ hearing

    def heard(self, message: Message, priority: int, reliable: bool) -> None:
        """A network message came."""
        ingress = self.ingress
        if ingress is not None and not admitted(self, ingress, message, reliable):
            return
        if isinstance(message, Push):
            self._push(message, reliable)
            return
        face = self.face
        if face is None:
            return
        node = self.node
        if isinstance(message, Response):
            node.questions.response(face, message)
        elif isinstance(message, ResponseFinal):
            node.questions.response_final(face, message.id)
        elif isinstance(message, Request):
            node.questions.request(face, message, node.now)
            node.wake_by(node.now + node.questions.patience(message))
        elif isinstance(message, Declare):
            self._by_bytes.clear()
            node.tables.heard(face, message)
        elif isinstance(message, Interest):
            node.tables.interest(face, message, node.now)
            node.wake_by(node.now + node.tables.interest_timeout)
        elif isinstance(message, Oam):
            node.maintained(self, message)

    def _inbound(self, push: Push) -> Inbound | None:
        """The way of a key, or None if it means nothing."""
        face = self.face
        if face is None:
            return None
        key = face.keys.resolve(push.scope, push.sender_mapping, push.suffix)
        if key is None:
            face.ignored += 1
            return None
        node_id = push.node_id if face.role == ROUTER else 0
        ways = self._by_key
        if node_id:
            ways = self._by_node.setdefault(node_id, {})
        inbound = ways.get(key)
        if inbound is None:
            if not is_key(key):
                face.ignored += 1
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

    def ways(self) -> list[Inbound]:
        """The keys that it publishes on, as far as they are remembered."""
        found = list(self._by_key.values())
        for ways in self._by_node.values():
            found.extend(ways.values())
        return found

    def fold(self) -> None:
        """Forget all ways; what came by them stays counted."""
        heard = self.node.traffic.heard
        for inbound in self.ways():
            heard.add(inbound.key, inbound.samples, inbound.size)
        self._remembered = 0
        self._by_key.clear()
        self._by_bytes.clear()
        self._by_node.clear()

    def _push(self, push: Push, reliable: bool) -> None:
        name = self._name
        self._name = b""
        inbound = self._inbound(push)
        if inbound is None:
            return
        if name and len(self._by_bytes) < INBOUND:
            self._by_bytes[name] = inbound
        body = push.body
        inbound.samples += 1
        if isinstance(body, Put):
            inbound.size += len(body.payload)
        node = self.node
        if inbound.version != node.tables.version:
            node.find_way(self, inbound)
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
            node.forward(push, inbound, reliable)

    def _push_stamped(
        self, push: Push, inbound: Inbound, reliable: bool, stack: TimestampStack
    ) -> None:
        """A message that has its times taken: what is passed on has not arrived here."""
        stack = self.node.stamped(stack, ROUTE)
        if inbound.faces:
            push.timestamp_stack = stack
            self.node.forward(push, inbound, reliable)
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

    def heard_push(self, r: Reader, reliable: bool) -> bool:
        """The fast lane: an ordinary put for our own subscribers, straight into a sample.

        Ordinary is: a key named before in these very bytes, at most a QoS extension, a value
        with at most a timestamp and a plain encoding. False: not ordinary, nothing was read.
        """
        if self.guarded:
            return False
        data = r.data
        start = r.pos
        end = r.end
        pos = start + 2
        if pos >= end:
            return False
        header = data[start]
        if data[start + 1] >= 0x80:
            return False
        if header & 0x20:
            length = data[pos]
            if length >= 0x80:
                return False
            pos += 1 + length
            if pos >= end:
                return False
        name = data[start:pos]
        qos = 5
        if header & 0x80:
            if pos + 2 >= end or data[pos] != 0x21 or data[pos + 1] >= 0x80:
                return False
            qos = data[pos + 1]
            pos += 2
        inbound = self._by_bytes.get(name)
        if inbound is None:
            self._name = name  # learnt when the whole message has been read
            return False
        node = self.node
        if inbound.version != node.tables.version or inbound.faces or node.stamps is not None:
            return False
        body = data[pos]
        if body & 0x9F != 0x01:
            return False
        pos += 1
        seconds = 0
        fraction = 0
        stamp_id = b""
        encoding = 0
        r.pos = pos
        if body & 0x20:
            seconds, fraction = r.ntp64()
            stamp_id = r.zid(r.vle(0xFF))
        if body & 0x40:
            if r.pos >= end:
                r.pos = start
                return False
            encoding = data[r.pos]
            if encoding & 0x81:  # a large id, or a schema
                r.pos = start
                return False
            encoding >>= 1
            r.pos += 1
        size = r.vle(0xFFFF_FFFF)
        at = r.pos
        r.skip(size)
        inbound.samples += 1
        inbound.size += size
        for frame in inbound.frames:
            frame.row(
                inbound.name, data, at, at + size, encoding, seconds, fraction, stamp_id, qos,
                reliable,
            )  # fmt: skip
        if inbound.subscribers:
            payload = data[at : at + size]
            sample = Sample(
                inbound.key_expr, payload, True, encoding, b"", seconds, fraction, stamp_id, qos,
                reliable, None,
            )  # fmt: skip
            for subscriber in inbound.subscribers:
                subscriber.sink.push(sample)
        return True


def outbox_for(stream: bool, depth: int) -> Outbox:
    """An outbox before any terms are agreed."""
    return Outbox(65535, 2 if stream else 0, 0x0FFF_FFFF, 0, False, depth)
