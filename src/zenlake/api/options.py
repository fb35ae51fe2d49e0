"""Options as programs write them, turned into what the node takes."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from zenlake.errors import ZError
from zenlake.node.sample import wire_timestamp
from zenlake.values import (
    CongestionControl,
    Encoding,
    InterceptionPoint,
    IntoZBytes,
    Locality,
    Priority,
    QoS,
    SourceInfo,
    TimestampContext,
    TimestampInstrumentation,
    ZBytes,
)
from zenlake.wire.codec_network import TimestampRecord
from zenlake.wire.codec_network import TimestampStack as WireTimestampStack
from zenlake.wire.codec_zenoh import SourceInfo as WireSourceInfo
from zenlake.wire.cursor import Writer

if TYPE_CHECKING:
    from zenlake.engine.runtime import Runtime

log = logging.getLogger("zenlake")

IntoEncoding = Encoding | str
StampCallback = Callable[[TimestampContext], bytes]

#: A stamp in a form of its own has this bit.
_CUSTOM: Final = 0x80


def payload_bytes(payload: IntoZBytes) -> bytes:
    """The bytes of a payload; copied only if they are not `bytes` already."""
    if isinstance(payload, bytes):
        return payload
    if isinstance(payload, ZBytes):
        return payload.to_bytes()
    return ZBytes(payload).to_bytes()


def optional_bytes(payload: IntoZBytes | None) -> bytes | None:
    """The bytes of an attachment, if there is one."""
    return None if payload is None else payload_bytes(payload)


def qos_byte(
    congestion_control: CongestionControl | None,
    priority: Priority | None,
    express: bool | None,
    default: CongestionControl = CongestionControl.DROP,
) -> int:
    """The byte of the wire for what was asked."""
    if congestion_control is None and priority is None and not express:
        return 13 if default is CongestionControl.BLOCK else 5
    return QoS(
        Priority.DEFAULT if priority is None else priority,
        default if congestion_control is None else congestion_control,
        bool(express),
    ).byte


def encoding_parts(encoding: IntoEncoding | None) -> tuple[int, bytes]:
    """The id and the schema of an encoding."""
    if encoding is None:
        return 0, b""
    parsed = Encoding.of(encoding)
    return parsed.id, parsed.schema or b""


def locality(given: Locality | None) -> int:
    """Where it may go to, or come from: this session, others, or both."""
    return Locality.ANY.value if given is None else given.value


def seconds(timeout: float | None, default: float) -> float:
    """How long to wait."""
    if timeout is None:
        return default
    if timeout < 0:
        raise ValueError(f"negative timeout: {timeout} seconds; give 0 or more")
    return float(timeout)


def source_on_wire(source: SourceInfo | None) -> WireSourceInfo | None:
    """Who published it, for the wire."""
    if source is None:
        return None
    id = source.source_id
    return WireSourceInfo(zid=bytes(id.zid), eid=id.eid, sn=source.source_sn)


class TimestampRecorder:
    """Takes times where messages leave, pass and arrive, if they ask for it."""

    def __init__(
        self, runtime: Runtime, context: TimestampContext, callback: StampCallback | None
    ) -> None:
        """`callback` tells the time in a form of its own."""
        self._runtime = runtime
        self._context = context
        self._callback = callback
        runtime.node.take_time = self.record

    def begin(self, instrumentation: TimestampInstrumentation | None) -> WireTimestampStack | None:
        """The stack of a message that leaves."""
        if instrumentation is None:
            return None
        records: tuple[TimestampRecord, ...] = ()
        if instrumentation.is_instrumented(InterceptionPoint.SEND):
            records = (self._record(InterceptionPoint.SEND.value),)
        return WireTimestampStack(points=instrumentation.flags, records=records)

    def record(self, point: int) -> TimestampRecord | None:
        """The time at a point; None if the callback that tells it fails: nobody waits for that."""
        try:
            return self._record(point)
        except Exception:
            log.exception("the timestamp callback failed")
            return None

    def _record(self, point: int) -> TimestampRecord:
        callback = self._callback
        if callback is not None:
            return TimestampRecord(point=point | _CUSTOM, stamp=bytes(callback(self._context)))
        w = Writer()
        wire_timestamp(self._runtime.new_timestamp()).write(w)
        return TimestampRecord(point=point, stamp=b"".join(w.parts))


def closed_error() -> ZError:
    """What everything says on a session that is closed."""
    return ZError("session closed: open another with zenlake.open()")
