"""What is declared on a session knows of it; and publishing without a declaration.

Entities know this base class and not `Session`, which makes them. Other rooms of zenlake find the
running node here. It is compiled: a plain `put` is the hottest call of the API.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Unpack, cast

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
from zenlake.api.outcome import PutOutcome, attempt
from zenlake.api.push import PushBuilder
from zenlake.clock import Timestamp
from zenlake.engine.channel import Channel
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

if TYPE_CHECKING:
    from zenlake.api.call_options import (
        DeleteOptions,
        PublisherDeleteOptions,
        PutOptions,
        SendOptions,
    )

__all__ = ["OWN", "SessionCore", "delete_message", "open_runtime", "put_message"]

#: How many keys of undeclared publications are remembered with their route.
PUBLICATIONS: Final = 1024
#: The session's own entity number.
OWN: Final = 1


@mypyc_attr(allow_interpreted_subclasses=True)
class SessionCore:
    """The base of a session: its running node, and puts and deletes through it.

    `runtime`, `stamps`, `builder`, `kept` and `channels` are for other modules of zenlake, and no
    part of the API.
    """

    def __init__(self, runtime: Runtime, stamps: TimestampRecorder) -> None:
        """Through a running node."""
        self.runtime: Runtime = runtime
        self.stamps: TimestampRecorder = stamps
        self.builder: PushBuilder = PushBuilder(runtime, stamps)
        #: What lives on though the program forgot it: it has a callback.
        self.kept: set[object] = set()
        #: Channels that the node does not know of, and so does not end.
        self.channels: set[Channel] = set()
        #: Publications without a declaration, by key, and by key and options.
        self._plain: dict[IntoKeyExpr, Publication] = {}
        self._publications: dict[tuple[str, int, int, bytes, int], Publication] = {}

    def _publication(
        self, key_expr: IntoKeyExpr, qos: int, encoding: IntoEncoding | None, destination: int
    ) -> Publication:
        """Return the publication of a key, found once for many puts."""
        node = open_runtime(self).node
        id, schema = encoding_parts(encoding)
        text = str(KeyExpr.of(key_expr))
        publication = self._publications.get((text, qos, id, schema, destination))
        if publication is None:
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
        if self.runtime.closed:
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
            and not self.builder.stamped
        ):
            publication = self._plain.get(key_expr)
            if publication is None:
                publication = _plain_publication(self, key_expr)
            publication.put(payload if type(payload) is bytes else payload_bytes(payload))
            return
        qos = qos_byte(congestion_control, priority, express)
        publication = self._publication(key_expr, qos, encoding, locality(allowed_destination))
        push = self.builder.put(
            publication,
            payload,
            None,
            attachment,
            timestamp,
            timestamp_instrumentation,
            source_info,
        )
        publication.publish(push)

    def try_put(
        self, /, key_expr: IntoKeyExpr, payload: IntoZBytes, **options: Unpack[PutOptions]
    ) -> PutOutcome:
        """Publish a value under a key without waiting, and say what became of it.

        Parameters as of `zenlake.Session.put`.
        """
        publication, push = put_message(self, key_expr, payload, options)
        return attempt(publication, push)

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

        Parameters as of `zenlake.Session.put`.
        """
        qos = qos_byte(congestion_control, priority, express)
        publication = self._publication(key_expr, qos, None, locality(allowed_destination))
        push = self.builder.delete(
            publication, attachment, timestamp, timestamp_instrumentation, source_info
        )
        publication.publish(push)


def open_runtime(session: SessionCore) -> Runtime:
    """Return the running node of a session; a session that is closed has none."""
    runtime = session.runtime
    if runtime.closed:
        raise closed_error()
    return runtime


def put_message(
    session: SessionCore, key_expr: IntoKeyExpr, payload: IntoZBytes, options: PutOptions
) -> tuple[Publication, Push]:
    """Return the publication of a key and the message of a put; removes options that it used."""
    if not options:
        publication = _plain_publication(session, key_expr)
        return publication, session.builder.put(publication, payload)
    publication = _routed(session, key_expr, options.pop("encoding", None), options)
    beside = cast("PublisherDeleteOptions", options)
    return publication, session.builder.put(publication, payload, **beside)


def delete_message(
    session: SessionCore, key_expr: IntoKeyExpr, options: DeleteOptions
) -> tuple[Publication, Push]:
    """Return the publication of a key and the message of a delete; removes options that it used."""
    publication = _routed(session, key_expr, None, options)
    beside = cast("PublisherDeleteOptions", options)
    return publication, session.builder.delete(publication, **beside)


def _plain_publication(session: SessionCore, key_expr: IntoKeyExpr) -> Publication:
    """Return the publication of a key for puts without options, found by the key as it is given."""
    if session.runtime.closed:
        raise closed_error()
    publication = session._plain.get(key_expr)
    if publication is None:
        publication = session._publication(key_expr, 5, None, Locality.ANY.value)
        if len(session._plain) >= PUBLICATIONS:
            session._plain.clear()
        session._plain[key_expr] = publication
    return publication


def _routed(
    session: SessionCore, key_expr: IntoKeyExpr, encoding: IntoEncoding | None, options: SendOptions
) -> Publication:
    """Return the publication of a key; removes the options that say how its messages travel."""
    qos = qos_byte(
        options.pop("congestion_control", None),
        options.pop("priority", None),
        options.pop("express", None),
    )
    destination = locality(options.pop("allowed_destination", None))
    return session._publication(key_expr, qos, encoding, destination)
