"""Builds the Push of everything that programs publish; the only place that does.

Sessions, publishers and advanced publishers, blocking and awaiting, differ in how they wait, not in
what they put on the wire.
"""

from __future__ import annotations

from zenlake.api.options import (
    IntoEncoding,
    TimestampRecorder,
    encoding_parts,
    optional_bytes,
    payload_bytes,
    source_on_wire,
)
from zenlake.clock import Timestamp
from zenlake.engine.runtime import Runtime
from zenlake.node.entities import Publication
from zenlake.node.sample import wire_timestamp
from zenlake.values import IntoZBytes, SourceInfo, TimestampInstrumentation
from zenlake.wire.codec_network import Push
from zenlake.wire.codec_zenoh import Del, Put
from zenlake.wire.codec_zenoh import Timestamp as WireTimestamp

__all__ = ["PushBuilder"]


class PushBuilder:
    """Builds the messages of one session, stamped if its configuration wants that."""

    __slots__ = ("_runtime", "_stamps", "stamped")

    def __init__(self, runtime: Runtime, stamps: TimestampRecorder) -> None:
        """`stamps` takes times where messages ask for them."""
        self._runtime: Runtime = runtime
        self._stamps: TimestampRecorder = stamps
        #: Whether everything gets a timestamp: `timestamping/enabled`.
        self.stamped: bool = runtime.node.settings.timestamping

    def put(
        self,
        publication: Publication,
        payload: IntoZBytes,
        encoding: IntoEncoding | None = None,
        attachment: IntoZBytes | None = None,
        timestamp: Timestamp | None = None,
        timestamp_instrumentation: TimestampInstrumentation | None = None,
        source_info: SourceInfo | None = None,
    ) -> Push:
        """A value to publish; without an encoding it has that of its publication."""
        id, schema = publication.encoding, publication.schema
        if encoding is not None:
            id, schema = encoding_parts(encoding)
        body = Put(
            timestamp=self._timestamp(timestamp),
            encoding=id,
            schema=schema,
            source_info=source_on_wire(source_info),
            attachment=optional_bytes(attachment),
            payload=payload_bytes(payload),
        )
        return publication.message(body, self._stamps.begin(timestamp_instrumentation))

    def delete(
        self,
        publication: Publication,
        attachment: IntoZBytes | None = None,
        timestamp: Timestamp | None = None,
        timestamp_instrumentation: TimestampInstrumentation | None = None,
        source_info: SourceInfo | None = None,
    ) -> Push:
        """The removal of a value."""
        body = Del(
            timestamp=self._timestamp(timestamp),
            source_info=source_on_wire(source_info),
            attachment=optional_bytes(attachment),
        )
        return publication.message(body, self._stamps.begin(timestamp_instrumentation))

    def _timestamp(self, timestamp: Timestamp | None) -> WireTimestamp | None:
        if timestamp is None:
            if not self.stamped:
                return None
            timestamp = self._runtime.new_timestamp()
        return wire_timestamp(timestamp)
