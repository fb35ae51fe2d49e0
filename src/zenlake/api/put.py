"""Publishing without a declaration."""

from __future__ import annotations

from typing import Final

from mypy_extensions import mypyc_attr

from zenlake.api.options import (
    IntoEncoding,
    TimestampRecorder,
    closed_error,
    encoding_parts,
    locality,
    payload_bytes,
    qos_byte,
)
from zenlake.api.publish import PutOutcome, attempt
from zenlake.api.push import Published, PushBuilder
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

#: How many keys of undeclared publications are remembered with their route.
PUBLICATIONS: Final = 1024
#: The session's own entity number.
OWN: Final = 1


@mypyc_attr(allow_interpreted_subclasses=True)
class Putting:
    """The part of a session that puts and deletes."""

    def __init__(self, runtime: Runtime, stamps: TimestampRecorder) -> None:
        """Through a running node."""
        self._runtime: Runtime = runtime
        self._stamps: TimestampRecorder = stamps
        self._push: PushBuilder = PushBuilder(runtime, stamps)
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
        """The publication of a key, found once for many puts."""
        id, schema = encoding_parts(encoding)
        text = str(KeyExpr.of(key_expr))
        publication = self._publications.get((text, qos, id, schema, destination))
        if publication is None:
            node = self._open().node
            publication = node.local.publication(OWN, text, qos, True, id, schema, destination)
            if len(self._publications) >= PUBLICATIONS:
                self._publications.clear()
            self._publications[(text, qos, id, schema, destination)] = publication
        return publication

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
        """Publish a value under a key.

        Args:
            key_expr: A key expression, as text or as a `KeyExpr`.
            payload: The value: bytes, text, or anything else that `ZBytes` takes.
            encoding: What the payload is, such as `"application/json"`.
            congestion_control: What happens when the queue towards a neighbour is full; DROP if not
                said.
            priority: Which queue it waits in; DATA if not said.
            express: Whether it is sent at once, instead of in a batch with others.
            attachment: Bytes that travel beside the payload.
            timestamp: When the value was made; if not said, as `timestamping` is configured.
            timestamp_instrumentation: At which points of its route times are taken.
            allowed_destination: Whether it may reach subscribers here, elsewhere, or both.
            source_info: Which entity published it, and as its how-manieth sample.
        """
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
            and not self._push.stamped
        ):
            publication = self._plain.get(key_expr)
            if publication is None:
                publication = self._publication(key_expr, 5, None, Locality.ANY.value)
                if len(self._plain) >= PUBLICATIONS:
                    self._plain.clear()
                self._plain[key_expr] = publication
            publication.put(payload if type(payload) is bytes else payload_bytes(payload))
            return
        published = self._put(
            key_expr,
            payload,
            encoding,
            qos_byte(congestion_control, priority, express),
            attachment,
            timestamp,
            timestamp_instrumentation,
            locality(allowed_destination),
            source_info,
        )
        published.publication.publish(published.push)

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
        """Publish a value under a key without waiting, and say what became of it.

        Args:
            key_expr: A key expression, as text or as a `KeyExpr`.
            payload: The value: bytes, text, or anything else that `ZBytes` takes.
            encoding: What the payload is, such as `"application/json"`.
            congestion_control: What happens when the queue towards a neighbour is full; DROP if not
                said.
            priority: Which queue it waits in; DATA if not said.
            express: Whether it is sent at once, instead of in a batch with others.
            attachment: Bytes that travel beside the payload.
            timestamp: When the value was made; if not said, as `timestamping` is configured.
            timestamp_instrumentation: At which points of its route times are taken.
            allowed_destination: Whether it may reach subscribers here, elsewhere, or both.
            source_info: Which entity published it, and as its how-manieth sample.
        """
        published = self._put(
            key_expr,
            payload,
            encoding,
            qos_byte(congestion_control, priority, express),
            attachment,
            timestamp,
            timestamp_instrumentation,
            locality(allowed_destination),
            source_info,
        )
        return attempt(published.publication, published.push)

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
        """Publish that the value under a key is removed.

        Args:
            key_expr: A key expression, as text or as a `KeyExpr`.
            congestion_control: What happens when the queue towards a neighbour is full; DROP if not
                said.
            priority: Which queue it waits in; DATA if not said.
            express: Whether it is sent at once, instead of in a batch with others.
            attachment: Bytes that travel beside the payload.
            timestamp: When the value was made; if not said, as `timestamping` is configured.
            timestamp_instrumentation: At which points of its route times are taken.
            allowed_destination: Whether it may reach subscribers here, elsewhere, or both.
            source_info: Which entity published it, and as its how-manieth sample.
        """
        published = self._delete(
            key_expr,
            qos_byte(congestion_control, priority, express),
            attachment,
            timestamp,
            timestamp_instrumentation,
            locality(allowed_destination),
            source_info,
        )
        published.publication.publish(published.push)

    # What is about to be sent; a blocking session and an awaiting one send it each in its way.

    def _put(
        self,
        key_expr: IntoKeyExpr,
        payload: IntoZBytes,
        encoding: IntoEncoding | None,
        qos: int,
        attachment: IntoZBytes | None,
        timestamp: Timestamp | None,
        instrumentation: TimestampInstrumentation | None,
        destination: int,
        source_info: SourceInfo | None,
    ) -> Published:
        self._open()
        publication = self._publication(key_expr, qos, encoding, destination)
        push = self._push.put(
            publication, payload, None, attachment, timestamp, instrumentation, source_info
        )
        return Published(publication, push)

    def _delete(
        self,
        key_expr: IntoKeyExpr,
        qos: int,
        attachment: IntoZBytes | None,
        timestamp: Timestamp | None,
        instrumentation: TimestampInstrumentation | None,
        destination: int,
        source_info: SourceInfo | None,
    ) -> Published:
        self._open()
        publication = self._publication(key_expr, qos, None, destination)
        push = self._push.delete(publication, attachment, timestamp, instrumentation, source_info)
        return Published(publication, push)
