"""The broker: sessions on any number of links, and where a sample of one goes to among the others.

It owns no socket and no clock. An edge tells it of links (`connected`, `received`, `lost`) and of
time (`tick`), and sends what `flush` gives. What lies beyond, such as a Zenoh 1.x network, is an
`Outside`: it is told what is published and wanted here, and gives samples in return.
"""

from __future__ import annotations

import heapq
from typing import Any, Final

from zenlake.errors import DecodeError
from zenlake.xrce.batches import UnreadBatch
from zenlake.xrce.broker_options import BrokerOptions
from zenlake.xrce.codec import (
    BatchedData,
    Close,
    Declare,
    Hello,
    KeepAlive,
    Open,
    Pull,
    Scout,
    StreamData,
    WriteData,
)
from zenlake.xrce.framing import PACKET_MAX, Deframer, frame
from zenlake.xrce.markers import XrceMessage, conduit_of, read_messages, space_of
from zenlake.xrce.member import Member
from zenlake.xrce.names import parse_name
from zenlake.xrce.options import BAD_PARAMETER, GENERIC, NO_ROOM, Habits, SessionOptions
from zenlake.xrce.outside import Outside, Values
from zenlake.xrce.routing import DeviceSample, Routing, spaced
from zenlake.xrce.session import CLOSED, NEVER, XrceSession, written

#: Bits of a scouting mask.
BROKER, DURABILITY_BIT, PEER, CLIENT = 1, 2, 4, 8
#: Frames to peers that read them in pieces are no larger.
STREAM_MTU: Final = 1 << 22
#: The largest packet on a stream without a session: strangers make nobody hoard bytes.
KNOCKING_BYTES: Final = 4096
#: Seconds after which a session that said nothing but Open makes room for a newcomer.
SILENT_FOR: Final = 10.0
#: Deadlines in the heap that no session waits for any more, besides as many as there are sessions.
MOST_STALE_DEADLINES: Final = 1024


class Port:
    """One link of a broker: an address, or a connection."""

    __slots__ = ("closing", "deframer", "key", "member", "mtu", "out", "stream")

    def __init__(self, key: Any, stream: bool, mtu: int) -> None:
        """`key`: what the edge calls it."""
        self.key = key
        self.stream = stream
        self.mtu = mtu
        self.member: Member | None = None
        self.deframer = Deframer(KNOCKING_BYTES) if stream else None
        self.out: list[bytes] = []
        #: It is of no use any more once `out` is sent.
        self.closing = False


class Broker:
    """All sessions of a broker."""

    def __init__(
        self, options: BrokerOptions, outside: Outside | None = None, values: Values | None = None
    ) -> None:
        """`values`: where those of durable resources are kept; in memory if not said."""
        self.routing = Routing(options, outside, values)
        # The routing's own, at hand.
        self.options = options
        self.outside = self.routing.outside
        self.values = self.routing.values
        self.counters = self.routing.counters
        self.members = self.routing.members
        self._ports: dict[bytes, Port] = {}
        self._dirty: dict[Port, None] = {}
        self._due: list[tuple[float, int, bytes]] = []
        self._armed: dict[bytes, float] = {}
        self._count = 0

    # ---------------------------------------------------------------------------------- links

    def connected(self, key: Any, stream: bool, mtu: int = 0) -> Port:
        """A link over which a client may open a session."""
        return Port(key, stream, mtu or (STREAM_MTU if stream else self.options.mtu))

    def lost(self, port: Port) -> None:
        """A connection broke: its session is over."""
        if port.member is not None and port.stream:
            self._leave(port.member, "the link was lost")

    def received(self, port: Port, data: bytes, now: float) -> None:
        """Bytes came over a link."""
        self.routing.now = now
        try:
            for packet in [data] if port.deframer is None else port.deframer.feed(data):
                self._packet(port, packet, now)
                if port.closing:
                    break
        except DecodeError as error:
            self._malformed(port, str(error))
        self._dirty[port] = None

    def heard(self, pid: bytes, messages: list[XrceMessage], now: float) -> bool:
        """Messages of a session came another way than over its link; False: there is no such."""
        port = self._ports.get(pid)
        if port is None or port.member is None:
            return False
        self.routing.now = now
        member = port.member
        for message in member.session.take(messages, now):
            self._message(port, member, message, now)
        self._after(port, member)
        return True

    def _malformed(self, port: Port, why: str) -> None:
        self.counters.malformed += 1
        if port.member is not None:
            port.member.session.fail(GENERIC, why)
            self._after(port, port.member)
        elif port.stream:
            self._say(port, Close(pid=self.options.pid, reason=GENERIC))
        port.closing = port.closing or port.stream

    def _packet(self, port: Port, packet: bytes, now: float) -> None:
        try:
            messages = read_messages(packet)
        except DecodeError as error:
            self._malformed(port, str(error))
            return
        member = port.member
        if member is None and messages:
            messages = self._stranger(port, messages, now)
            member = port.member
        if member is None or not messages:
            return
        first = messages[0]
        if isinstance(first, Open) and first.pid != member.session.peer:
            self.counters.refused += 1
            self._say(port, Close(pid=self.options.pid, reason=BAD_PARAMETER))
            return
        member.session.counters.received_bytes += len(packet)
        for message in member.session.take(messages, now):
            self._message(port, member, message, now)
        self._after(port, member)

    def _stranger(self, port: Port, messages: list[XrceMessage], now: float) -> list[XrceMessage]:
        """Messages over a link without a session; gives those that a session is to see."""
        for i, message in enumerate(messages):
            if isinstance(message, Scout):
                if message.mask & self.options.mask:
                    self._say(port, Hello(mask=self.options.mask, locators=self.options.locators))
            elif isinstance(message, Open):
                return messages[i + 1 :] if self._open(port, message, now) else []
            elif isinstance(message, (KeepAlive, Close)):
                member = self.members.get(message.pid)
                if member is None or port.stream:
                    self.counters.strangers += 1
                    if isinstance(message, KeepAlive):
                        self._say(port, Close(pid=self.options.pid, reason=GENERIC))
                    return []
                self._move(port, member)
                return messages[i:]
            else:
                self.counters.strangers += 1
                return []
        return []

    def _move(self, port: Port, member: Member) -> None:
        """A session goes on at another address."""
        old = self._ports.get(member.session.peer)
        if old is not None and old is not port:
            old.member = None
            old.closing = True
            self._dirty[old] = None
            self.counters.moved += 1
        port.member = member
        self._ports[member.session.peer] = port

    def _open(self, port: Port, request: Open, now: float) -> bool:
        if request.pid == self.options.pid:
            return False
        before = self.members.get(request.pid)
        if before is not None:
            if not port.stream and not before.session.options.lossless:
                self._move(port, before)
                before.session.take([request], now)
                self._after(port, before)
                return False
            self._leave(before, "its owner opened another one")
        options = self.options
        if len(self.members) >= options.sessions and not self._displaced(now):
            return self._refuse(port, NO_ROOM)
        session = XrceSession(
            SessionOptions(
                options.pid,
                lease=0 if port.stream else options.lease,
                mtu=port.mtu,
                lossless=port.stream,
                conduits=options.conduits,
                shared=options.shared,
                queue=options.queue,
                room=options.room,
            ),
            initiator=False,
        )
        habits = options.habits
        session.habits = Habits(
            habits.complete, habits.ocaml, habits.endless, habits.eager, habits.frame
        )
        try:
            reason = session.accept(request, now, options.secret)
        except DecodeError:
            reason = BAD_PARAMETER
        if reason:
            return self._refuse(port, reason)
        member = Member(self.routing, session)
        self.members[request.pid] = member
        self._ports[request.pid] = port
        port.member = member
        if port.deframer is not None:
            port.deframer.limit = PACKET_MAX
        self.counters.opened += 1
        self.outside.came(request.pid)
        self._after(port, member)
        return True

    def _displaced(self, now: float) -> bool:
        """Make room for a newcomer: end a session that never said more than Open.

        A lease without end costs a stranger one datagram; a node that is there says something.
        """
        for member in self.members.values():
            session = member.session
            silent = session.counters.received < session.counters.opens
            if silent and now - session.last_heard >= SILENT_FOR:
                session.fail(NO_ROOM, "it never spoke, and another one wants its place")
                session.exhausted = False
                self.counters.displaced += 1
                self._leave(member)
                return True
        return False

    def _refuse(self, port: Port, reason: int) -> bool:
        self.counters.refused += 1
        self._say(port, Close(pid=self.options.pid, reason=reason))
        port.closing = True
        return False

    def _leave(self, member: Member, why: str = "") -> None:
        pid = member.session.peer
        if self.members.get(pid) is not member:
            return
        del self.members[pid]
        self._armed.pop(pid, None)
        port = self._ports.pop(pid, None)
        member.session.why = member.session.why or why
        member.session.state = CLOSED
        self.counters.closed += 1
        if member.session.exhausted:
            self.counters.exhausted += 1
        self.counters.congested += member.congested
        member.leave()
        if port is not None and port.member is member:
            self._write(port, member)
            port.member = None
            port.closing = True
            self._dirty[port] = None
        self.outside.went(pid)

    def _say(self, port: Port, message: Hello | Close) -> None:
        data = written(message)
        port.out.append(frame(data) if port.stream else data)
        self._dirty[port] = None

    def _after(self, port: Port, member: Member) -> None:
        if member.session.state == CLOSED:
            self._leave(member)
        else:
            self._dirty[port] = None

    def _write(self, port: Port, member: Member) -> None:
        packets = member.session.packets(self.routing.now)
        port.out += [frame(packet) for packet in packets] if port.stream else packets

    def flush(self, now: float) -> list[Port]:
        """The links with something to send (`out`), or to close."""
        self.routing.now = now
        touched = self.routing.touched
        while touched:
            touched_member, _ = touched.popitem()
            touched_port = self._ports.get(touched_member.session.peer)
            if touched_port is not None:
                self._dirty[touched_port] = None
        ports: list[Port] = []
        while self._dirty:
            port, _ = self._dirty.popitem()
            member = port.member
            if member is not None:
                self._write(port, member)
                self._arm(member)
            if port.out or port.closing:
                ports.append(port)
        return ports

    # ----------------------------------------------------------------------------------- time

    def _arm(self, member: Member) -> None:
        member.now = self.routing.now
        at = member.deadline
        pid = member.session.peer
        if at < self._armed.get(pid, NEVER):
            self._armed[pid] = at
            self._count += 1
            if len(self._due) > 2 * len(self._armed) + MOST_STALE_DEADLINES:
                # Of sessions that are gone, or moved to an earlier time since.
                self._due = [item for item in self._due if self._armed.get(item[2]) == item[0]]
                heapq.heapify(self._due)
            heapq.heappush(self._due, (at, self._count, pid))

    @property
    def deadline(self) -> float:
        """When `tick` is to be called."""
        return self._due[0][0] if self._due else NEVER

    def tick(self, now: float) -> None:
        """Do what the time demands."""
        self.routing.now = now
        while self._due and self._due[0][0] <= now:
            at, _, pid = heapq.heappop(self._due)
            if self._armed.get(pid) != at:
                continue
            del self._armed[pid]
            member = self.members.get(pid)
            if member is None:
                continue
            member.now = now
            if member.deadline <= now:
                member.tick(now)
            if member.session.state == CLOSED:
                self._leave(member)
            else:
                self.routing.touched[member] = None

    def touch_all(self) -> None:
        """Every session may have something to send, or a new deadline."""
        for port in self._ports.values():
            self._dirty[port] = None

    def close(self, now: float) -> None:
        """Say goodbye to everybody."""
        self.routing.now = now
        for member in list(self.members.values()):
            member.session.close(now)
            self._leave(member, "the broker stops")

    # -------------------------------------------------------------------------------- messages

    def _message(self, port: Port, member: Member, message: XrceMessage, now: float) -> None:
        if isinstance(message, StreamData):
            self._sample(member, message, message.id, message.prid, message.payload)
        elif isinstance(message, UnreadBatch):
            self._batch(member, message)
        elif isinstance(message, WriteData):
            self._write_data(member, message)
        elif isinstance(message, Declare):
            member.declare(message, now)
        elif isinstance(message, Pull):
            member.pull(message, now)
        elif isinstance(message, BatchedData):
            for payload in message.payloads:
                self._sample(member, message, message.id, None, payload)
            for sample in message.samples:
                self._sample(member, message, message.id, sample.prid, sample.payload)
        elif isinstance(message, Scout) and message.mask & self.options.mask:
            self._say(port, Hello(mask=self.options.mask, locators=self.options.locators))

    def _sample(
        self, member: Member, message: StreamData | BatchedData, id: int, prid: int | None,
        payload: bytes,
    ) -> None:  # fmt: skip
        space = space_of(message, member.habits.ocaml) if message.markers else 0
        conduit = conduit_of(message) if message.markers else 0
        tables = member.spaces.get(space)
        known = tables.resources.get(prid if prid else id) if tables is not None else None
        if known is None or not known.name.trivial:
            self.routing.route(
                DeviceSample(
                    member, space, None, payload, reliable=message.reliable, id=id, conduit=conduit
                )
            )
            return
        if known.name.meta:
            self.counters.meta_writes += 1
            return
        durability = known.durability
        if tables is not None and not durability:
            publication = tables.publishers.get(id)
            durability = publication.durability if publication is not None else 0
        sample = DeviceSample(
            member, space, known.name.path, payload, reliable=message.reliable, conduit=conduit,
            durability=durability, type=known.type,
        )  # fmt: skip
        self._named(member, known.name.path, sample, message.sn)

    def _batch(self, member: Member, batch: UnreadBatch) -> None:
        tables = member.spaces.get(0)
        known = tables.resources.get(batch.id) if tables is not None else None
        if known is None or not known.name.trivial:
            self.routing.route_batch(member, None, batch, 0, None)
            return
        if known.name.meta:
            self.counters.meta_writes += 1
            return
        path = known.name.path
        durability = known.durability
        if tables is not None and not durability:
            publication = tables.publishers.get(batch.id)
            durability = publication.durability if publication is not None else 0
        self.routing.route_batch(member, path, batch, durability, known.type)
        if durability or self.outside.wide:
            for payload in batch.payloads():
                if durability:
                    self.values.put(path, durability, payload)
                self.outside.published(
                    path, payload, batch.reliable, 0, durability, member.session.peer, batch.sn
                )

    def _write_data(self, member: Member, message: WriteData) -> None:
        try:
            name = parse_name(message.resource)
        except DecodeError:
            self.counters.malformed += 1
            return
        if not member.styled:
            member.style, member.styled = name.style, True
        if name.meta or not name.trivial:
            self.counters.meta_writes += 1
            return
        space = space_of(message, member.habits.ocaml)
        sample = DeviceSample(
            member, space, name.path, message.payload, reliable=message.reliable,
            conduit=conduit_of(message), durability=name.durability,
        )  # fmt: skip
        self._named(member, name.path, sample, message.sn)

    def _named(self, member: Member, path: str, sample: DeviceSample, sn: int) -> None:
        """Keep a sample of a name if it is durable, and give it to sessions and the outside."""
        space = sample.space
        if sample.durability:
            self.values.put(spaced(space, path), sample.durability, sample.payload)
        self.routing.route(sample)
        if space != 1:
            self.outside.published(
                spaced(space, path), sample.payload, sample.reliable, sample.conduit,
                sample.durability, member.session.peer, sn,
            )  # fmt: skip
