"""A sample as programs see it.

Its parts are made when they are asked for: a subscriber that only counts pays for one object. So
is a payload of some size: until the program looks at it, it stays in the bytes that were read from
the link, and the sample keeps those.
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import mypyc_attr

from zenlake.clock.timestamp import Timestamp
from zenlake.clock.zid import ZenohId
from zenlake.errors import DecodeError
from zenlake.keys.keyexpr import KeyExpr
from zenlake.values.encoding import Encoding
from zenlake.values.qos import CongestionControl, Priority, QoS, Reliability, SampleKind
from zenlake.values.sample import EntityGlobalId, SourceInfo
from zenlake.values.timestamp_stack import (
    InterceptionPoint,
    TimestampInstrumentation,
    TimestampStack,
    TimestampStackRecord,
)
from zenlake.values.zbytes import ZBytes
from zenlake.wire.codec_network import Push
from zenlake.wire.codec_network import TimestampStack as WireTimestampStack
from zenlake.wire.codec_zenoh import Put, read_timestamp
from zenlake.wire.codec_zenoh import SourceInfo as WireSourceInfo
from zenlake.wire.codec_zenoh import Timestamp as WireTimestamp
from zenlake.wire.cursor import Reader
from zenlake.wire.numbers import PUT_FLAG_ENCODING, PUT_FLAG_TIMESTAMP

_BYTES = Encoding.from_wire(0, None)
#: The greatest word that an encoding is on the wire: its id and whether a schema follows.
LAST_ENCODING: Final = 0x1_FFFF


# Nothing that it holds can lead back to it: the collector need not look at samples at all.
@mypyc_attr(acyclic=True)
class Sample:
    """A value that was published under a key, or the news that it was removed."""

    __slots__ = (
        "_at",
        "_value",
        "chunk",
        "encoding_id",
        "is_put",
        "is_reliable",
        "key",
        "payload_size",
        "push",
        "qos_byte",
        "schema",
        "stamp_fraction",
        "stamp_id",
        "stamp_seconds",
    )

    def __init__(
        self,
        key_expr: KeyExpr,
        payload: bytes | None,
        put: bool,
        encoding: int,
        schema: bytes,
        seconds: int,
        fraction: int,
        stamp_id: bytes,
        qos: int,
        reliable: bool,
        push: Push | None,
    ) -> None:
        """The fields that nearly every message has; `push` only if it has others too.

        Without a payload, `lies_in` must follow. The attributes are the numbers and bytes of the
        wire, for other modules of zenlake; programs read the properties.
        """
        self.key: KeyExpr = key_expr
        #: The payload; None while it lies in the bytes of a read, and where.
        self._value: bytes | None = payload
        self.chunk: bytes = b""
        self._at: int = 0
        self.payload_size: int = 0 if payload is None else len(payload)
        self.is_put: bool = put
        self.encoding_id: int = encoding
        self.schema: bytes = schema
        self.stamp_seconds: int = seconds
        self.stamp_fraction: int = fraction
        self.stamp_id: bytes = stamp_id
        self.qos_byte: int = qos
        self.is_reliable: bool = reliable
        self.push: Push | None = push

    def lies_in(self, chunk: bytes, at: int, size: int) -> None:
        """The payload is `size` bytes of a read, from `at` on.

        Args:
            chunk: The bytes of a read.
        """
        self.chunk = chunk
        self._at = at
        self.payload_size = size

    def content(self) -> bytes:
        """The payload, out of the read that it lay in, which is let go."""
        # Threads may meet here. Who finds the read let go finds the value that was set before.
        chunk = self.chunk
        value = self._value
        if value is None:
            value = chunk[self._at : self._at + self.payload_size]
            self._value = value
            self.chunk = b""
        return value

    @property
    def key_expr(self) -> KeyExpr:
        """The key it was published under."""
        return self.key

    @property
    def payload(self) -> ZBytes:
        """The value; empty when it was removed."""
        return ZBytes(self.content())

    @property
    def kind(self) -> SampleKind:
        """Whether the value was put or deleted."""
        return SampleKind.PUT if self.is_put else SampleKind.DELETE

    @property
    def encoding(self) -> Encoding:
        """What the payload is."""
        if self.encoding_id or self.schema:
            return Encoding.from_wire(self.encoding_id, self.schema or None)
        return _BYTES

    @property
    def timestamp(self) -> Timestamp | None:
        """When it was published, if its publisher or a router on its route gave it a timestamp."""
        if not self.stamp_id:
            return None
        return Timestamp(self.stamp_seconds, self.stamp_id, self.stamp_fraction)

    @property
    def qos(self) -> QoS:
        """How it was transported: priority, congestion control, express, reliability."""
        return QoS.from_byte(self.qos_byte)

    @property
    def congestion_control(self) -> CongestionControl:
        """What would have happened to it when a queue was full."""
        return self.qos.congestion_control

    @property
    def priority(self) -> Priority:
        """How urgent it was."""
        return self.qos.priority

    @property
    def express(self) -> bool:
        """Whether it was sent at once instead of waiting for company."""
        return self.qos.express

    @property
    def reliability(self) -> Reliability:
        """Whether it came on a reliable lane."""
        return Reliability.RELIABLE if self.is_reliable else Reliability.BEST_EFFORT

    @property
    def attachment(self) -> ZBytes | None:
        """What the publisher added beside the value."""
        push = self.push
        attachment = None if push is None else push.body.attachment
        return None if attachment is None else ZBytes(attachment)

    @property
    def source_info(self) -> SourceInfo | None:
        """Who published it, if they said so."""
        push = self.push
        return None if push is None else source_info_of(push.body.source_info)

    @property
    def timestamp_stack(self) -> TimestampStack | None:
        """Times taken along its route, if the publisher asked for them."""
        push = self.push
        return None if push is None else timestamp_stack_of(push.timestamp_stack)

    def size(self) -> int:
        """How many bytes it brought."""
        size = self.payload_size
        push = self.push
        if push is not None:
            attachment = push.body.attachment
            if attachment is not None:
                size += len(attachment)
        return size

    def _said(self) -> tuple[object, ...]:
        """All that was said, for comparing."""
        return (
            str(self.key),
            self.content(),
            self.is_put,
            self.encoding_id,
            self.schema,
            self.stamp_seconds,
            self.stamp_fraction,
            self.stamp_id,
            self.qos_byte,
            self.is_reliable,
            self.attachment,
            self.source_info,
        )

    def __repr__(self) -> str:
        """The sample in one line."""
        text = f"{self.kind.name} {self.key} {self.payload!r} {self.encoding}"
        timestamp = self.timestamp
        return f"<Sample {text}{'' if timestamp is None else f' {timestamp}'}>"

    def __eq__(self, other: object) -> bool:
        """Equal if the same was said under the same key."""
        if not isinstance(other, Sample):
            return NotImplemented
        return self._said() == other._said()

    def __hash__(self) -> int:
        """Equal samples have equal hashes."""
        return hash(self._said())

    def __reduce__(self) -> tuple[object, ...]:
        """How to pickle it."""
        fields = (
            self.key,
            self.content(),
            self.is_put,
            self.encoding_id,
            self.schema,
            self.stamp_seconds,
            self.stamp_fraction,
            self.stamp_id,
            self.qos_byte,
            self.is_reliable,
            self.push,
        )
        return Sample, fields


def sample_of(key_expr: KeyExpr, push: Push, reliable: bool) -> Sample:
    """What a message brought under the key that it meant."""
    body = push.body
    seconds = 0
    fraction = 0
    stamp_id = b""
    stamp = body.timestamp
    if stamp is not None:
        seconds = stamp.seconds
        fraction = stamp.fraction
        stamp_id = stamp.id
    rare = (
        body.attachment is not None
        or body.source_info is not None
        or push.timestamp_stack is not None
    )
    kept = push if rare else None
    if isinstance(body, Put):
        return Sample(
            key_expr, body.payload, True, body.encoding, body.schema, seconds, fraction, stamp_id,
            push.qos, reliable, kept,
        )  # fmt: skip
    return Sample(
        key_expr, b"", False, 0, b"", seconds, fraction, stamp_id, push.qos, reliable, kept
    )


def timestamp_of(wire: WireTimestamp | None) -> Timestamp | None:
    """A timestamp for programs."""
    if wire is None:
        return None
    return Timestamp(wire.seconds, wire.id, wire.fraction)


def wire_timestamp(timestamp: Timestamp) -> WireTimestamp:
    """A timestamp for the wire."""
    return WireTimestamp(
        seconds=timestamp.seconds, fraction=timestamp.fraction, id=timestamp.id_bytes
    )


def source_info_of(wire: WireSourceInfo | None) -> SourceInfo | None:
    """Source information for programs."""
    if wire is None:
        return None
    return SourceInfo(EntityGlobalId(ZenohId(wire.zid), wire.eid), wire.sn)


def timestamp_stack_of(wire: WireTimestampStack | None) -> TimestampStack | None:
    """The stamps of a message for programs; a stamp that does not parse is given as bytes."""
    if wire is None or not wire.points & 0b111:
        return None
    records: list[TimestampStackRecord] = []
    for record in wire.records:
        point = record.point & 0b111
        if point not in (1, 2, 4):
            continue
        stamp: Timestamp | bytes = record.stamp
        if not record.point & 0x80:
            try:
                r = Reader(record.stamp)
                parsed = timestamp_of(read_timestamp(r))
                if parsed is not None:
                    stamp = parsed
            except DecodeError:
                pass
        records.append(TimestampStackRecord(InterceptionPoint(point), stamp))
    return TimestampStack(TimestampInstrumentation(wire.points), tuple(records))


def stamp_and_encoding(r: Reader, header: int) -> tuple[int, int, bytes, int]:
    """Read what a Put says before its extensions: seconds, fraction and id of its time; encoding.

    The encoding is the word of the wire: if it is odd, a schema follows, which is not read.
    """
    seconds = 0
    fraction = 0
    id = b""
    encoding = 0
    if header & PUT_FLAG_TIMESTAMP:
        seconds, fraction = r.ntp64()
        id = r.zid(r.vle(0xFF))
    if header & PUT_FLAG_ENCODING:
        encoding = r.vle(0xFFFF_FFFF)
    return seconds, fraction, id, encoding
