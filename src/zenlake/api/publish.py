"""Publishers: a key that is published on again and again."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn, final, overload

from zenlake.api.entity import Beside, Called, Declared, H, Queued, entity_id, forgotten
from zenlake.api.matching import MatchingListener, MatchingStatus
from zenlake.api.options import (
    IntoEncoding,
    closed_error,
    payload_bytes,
)
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
    from zenlake.api.session import Session
    from zenlake.engine.handlers import Handler
    from zenlake.node.programs.local import Local


__all__ = ["Publisher", "PutOutcome"]


class PutOutcome(Enum):
    """What became of a sample that was tried; true if it was queued wherever it goes."""

    QUEUED = "queued"
    NOBODY_LISTENS = "nobody listens"
    QUEUE_FULL = "the queue towards a neighbour, or a channel of this session, is full"

    @property
    def reason(self) -> str:
        """Why, in words."""
        return self.value

    def __bool__(self) -> bool:
        """Whether it was queued."""
        return self is PutOutcome.QUEUED


def attempt(publication: Publication, push: Push) -> PutOutcome:
    """Publish without waiting."""
    if publication.congestion:
        # What may wait is sent under the same byte by a twin that does not.
        patient = publication
        publication = Publication(
            patient.node,
            patient.routes,
            patient.eid,
            patient.key,
            patient.qos,
            patient.reliable,
            patient.encoding,
            patient.schema,
            patient.destination,
        )
        publication.congestion = 0
        publication.impatient = True
    if not publication.publish(push):
        return PutOutcome.QUEUE_FULL
    if not publication.remotes and not publication.locals:
        return PutOutcome.NOBODY_LISTENS
    return PutOutcome.QUEUED


@final
class Publisher(Declared):
    """A declared publication: `put` is as cheap as it gets."""

    WHAT: ClassVar[str] = "publisher"

    def __init__(self, session: Session, publication: Publication, encoding: Encoding) -> None:
        """Made by `Session.declare_publisher`."""
        super().__init__(session)
        self._publication: Publication = publication
        self._encoding: Encoding = encoding
        self._push: PushBuilder = session._push

    @property
    def id(self) -> EntityGlobalId:
        """Its id, which no other entity has."""
        self._check()
        return entity_id(self._runtime.zid, self._publication.eid)

    @property
    def key_expr(self) -> KeyExpr:
        """What it publishes on."""
        self._check()
        return self._publication.key_expr

    @property
    def encoding(self) -> Encoding:
        """What its payloads are, unless `put` says otherwise."""
        self._check()
        return self._encoding

    @property
    def congestion_control(self) -> CongestionControl:
        """What happens when the queue towards a neighbour is full."""
        self._check()
        return QoS.from_byte(self._publication.qos).congestion_control

    @property
    def priority(self) -> Priority:
        """How urgent its samples are."""
        self._check()
        return QoS.from_byte(self._publication.qos).priority

    @property
    def reliability(self) -> Reliability:
        """Whether lost samples are repeated."""
        self._check()
        return Reliability.RELIABLE if self._publication.reliable else Reliability.BEST_EFFORT

    @property
    def matching_status(self) -> MatchingStatus:
        """Whether it has a matching subscriber now."""
        self._check()
        with self._runtime.locked() as node:
            return MatchingStatus(node.local.matching.of_publisher(self._publication))

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
        if self._gone or self._runtime.closed:
            self._refuse()
        if (
            encoding is None
            and attachment is None
            and timestamp is None
            and source_info is None
            and timestamp_instrumentation is None
            and not self._push.stamped
        ):
            self._publication.put(payload if type(payload) is bytes else payload_bytes(payload))
            return
        self._publication.publish(
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
        return attempt(self._publication, push)

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
        self._publication.publish(
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
        if self._gone or self._runtime.closed:
            self._refuse()
        return self._push.put(
            self._publication,
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
        if self._gone or self._runtime.closed:
            self._refuse()
        return self._push.delete(
            self._publication, attachment, timestamp, instrumentation, source_info
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
        return MatchingListener._watch(self._session, self._publication, handler)

    def _withdraw(self, local: Local) -> None:
        local.unpublish(self._publication)

    def __repr__(self) -> str:
        """What it publishes on."""
        self._check()
        return f"<Publisher {self._publication.key}>"
