"""A sample as programs see it: a window on the message that brought it.

Nothing is made until it is asked for: a subscriber that only counts pays for one small object.
"""

from __future__ import annotations

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

_BYTES = Encoding.from_wire(0, None)


class Sample:
    """A value that was published under a key, or the news that it was removed."""

    __slots__ = ("_key_expr", "_push", "_reliable")

    def __init__(self, key_expr: KeyExpr, push: Push, reliable: bool) -> None:
        """What `push` brought under the key that it meant."""
        self._key_expr: KeyExpr = key_expr
        self._push: Push = push
        self._reliable: bool = reliable

    @property
    def key_expr(self) -> KeyExpr:
        """The key it was published under."""
        return self._key_expr

    @property
    def payload(self) -> ZBytes:
        """The value; empty when it was removed."""
        body = self._push.body
        return ZBytes(body.payload) if isinstance(body, Put) else ZBytes(b"")

    @property
    def kind(self) -> SampleKind:
        """Whether the value was put or deleted."""
        return SampleKind.PUT if isinstance(self._push.body, Put) else SampleKind.DELETE

    @property
    def encoding(self) -> Encoding:
        """What the payload is."""
        body = self._push.body
        if isinstance(body, Put) and (body.encoding or body.schema):
            return Encoding.from_wire(body.encoding, body.schema or None)
        return _BYTES

    @property
    def timestamp(self) -> Timestamp | None:
        """When it was published, if its publisher or a router on the way said so."""
        return timestamp_of(self._push.body.timestamp)

    @property
    def qos(self) -> QoS:
        """How it was treated on the way."""
        return QoS.from_byte(self._push.qos)

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
        return Reliability.RELIABLE if self._reliable else Reliability.BEST_EFFORT

    @property
    def attachment(self) -> ZBytes | None:
        """What the publisher added beside the value."""
        attachment = self._push.body.attachment
        return None if attachment is None else ZBytes(attachment)

    @property
    def source_info(self) -> SourceInfo | None:
        """Who published it, if they said so."""
        return source_info_of(self._push.body.source_info)

    @property
    def timestamp_stack(self) -> TimestampStack | None:
        """Times taken along its way, if the publisher asked for them."""
        return timestamp_stack_of(self._push.timestamp_stack)

    def __repr__(self) -> str:
        """The sample in one line."""
        text = f"{self.kind.name} {self._key_expr} {self.payload!r} {self.encoding}"
        timestamp = self.timestamp
        return f"<Sample {text}{'' if timestamp is None else f' {timestamp}'}>"

    def __eq__(self, other: object) -> bool:
        """Equal if the same was said under the same key."""
        if not isinstance(other, Sample):
            return NotImplemented
        mine, theirs = self._push, other._push
        return (
            self._key_expr == other._key_expr
            and mine.body == theirs.body
            and mine.qos == theirs.qos
            and self._reliable == other._reliable
        )

    def __hash__(self) -> int:
        """Equal samples have equal hashes."""
        return hash((str(self._key_expr), self._push.body, self._push.qos))

    def __reduce__(self) -> tuple[object, ...]:
        """How to pickle it."""
        return Sample, (self._key_expr, self._push, self._reliable)


def timestamp_of(found: WireTimestamp | None) -> Timestamp | None:
    """A timestamp for programs."""
    if found is None:
        return None
    return Timestamp(found.seconds, found.id, found.fraction)


def wire_timestamp(timestamp: Timestamp) -> WireTimestamp:
    """A timestamp for the wire."""
    return WireTimestamp(
        seconds=timestamp.seconds, fraction=timestamp.fraction, id=timestamp.id_bytes
    )


def source_info_of(found: WireSourceInfo | None) -> SourceInfo | None:
    """Source information for programs."""
    if found is None:
        return None
    return SourceInfo(EntityGlobalId(ZenohId(found.zid), found.eid), found.sn)


def timestamp_stack_of(found: WireTimestampStack | None) -> TimestampStack | None:
    """The stamps of a message for programs; a stamp that does not parse is given as bytes."""
    if found is None or not found.points & 0b111:
        return None
    records: list[TimestampStackRecord] = []
    for record in found.records:
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
    return TimestampStack(TimestampInstrumentation(found.points), tuple(records))
