"""Publishers: a key that is published on again and again."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Unpack, final

from mypy_extensions import mypyc_attr

from zenlake.api.core import SessionCore
from zenlake.api.entity import forgotten
from zenlake.api.matching import Matched
from zenlake.api.options import IntoEncoding, payload_bytes
from zenlake.api.outcome import PutOutcome, attempt
from zenlake.api.push import PushBuilder
from zenlake.clock import Timestamp
from zenlake.node.entities import Publication
from zenlake.values import (
    CongestionControl,
    Encoding,
    IntoZBytes,
    Priority,
    QoS,
    Reliability,
    SourceInfo,
    TimestampInstrumentation,
)

if TYPE_CHECKING:
    from zenlake.api.call_options import PublisherPutOptions

__all__ = ["AnyPublisher", "Publisher"]


@mypyc_attr(allow_interpreted_subclasses=True)
class AnyPublisher(Matched):
    """What all publishers have."""

    WHAT: ClassVar[str] = "publisher"

    def __init__(self, session: SessionCore, publication: Publication, encoding: Encoding) -> None:
        """`encoding`: of payloads, where a put does not say."""
        super().__init__(session, publication)
        #: For the awaiting publisher around it.
        self.publication: Publication = publication
        self._encoding: Encoding = encoding
        self.builder: PushBuilder = session.builder

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


@final
class Publisher(AnyPublisher):
    """A declared publication: `put` is as cheap as it gets."""

    def __del__(self) -> None:
        """Undeclared with its last reference."""
        forgotten(self)

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
            self._check_open()
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
        push = self.builder.put(
            self.publication,
            payload,
            encoding,
            attachment,
            timestamp,
            timestamp_instrumentation,
            source_info,
        )
        self.publication.publish(push)

    def try_put(self, /, payload: IntoZBytes, **options: Unpack[PublisherPutOptions]) -> PutOutcome:
        """Publish a value without waiting, and say what became of it.

        Parameters as of `zenlake.Publisher.put`.
        """
        self._check_open()
        if options:
            push = self.builder.put(self.publication, payload, **options)
        else:
            push = self.builder.put(self.publication, payload)
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

        Parameters as of `zenlake.Publisher.put`.
        """
        self._check_open()
        self.publication.publish(
            self.builder.delete(
                self.publication, attachment, timestamp, timestamp_instrumentation, source_info
            )
        )
