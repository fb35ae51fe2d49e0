"""Passing samples on in the bytes that they came in.

All samples of a key have the same head: what they are, the key, how urgent. What a head says to
one neighbour has to be said differently to another, so the words are found once for each
(`Relay.lay`), and a sample that is passed on is a new head before the old body, with our time
between them if it had none and is to have one. Nothing of it is made into a message.

    came     │ push · key · quality │ put │                 │ encoding · value │
    goes on  │ push · key · quality │ put │ time of this node │ encoding · value │

Samples for the same neighbours are gathered into a run and handed to the outboxes as one piece: one
lock and one wake for many, and the same bytes for all neighbours that are told the same words.

A columnar subscriber takes rows for a table instead of objects for a program.

An ordinary subscriber is given a `Sample`. A `FrameSink` gives each neighbour a `Lane` of its own,
and the lane reads Push messages where they lie in the batch that brought them: a writer of
tables can fill whole columns and makes nothing a sample. A lane of a router also gives times to
values that have none, and passes messages on to other neighbours, in the same bytes. What a lane
leaves to others (keys that it has not been told of, messages in pieces, samples of this very node)
comes through `push`, as a `Sample`, in its turn.
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import mypyc_attr

from zenlake.keys.keyexpr import KeyExpr
from zenlake.node.entities import LocalSubscriber, SampleSink
from zenlake.node.stamps import Timestamper
from zenlake.routing.face import Face
from zenlake.routing.filters import SubscriberFilter
from zenlake.transport.framing import FRAGMENT_HEAD
from zenlake.transport.outbox import Outbox
from zenlake.values.qos import QOS_BLOCK, QOS_BLOCK_FIRST, QOS_PRIORITY
from zenlake.wire.codec_network import push_head
from zenlake.wire.cursor import Reader
from zenlake.wire.numbers import PUT_FLAG_TIMESTAMP

#: A run that is this long, in bytes, is handed over.
RUN: Final = 1 << 14
#: Keys with a different fan of neighbours that are remembered.
FANS: Final = 1 << 10
#: Samples with one of these bits are not dropped when they are passed on.
QOS_HELD: Final = QOS_BLOCK | QOS_BLOCK_FIRST


@mypyc_attr(allow_interpreted_subclasses=True)
class Lane:
    """Reads the Push messages of one neighbour for one sink."""

    def __init__(self) -> None:
        """It knows no key yet."""
        #: The version of the tables that it was told by.
        self.version: int = -1

    def walk(self, r: Reader, reliable: bool) -> int:
        """Take the Push messages that follow; how many. `r` stands before the first not taken.

        A lane raises no error: what it cannot read is left to the decoder, which says what is
        wrong.
        """
        return 0

    def learn(self, scope: int, mine: bool, suffix: str, inbound: Inbound, deletes: bool) -> None:
        """What a Push with this scope (`mine`: of the sender's numbers) and suffix means.

        A lane also passes on what it takes, to the faces of `inbound`. `deletes`: whether it may
        take a Del; else only Put.
        """

    def clear(self) -> None:
        """Names may mean other keys now, or be heard by others."""


@mypyc_attr(allow_interpreted_subclasses=True)
class FrameSink(SampleSink):
    """A subscriber that reads batches by itself."""

    def lane(self, stamps: Timestamper | None, relay: Relay) -> Lane:
        """A lane for one more neighbour.

        With `stamps`, its values are given times or have them checked, as `Timestamper` does;
        `relay` is given what others hear too, with the very times that the rows have.
        """
        return Lane()


class Inbound:
    """A key that a neighbour publishes on, and who hears it."""

    __slots__ = (
        "faces", "filters", "frames", "free", "guarded", "key", "key_expr", "name", "node_id",
        "number", "region", "samples", "size", "subscribers", "version",
    )  # fmt: skip

    def __init__(self, key: str, node_id: int) -> None:
        """Its route is found when it is first needed.

        `node_id`: between routers, the neighbour's number for where it comes from.
        """
        self.key: str = key
        self.node_id: int = node_id
        #: Our own number for it, to tell other routers of the region that it comes from.
        self.number: int = 0
        self.region: int = -1
        #: What our own programs call the key.
        self.name: str = key
        self.key_expr: KeyExpr = KeyExpr.trusted(key)
        self.version: int = -1
        self.subscribers: list[LocalSubscriber] = []
        #: Those of them that take rows instead of samples.
        self.frames: list[FrameSink] = []
        self.faces: list[Face] = []
        #: What is asked before samples are sent to some of these, by the id of the face.
        self.filters: dict[int, list[SubscriberFilter]] = {}
        #: The samples that took it, and the bytes of their payloads.
        self.samples: int = 0
        self.size: int = 0
        #: Whether the policy has a say about one of these faces.
        self.guarded: bool = False
        #: Whether the policy lets every put of this key pass unchanged.
        self.free: bool = True


class FanGroup:
    """Neighbours that are sent the same bytes, and those gathered for them."""

    __slots__ = ("outboxes", "parts", "size")

    def __init__(self, outboxes: list[Outbox]) -> None:
        """Nothing yet."""
        self.outboxes: list[Outbox] = outboxes
        self.parts: list[bytes] = []
        self.size: int = 0


class Fan:
    """All the neighbours that samples of some keys go to, and the lane that they take."""

    __slots__ = ("groups", "hold", "priority", "reliable")

    def __init__(self, groups: list[FanGroup], priority: int, reliable: bool, hold: bool) -> None:
        """`hold`: such samples are not dropped; who sends too many of them is held up."""
        self.groups: list[FanGroup] = groups
        self.priority: int = priority
        self.reliable: bool = reliable
        self.hold: bool = hold


class HeadRoute:
    """The route of samples with one head: subscribers here, and new heads for neighbours."""

    __slots__ = ("fan", "head", "heads", "inbound", "longest", "put", "qos", "reliable", "version")

    def __init__(self, inbound: Inbound, qos: int, head: bytes) -> None:
        """`head`: its bytes, of which the last is the header of the value."""
        self.inbound: Inbound = inbound
        self.qos: int = qos
        self.head: bytes = head
        self.put: int = head[-1]
        #: For which tables and which reliability the rest was found.
        self.version: int = -1
        self.reliable: bool = False
        #: None: its samples must be read to be passed on.
        self.fan: Fan | None = None
        #: The new head for each group of the fan, and the size of the longest.
        self.heads: list[bytes] = []
        self.longest: int = 0


class Relay:
    """Gathers what one neighbour says for others."""

    __slots__ = ("_count", "_fan", "_fans", "_patient", "_size", "_version", "crowded")

    def __init__(self, patient: bool) -> None:
        """`patient`: the neighbour can be held up, so that nothing of it needs to be dropped."""
        self._patient: bool = patient
        self._fan: Fan | None = None
        self._count: int = 0
        self._size: int = 0
        #: Fans by the neighbours in them, for one version of the tables.
        self._fans: dict[tuple[int, ...], Fan] = {}
        self._version: int = -1
        #: Outboxes that hold more than they should: the link that fills them is not read meanwhile.
        self.crowded: list[Outbox] = []

    def lay(self, route: HeadRoute, reliable: bool, stamping: bool) -> None:
        """Find the bytes of a head for every neighbour that it goes to."""
        inbound = route.inbound
        route.version = inbound.version
        route.reliable = reliable
        route.fan = None
        if inbound.filters:
            return  # each sample is looked at
        words: dict[bytes, list[Face]] = {}
        put = bytes((route.put | PUT_FLAG_TIMESTAMP if stamping else route.put,))
        for face in inbound.faces:
            outbox = face.outbox_for(route.qos & QOS_PRIORITY, reliable)
            if outbox is None or face.closed:
                continue
            if outbox.framing.bare or outbox.framing.limit < RUN + FRAGMENT_HEAD:
                return  # what goes alone, or in small batches, is counted out one by one
            words.setdefault(head(face, inbound, route.qos) + put, []).append(face)
        route.heads = list(words)
        route.longest = max([len(text) for text in route.heads], default=0)
        route.fan = self._fan_of(list(words.values()), route.qos, reliable, inbound.version)

    def _fan_of(self, targets: list[list[Face]], qos: int, reliable: bool, version: int) -> Fan:
        if self._version != version or len(self._fans) >= FANS:
            self._version = version
            self._fans = {}
        name = [qos & (QOS_PRIORITY | QOS_HELD), 1 if reliable else 0]
        for faces in targets:
            name.append(-1)
            for face in faces:
                name.append(face.id)
        key = tuple(name)
        fan = self._fans.get(key)
        if fan is None:
            groups: list[FanGroup] = []
            for faces in targets:
                outboxes = [face.outbox_for(qos & QOS_PRIORITY, reliable) for face in faces]
                groups.append(FanGroup([outbox for outbox in outboxes if outbox is not None]))
            fan = Fan(groups, qos & QOS_PRIORITY, reliable, self._holds(qos, reliable))
            self._fans[key] = fan
        return fan

    def add(self, route: HeadRoute, fan: Fan, first: bytes, time: bytes, body: bytes) -> None:
        """Pass a sample on: `body` behind our heads, and between them our time (or nothing)."""
        size = route.longest + 1 + len(time) + len(body)
        if fan is not self._fan or self._size + size > RUN:
            self.settle()
            self._fan = fan
        self._size += size
        self._count += 1
        groups = fan.groups
        heads = route.heads
        for index in range(len(groups)):
            group = groups[index]
            head = heads[index]
            parts = group.parts
            parts.append(head)
            group.size += len(head) + len(body)
            if time:
                parts.append(first)
                parts.append(time)
                group.size += 1 + len(time)
            parts.append(body)

    def settle(self) -> None:
        """Hand over what has been gathered."""
        fan = self._fan
        if fan is None:
            return
        self._fan = None
        count = self._count
        self._count = 0
        self._size = 0
        for group in fan.groups:
            parts = group.parts
            size = group.size
            group.parts = []
            group.size = 0
            if len(group.outboxes) > 1:
                parts = [b"".join(parts)]  # once for all of them
            for outbox in group.outboxes:
                self._hand_over(outbox, parts, size, count, fan.priority, fan.reliable, fan.hold)

    def one(self, outbox: Outbox, data: bytes, qos: int, reliable: bool) -> None:
        """Pass on one message that was read and written again."""
        hold = self._holds(qos, reliable)
        self._hand_over(outbox, [data], len(data), 1, qos & QOS_PRIORITY, reliable, hold)

    def _holds(self, qos: int, reliable: bool) -> bool:
        """Whether a sample may not be dropped when it is passed on: its sender waits instead."""
        return self._patient and reliable and (qos & QOS_HELD) != 0

    def _hand_over(
        self, outbox: Outbox, parts: list[bytes], size: int, count: int, priority: int,
        reliable: bool, hold: bool,
    ) -> None:  # fmt: skip
        outbox.relay(parts, size, count, priority, reliable, hold)
        if hold and outbox.full(priority) and outbox not in self.crowded:
            self.crowded.append(outbox)


def head(face: Face, inbound: Inbound, qos: int) -> bytes:
    """All that comes before the value, in the words of one neighbour."""
    scope, mine, suffix = face.wire_key(inbound.key, False)
    return push_head(
        scope=scope,
        suffix=suffix,
        sender_mapping=mine,
        qos=qos,
        node_id=inbound.number if face.region == inbound.region else 0,
    )
