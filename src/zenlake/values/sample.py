"""What a subscriber receives: a key, a value, and what is known about them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, final

from zenlake.clock import Timestamp, ZenohId
from zenlake.errors import LocalError
from zenlake.values.encoding import Encoding
from zenlake.values.qos import (
    DEFAULT_QOS,
    CongestionControl,
    Priority,
    QoS,
    Reliability,
    SampleKind,
)
from zenlake.values.timestamp_stack import TimestampStack
from zenlake.values.zbytes import ZBytes

if TYPE_CHECKING:
    from zenlake.keys import KeyExpr

__all__ = ["EntityGlobalId", "Sample", "SourceInfo"]

_MAX_U32: Final = (1 << 32) - 1
_ZENOH_BYTES: Final = Encoding.from_wire(0)


@final
class EntityGlobalId:
    """A publisher, a subscriber or another entity: its node, and its number there."""

    __slots__ = ("_eid", "_zid")

    def __init__(self, zid: ZenohId, eid: int) -> None:
        if not 0 <= eid <= _MAX_U32:
            raise LocalError(f"entity number {eid} does not fit 32 bits; give 0 to {_MAX_U32}")
        self._zid: ZenohId = zid
        self._eid: int = eid

    @property
    def zid(self) -> ZenohId:
        """The node the entity lives on."""
        return self._zid

    @property
    def eid(self) -> int:
        """Its number on that node."""
        return self._eid

    def __repr__(self) -> str:
        return f"EntityGlobalId({self._zid!r}, {self._eid})"

    def __str__(self) -> str:
        return f"{self._zid}/{self._eid}"

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, EntityGlobalId)
            and self._eid == other._eid
            and self._zid == other._zid
        )

    def __hash__(self) -> int:
        return hash((self._zid, self._eid))

    def __reduce__(self) -> tuple[type[EntityGlobalId], tuple[ZenohId, int]]:
        return EntityGlobalId, (self._zid, self._eid)


@final
class SourceInfo:
    """Who published a sample, and which of theirs it is."""

    __slots__ = ("_source_id", "_source_sn")

    def __init__(self, source_id: EntityGlobalId, source_sn: int) -> None:
        if not 0 <= source_sn <= _MAX_U32:
            raise LocalError(
                f"sequence number {source_sn} does not fit 32 bits; give 0 to {_MAX_U32}"
            )
        self._source_id: EntityGlobalId = source_id
        self._source_sn: int = source_sn

    @property
    def source_id(self) -> EntityGlobalId:
        """The entity that published it."""
        return self._source_id

    @property
    def source_sn(self) -> int:
        """Its place among what that entity published."""
        return self._source_sn

    def __repr__(self) -> str:
        return f"SourceInfo({self._source_id!r}, {self._source_sn})"

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, SourceInfo)
            and self._source_sn == other._source_sn
            and self._source_id == other._source_id
        )

    def __hash__(self) -> int:
        return hash((self._source_id, self._source_sn))

    def __reduce__(self) -> tuple[type[SourceInfo], tuple[EntityGlobalId, int]]:
        return SourceInfo, (self._source_id, self._source_sn)


@final
class Sample:
    """A value that was published under a key, or the news that it was removed."""

    __slots__ = (
        "_attachment",
        "_encoding",
        "_key_expr",
        "_kind",
        "_payload",
        "_qos",
        "_reliability",
        "_source_info",
        "_timestamp",
        "_timestamp_stack",
    )

    def __init__(
        self,
        key_expr: KeyExpr,
        payload: ZBytes,
        kind: SampleKind = SampleKind.PUT,
        encoding: Encoding = _ZENOH_BYTES,
        timestamp: Timestamp | None = None,
        qos: QoS = DEFAULT_QOS,
        attachment: ZBytes | None = None,
        source_info: SourceInfo | None = None,
        timestamp_stack: TimestampStack | None = None,
        reliability: Reliability = Reliability.RELIABLE,
    ) -> None:
        self._key_expr: KeyExpr = key_expr
        self._payload: ZBytes = payload
        self._kind: SampleKind = kind
        self._encoding: Encoding = encoding
        self._timestamp: Timestamp | None = timestamp
        self._qos: QoS = qos
        self._attachment: ZBytes | None = attachment
        self._source_info: SourceInfo | None = source_info
        self._timestamp_stack: TimestampStack | None = timestamp_stack
        self._reliability: Reliability = reliability

    @property
    def key_expr(self) -> KeyExpr:
        """The key it was published under."""
        return self._key_expr

    @property
    def payload(self) -> ZBytes:
        """The value; empty when it was removed."""
        return self._payload

    @property
    def kind(self) -> SampleKind:
        """Whether the value was put or deleted."""
        return self._kind

    @property
    def encoding(self) -> Encoding:
        """What the payload is."""
        return self._encoding

    @property
    def timestamp(self) -> Timestamp | None:
        """When it was published, if its publisher or a router on the way said so."""
        return self._timestamp

    @property
    def qos(self) -> QoS:
        """How it was treated on the way."""
        return self._qos

    @property
    def congestion_control(self) -> CongestionControl:
        """What would have happened to it when a queue was full."""
        return self._qos.congestion_control

    @property
    def priority(self) -> Priority:
        """How urgent it was."""
        return self._qos.priority

    @property
    def express(self) -> bool:
        """Whether it was sent at once instead of waiting for company."""
        return self._qos.express

    @property
    def reliability(self) -> Reliability:
        """Whether the transport repeated what was lost."""
        return self._reliability

    @property
    def attachment(self) -> ZBytes | None:
        """What the publisher added beside the value."""
        return self._attachment

    @property
    def source_info(self) -> SourceInfo | None:
        """Who published it, if they said so."""
        return self._source_info

    @property
    def timestamp_stack(self) -> TimestampStack | None:
        """Times taken along its way, if the publisher asked for them."""
        return self._timestamp_stack

    def _fields(
        self,
    ) -> tuple[
        KeyExpr,
        ZBytes,
        SampleKind,
        Encoding,
        Timestamp | None,
        QoS,
        ZBytes | None,
        SourceInfo | None,
        TimestampStack | None,
        Reliability,
    ]:
        return (
            self._key_expr,
            self._payload,
            self._kind,
            self._encoding,
            self._timestamp,
            self._qos,
            self._attachment,
            self._source_info,
            self._timestamp_stack,
            self._reliability,
        )

    def __repr__(self) -> str:
        text = f"{self._kind.name} {self._key_expr} {self._payload!r} {self._encoding}"
        if self._timestamp is not None:
            text += f" {self._timestamp}"
        if self._attachment is not None:
            text += f" attachment={self._attachment!r}"
        if self._source_info is not None:
            text += f" source={self._source_info.source_id}#{self._source_info.source_sn}"
        return f"<Sample {text}>"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sample) and self._fields() == other._fields()

    def __hash__(self) -> int:
        return hash(self._fields())

    def __reduce__(self) -> tuple[type[Sample], tuple[object, ...]]:
        return Sample, self._fields()
