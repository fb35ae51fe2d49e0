"""Publishing without a declaration."""

from __future__ import annotations

from typing import Final

from mypy_extensions import mypyc_attr

from zenlake.api.options import (
    IntoEncoding,
    Stamps,
    closed_error,
    delete_message,
    encoding_parts,
    locality,
    payload_bytes,
    put_message,
    qos_byte,
)
from zenlake.api.publish import PutOutcome, attempt
from zenlake.clock import Timestamp
from zenlake.engine.runtime import Runtime
from zenlake.keys import IntoKeyExpr, KeyExpr
from zenlake.node.entities import Publication
from zenlake.values import (
    CongestionControl,
    IntoZBytes,
    Locality,
    Priority,
    SourceInfo,
    TimestampInstrumentation,
)
from zenlake.wire.codec_network import Push

#: How many keys of undeclared publications are remembered with their way.
PUBLICATIONS: Final = 1024
#: The session's own entity number.
OWN: Final = 1


@mypyc_attr(allow_interpreted_subclasses=True)
class Putting:
    """The part of a session that puts and deletes."""

    def __init__(self, runtime: Runtime, stamps: Stamps) -> None:
        """Through a running node."""
        self._runtime: Runtime = runtime
        self._stamps: Stamps = stamps
        self._stamped: bool = runtime.node.settings.timestamping
        #: Publications without a declaration, by key, and by key and options.
        self._plain: dict[IntoKeyExpr, Publication] = {}
        self._publications: dict[tuple[str, int, int, bytes, int], Publication] = {}

    def _open(self) -> Runtime:
        runtime = self._runtime
        if runtime.closed:
            raise closed_error()
        return runtime

    def _publication(
        self, key_expr: IntoKeyExpr, qos: int, encoding: IntoEncoding | None, destination: int
    ) -> Publication:
        """The way of a key, found once for many puts."""
        id, schema = encoding_parts(encoding)
        text = str(KeyExpr.of(key_expr))
        found = self._publications.get((text, qos, id, schema, destination))
        if found is None:
            node = self._open().node
            found = node.local.publication(OWN, text, qos, True, id, schema, destination)
            if len(self._publications) >= PUBLICATIONS:
                self._publications.clear()
            self._publications[(text, qos, id, schema, destination)] = found
        return found

    def put(
        self,
        /,
        key_expr: IntoKeyExpr,
        payload: IntoZBytes,
        *,
        encoding: IntoEncoding | None = None,
        congestion_control: CongestionControl | None = None,
        priority: Priority | None = None,
        express: bool | None = None,
        attachment: IntoZBytes | None = None,
        timestamp: Timestamp | None = None,
        timestamp_instrumentation: TimestampInstrumentation | None = None,
        allowed_destination: Locality | None = None,
        source_info: SourceInfo | None = None,
    ) -> None:
        """Publish a value under a key."""
        if self._runtime.closed:
            raise closed_error()
        if (
            encoding is None
            and congestion_control is None
            and priority is None
            and express is None
            and attachment is None
            and timestamp is None
            and timestamp_instrumentation is None
            and allowed_destination is None
            and source_info is None
            and not self._stamped
        ):
            publication = self._plain.get(key_expr)
            if publication is None:
                publication = self._publication(key_expr, 5, None, Locality.ANY.value)
                if len(self._plain) >= PUBLICATIONS:
                    self._plain.clear()
                self._plain[key_expr] = publication
            publication.put(payload if type(payload) is bytes else payload_bytes(payload))
            return
        qos = qos_byte(congestion_control, priority, express)
        publication = self._publication(key_expr, qos, encoding, locality(allowed_destination))
        publication.publish(
            self._put_message(
                publication, payload, attachment, timestamp, timestamp_instrumentation, source_info
            )
        )

    def try_put(
        self,
        /,
        key_expr: IntoKeyExpr,
        payload: IntoZBytes,
        *,
        encoding: IntoEncoding | None = None,
        congestion_control: CongestionControl | None = None,
        priority: Priority | None = None,
        express: bool | None = None,
        attachment: IntoZBytes | None = None,
        timestamp: Timestamp | None = None,
        timestamp_instrumentation: TimestampInstrumentation | None = None,
        allowed_destination: Locality | None = None,
        source_info: SourceInfo | None = None,
    ) -> PutOutcome:
        """Publish a value under a key without waiting, and say what became of it."""
        self._open()
        qos = qos_byte(congestion_control, priority, express)
        publication = self._publication(key_expr, qos, encoding, locality(allowed_destination))
        push = self._put_message(
            publication, payload, attachment, timestamp, timestamp_instrumentation, source_info
        )
        return attempt(publication, push)

    def _put_message(
        self,
        publication: Publication,
        payload: IntoZBytes,
        attachment: IntoZBytes | None,
        timestamp: Timestamp | None,
        instrumentation: TimestampInstrumentation | None,
        source_info: SourceInfo | None,
    ) -> Push:
        if self._stamped and timestamp is None:
            timestamp = self._runtime.new_timestamp()
        return put_message(
            payload_bytes(payload),
            publication.qos,
            publication.encoding,
            publication.schema,
            attachment,
            timestamp,
            self._stamps.begin(instrumentation),
            source_info,
        )

    def delete(
        self,
        /,
        key_expr: IntoKeyExpr,
        *,
        congestion_control: CongestionControl | None = None,
        priority: Priority | None = None,
        express: bool | None = None,
        attachment: IntoZBytes | None = None,
        timestamp: Timestamp | None = None,
        timestamp_instrumentation: TimestampInstrumentation | None = None,
        allowed_destination: Locality | None = None,
        source_info: SourceInfo | None = None,
    ) -> None:
        """Publish that the value under a key is removed."""
        runtime = self._open()
        qos = qos_byte(congestion_control, priority, express)
        publication = self._publication(key_expr, qos, None, locality(allowed_destination))
        if self._stamped and timestamp is None:
            timestamp = runtime.new_timestamp()
        stack = self._stamps.begin(timestamp_instrumentation)
        publication.publish(
            delete_message(publication.qos, attachment, timestamp, stack, source_info)
        )
