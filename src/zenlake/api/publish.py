"""Publishers: a key that is published on again and again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, NoReturn, final, overload

from zenlake.api.core import SessionCore
from zenlake.api.entity import Beside, Called, Declared, H, Queued, entity_id, forgotten
from zenlake.api.matching import MatchingListener, MatchingStatus, watch_matching
from zenlake.api.options import (
    IntoEncoding,
    closed_error,
    payload_bytes,
)
from zenlake.api.outcome import PutOutcome, attempt
from zenlake.api.push import PushBuilder
from zenlake.clock import Timestamp
from zenlake.keys import KeyExpr
from zenlake.node.entities import Publication
from zenlake.values import (
    CongestionControl,
    Encoding,
    EntityGlobalId,
    IntoZBytes,
    Priority,
    QoS,
    Reliability,
    SourceInfo,
    TimestampInstrumentation,
)
from zenlake.wire.codec_network import Push

if TYPE_CHECKING:
    from zenlake.engine.handlers import Handler
    from zenlake.node.programs.local import Local


__all__ = ["Publisher"]


@final
class Publisher(Declared):
    """A declared publication: `put` is as cheap as it gets."""

    WHAT: ClassVar[str] = "publisher"

    def __init__(self, session: SessionCore, publication: Publication, encoding: Encoding) -> None:
        """Made by `Session.declare_publisher`."""
        super().__init__(session)
        #: For the awaiting publisher around it.
        self.publication: Publication = publication
        self._encoding: Encoding = encoding
        self.builder: PushBuilder = session.builder

    @property
    def id(self) -> EntityGlobalId:
        """Its id, which no other entity has."""
        self._check()
        return entity_id(self._runtime.zid, self.publication.eid)

    @property
    def key_expr(self) -> KeyExpr:
        """What it publishes on."""
        self._check()
        return self.publication.key_expr

    @property
    def encoding(self) -> Encoding:
        """What its payloads are, unless `put` says otherwise."""
        self._check()
        return self._encoding

    @property
    def congestion_control(self) -> CongestionControl:
        """What happens when the queue towards a neighbour is full."""
        self._check()
        return QoS.from_byte(self.publication.qos).congestion_control

    @property
    def priority(self) -> Priority:
        """How urgent its samples are."""
        self._check()
        return QoS.from_byte(self.publication.qos).priority

    @property
    def reliability(self) -> Reliability:
        """Whether lost samples are repeated."""
        self._check()
        return Reliability.RELIABLE if self.publication.reliable else Reliability.BEST_EFFORT

    @property
    def matching_status(self) -> MatchingStatus:
        """Whether it has a matching subscriber now."""
        self._check()
        with self._runtime.locked() as node:
            return MatchingStatus(node.local.matching.of_publisher(self.publication))

    def __del__(self) -> None:
        """Undeclared with its last reference."""
        forgotten(self)

    def _refuse(self) -> NoReturn:
        self._check()
        raise closed_error()

    def put(
        self,
        /,
        payload: IntoZBytes,
        *,
        encoding: IntoEncoding | None = None,
        attachment: IntoZBytes | None = None,
        timestamp: Timestamp | None = None,
        timestamp_instrumentation: TimestampInstrumentation | None = None,
        source_info: SourceInfo | None = None,
    ) -> None:
        """Publish a value.

        Args:
            payload: The value: bytes, text, or anything else that `ZBytes` takes.
            encoding: What the payload is; that of the publisher if not said.
            attachment: Bytes that travel beside the payload.
            timestamp: When the value was made; if not said, as `timestamping` is configured.
            timestamp_instrumentation: At which points of its route times are taken.
            source_info: Which entity published it, and as its how-manieth sample.
        """
        if self.gone or self._runtime.closed:
            self._refuse()
        if (
            encoding is None
            and attachment is None
            and timestamp is None
            and source_info is None
            and timestamp_instrumentation is None
            and not self.builder.stamped
        ):
            self.publication.put(payload if type(payload) is bytes else payload_bytes(payload))
            return
        self.publication.publish(
            self._put(
                payload, encoding, attachment, timestamp, timestamp_instrumentation, source_info
            )
        )

    def try_put(
        self,
        /,
        payload: IntoZBytes,
        *,
        encoding: IntoEncoding | None = None,
        attachment: IntoZBytes | None = None,
        timestamp: Timestamp | None = None,
        timestamp_instrumentation: TimestampInstrumentation | None = None,
        source_info: SourceInfo | None = None,
    ) -> PutOutcome:
        """Publish a value without waiting, and say what became of it.

        Args:
            payload: The value: bytes, text, or anything else that `ZBytes` takes.
            encoding: What the payload is; that of the publisher if not said.
            attachment: Bytes that travel beside the payload.
            timestamp: When the value was made; if not said, as `timestamping` is configured.
            timestamp_instrumentation: At which points of its route times are taken.
            source_info: Which entity published it, and as its how-manieth sample.
        """
        push = self._put(
            payload, encoding, attachment, timestamp, timestamp_instrumentation, source_info
        )
        return attempt(self.publication, push)

    def delete(
        self,
        /,
        *,
        attachment: IntoZBytes | None = None,
        timestamp: Timestamp | None = None,
        timestamp_instrumentation: TimestampInstrumentation | None = None,
        source_info: SourceInfo | None = None,
    ) -> None:
        """Publish that the value is removed.

        Args:
            attachment: Bytes that travel beside the payload.
            timestamp: When the value was made; if not said, as `timestamping` is configured.
            timestamp_instrumentation: At which points of its route times are taken.
            source_info: Which entity published it, and as its how-manieth sample.
        """
        self.publication.publish(
            self._delete(attachment, timestamp, timestamp_instrumentation, source_info)
        )

    # What is about to be sent; a blocking publisher and an awaiting one send it each in its way.

    def _put(
        self,
        payload: IntoZBytes,
        encoding: IntoEncoding | None,
        attachment: IntoZBytes | None,
        timestamp: Timestamp | None,
        instrumentation: TimestampInstrumentation | None,
        source_info: SourceInfo | None,
    ) -> Push:
        if self.gone or self._runtime.closed:
            self._refuse()
        return self.builder.put(
            self.publication,
            payload,
            encoding,
            attachment,
            timestamp,
            instrumentation,
            source_info,
        )

    def _delete(
        self,
        attachment: IntoZBytes | None,
        timestamp: Timestamp | None,
        instrumentation: TimestampInstrumentation | None,
        source_info: SourceInfo | None,
    ) -> Push:
        if self.gone or self._runtime.closed:
            self._refuse()
        return self.builder.delete(
            self.publication, attachment, timestamp, instrumentation, source_info
        )

    @overload
    def declare_matching_listener(
        self, /, handler: Queued[MatchingStatus] = None
    ) -> MatchingListener[Handler[MatchingStatus]]: ...
    @overload
    def declare_matching_listener(
        self, /, handler: Beside[MatchingStatus, H]
    ) -> MatchingListener[H]: ...
    @overload
    def declare_matching_listener(
        self, /, handler: Called[MatchingStatus]
    ) -> MatchingListener[None]: ...
    def declare_matching_listener(self, /, handler: object = None) -> MatchingListener[Any]:
        """Be told when the first subscriber comes and when the last one leaves.

        Args:
            handler: Where they go: a channel to take from (the default), a callback, or a pair of a
                callback and an object to reach as `handler`.
        """
        self._check()
        return watch_matching(self._session, self.publication, handler)

    def _withdraw(self, local: Local) -> None:
        local.unpublish(self.publication)

    def __repr__(self) -> str:
        """What it publishes on."""
        self._check()
        return f"<Publisher {self.publication.key}>"
