"""Reading the samples of one neighbour: for subscribers here, and for other neighbours.

A sample takes one of three lanes, the fastest that it can:

    columns    (`ColumnLanes`) rows of a table: one sink alone hears the key, and reads by itself
    ordinary   (`heard_push`) its head came before in these very bytes: no message object is made
    any        (`message`) it was decoded; what the next ones like it need is remembered here
"""

from __future__ import annotations

from typing import Final

from zenlake.node.core import Core
from zenlake.node.entities import SAMPLES
from zenlake.node.routes.column_lanes import ColumnLanes
from zenlake.node.routes.forward import HeadRoute, Inbound, Relay
from zenlake.node.routes.heads import begins, skip_known, walk_head
from zenlake.node.routes.inbound import INBOUND, InboundRoutes
from zenlake.node.routes.routes import Routes
from zenlake.node.sample import LAST_ENCODING, Sample, sample_of, stamp_and_encoding
from zenlake.routing.face import Face
from zenlake.routing.keyids import UNDECLARED, key_flaw
from zenlake.routing.policy.gate import PolicyGate
from zenlake.routing.queries import RECEIVE, ROUTE
from zenlake.routing.regions import ROUTER
from zenlake.wire.codec_network import Push, TimestampStack
from zenlake.wire.codec_zenoh import Put
from zenlake.wire.cursor import Reader
from zenlake.wire.numbers import MORE

#: Payloads up to this size are copied at once: that is cheaper than to keep the read alive.
SMALL: Final = 512


class PushReader:
    """Reads the Push messages of one neighbour."""

    def __init__(self, node: Core, routes: Routes, patient: bool) -> None:
        """`patient`: the neighbour can be held up, so that nothing of it needs to be dropped."""
        self._node: Core = node
        self._routes: Routes = routes
        #: Gathers what the neighbour sends for others.
        self.relay: Relay = Relay(patient)
        self.lanes: ColumnLanes = ColumnLanes(node.tables, node.stamps, self.relay)
        self.inbounds: InboundRoutes = InboundRoutes(node.traffic)
        #: Where the neighbour stands in the tables, once its session is open.
        self.face: Face | None = None
        #: What the policy says of messages that come from it, and whether of samples.
        self._ingress: PolicyGate | None = None
        self._guarded: bool = False
        #: Routes by the very bytes of heads, up to the header of the value.
        self._by_head: dict[bytes, HeadRoute] = {}
        #: The route of the last message: the next one has the same head as a rule.
        self._last_route: HeadRoute | None = None
        #: The head of the message that is being read, if it is new.
        self._new_head: bytes = b""

    def obey(self, ingress: PolicyGate | None) -> None:
        """Judge by another policy from now on."""
        self._ingress = ingress
        self._guarded = ingress is not None and ingress.concerns(SAMPLES)
        self.forget_heads()  # they know the QoS that the old one gave, and what passes freely

    def forget_heads(self) -> None:
        """Bytes that named keys may name others now."""
        self._by_head.clear()
        self._last_route = None
        self.lanes.clear()

    def clear(self) -> None:
        """Forget all routes; the samples that took them stay counted."""
        self.inbounds.clear()
        self.forget_heads()

    def settle(self) -> None:
        """Hand over what was gathered for others; what comes next comes at another time."""
        self.relay.settle()
        stamps = self._node.stamps
        if stamps is not None:
            stamps.forget()

    # ------------------------------------------------------------------------- decoded messages

    def stopped(self) -> None:
        """The policy stopped the message that is being read."""
        self._new_head = b""

    def message(self, push: Push, reliable: bool) -> None:
        """Take a sample that was decoded."""
        head = self._new_head
        self._new_head = b""
        inbound = self._inbound(push)
        if inbound is None:
            return
        if head and len(self._by_head) < INBOUND:
            self._by_head[head] = HeadRoute(inbound, push.qos, head)
        body = push.body
        inbound.samples += 1
        if isinstance(body, Put):
            inbound.size += len(body.payload)
        node = self._node
        if inbound.version != node.tables.version:
            self._routes.find(self.face, self._ingress, inbound)
        stamps = node.stamps
        if stamps is not None:
            heard = inbound.subscribers or inbound.frames or inbound.faces
            # A deletion without a time goes on without one, as Eclipse's routers pass it on.
            timed = isinstance(body, Put) or body.timestamp is not None
            if heard and timed and not stamps.stamp(body):
                return
        stack = push.timestamp_stack
        if stack is not None:
            self._stamped(push, inbound, reliable, stack)
            return
        deliver(push, inbound, reliable)
        if inbound.faces:
            self._routes.forward(push, inbound, reliable, self.relay)
        if self._is_columnar(inbound) and not push.node_id:
            # Only of puts it was asked whether they pass freely; and a Del is passed on otherwise.
            self.lanes.learn(push, inbound, not self._guarded and not inbound.faces)

    def _inbound(self, push: Push) -> Inbound | None:
        """The route of a sample's key; None if that is not legal."""
        face = self.face
        if face is None:
            return None
        key = face.keys.resolve(push.scope, push.sender_mapping, push.suffix)
        if key is None:
            face.illegal_key(UNDECLARED)
            return None
        node_id = push.node_id if face.role == ROUTER else 0
        inbound = self.inbounds.get(key, node_id)
        if inbound is None:
            flaw = key_flaw(key)
            if flaw:
                face.illegal_key(flaw)
                return None
            if self.inbounds.is_full():
                self.clear()
            inbound = self.inbounds.add(key, node_id)
        return inbound

    def _is_columnar(self, inbound: Inbound) -> bool:
        """Whether one sink makes rows of it, and no other program of ours and no rule has a say.

        Its lane also passes on what other neighbours hear.
        """
        if len(inbound.frames) != 1 or inbound.subscribers or inbound.guarded or inbound.node_id:
            return False
        if inbound.filters:
            return False
        return not self._guarded or inbound.free

    def _stamped(self, push: Push, inbound: Inbound, reliable: bool, stack: TimestampStack) -> None:
        """Take a sample that has its times taken: what is passed on has not arrived here."""
        stack = self._node.stamped(stack, ROUTE)
        if inbound.faces:
            push.timestamp_stack = stack
            self._routes.forward(push, inbound, reliable, self.relay)
        if inbound.subscribers or inbound.frames:
            push.timestamp_stack = self._node.stamped(stack, RECEIVE)
            deliver(push, inbound, reliable)

    # ------------------------------------------------------------------------- ordinary messages

    def heard_push(self, r: Reader, reliable: bool) -> int:
        """Take ordinary puts, straight into samples or on to other neighbours.

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
                self._new_head = name  # learnt when the whole message has been read
                return 0
            self._last_route = route
        inbound = route.inbound
        node = self._node
        version = node.tables.version
        if inbound.version != version:
            self._routes.find(self.face, self._ingress, inbound)
        if inbound.frames and self._is_columnar(inbound):
            return 0  # the sink has a lane of its own, or is told of this name now
        faces = inbound.faces
        if faces and (route.version != inbound.version or route.reliable != reliable):
            self.relay.lay(route, reliable, node.stamps is not None)
        delivered = bool(inbound.subscribers or inbound.frames)
        if inbound.guarded or (faces and route.fan is None) or (route.put & MORE and delivered):
            return 0
        if self._guarded and not inbound.free:
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
        seconds, fraction, stamp_id, encoding = stamp_and_encoding(r, put)
        if encoding > LAST_ENCODING or (encoding & 1 and delivered):  # no such, or with a schema
            r.pos = start
            return False
        if encoding & 1:
            r.skip(r.vle(0xFF))
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
        stamps = self._node.stamps
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
                inbound.key_expr, None if size > SMALL else data[at : at + size], True,
                encoding >> 1, b"", seconds, fraction, stamp_id, route.qos, reliable, None,
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


def deliver(push: Push, inbound: Inbound, reliable: bool) -> None:
    """Give a sample to the subscribers of this node that hear it."""
    if not inbound.subscribers and not inbound.frames:
        return
    sample = sample_of(inbound.key_expr, push, reliable)
    for subscriber in inbound.subscribers:
        subscriber.sink.push(sample)
    for frame in inbound.frames:
        frame.push(sample)
