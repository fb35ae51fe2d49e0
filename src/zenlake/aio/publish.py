"""Publishers: a key that is published on again and again."""

from __future__ import annotations

from typing import NoReturn

from zenlake.aio.core import AwaitingCore
from zenlake.aio.entity import Declared, Declaring, Given
from zenlake.aio.matching import MatchingListener, watch
from zenlake.api.entity import check_declared
from zenlake.api.matching import MatchingStatus
from zenlake.api.options import IntoEncoding, closed_error, payload_bytes
from zenlake.api.outcome import PutOutcome
from zenlake.api.publish import Publisher as SyncPublisher
from zenlake.clock import Timestamp
from zenlake.engine.tasks import wait_for_local_room, would_block
from zenlake.keys import KeyExpr
from zenlake.values import (
    CongestionControl,
    Encoding,
    EntityGlobalId,
    IntoZBytes,
    Priority,
    Reliability,
    SourceInfo,
    TimestampInstrumentation,
)

__all__ = ["Publisher"]


class Publisher(Declared[SyncPublisher]):
    """A declared publication: `put` is as cheap as it gets."""

    def __init__(self, session: AwaitingCore, inner: SyncPublisher) -> None:
        """Made by `Session.declare_publisher`."""
        super().__init__(session, inner)
        self._publication = inner.publication
        self._builder = inner.builder
        self._runtime = session.runtime
        self._sending = session.sending

    @property
    def id(self) -> EntityGlobalId:
        """Its id, which no other entity has."""
        return self._inner.id

    @property
    def key_expr(self) -> KeyExpr:
        """What it publishes on."""
        return self._inner.key_expr

    @property
    def encoding(self) -> Encoding:
        """What its payloads are, unless `put` says otherwise."""
        return self._inner.encoding

    @property
    def congestion_control(self) -> CongestionControl:
        """What happens when the queue towards a neighbour is full."""
        return self._inner.congestion_control

    @property
    def priority(self) -> Priority:
        """How urgent its samples are."""
        return self._inner.priority

    @property
    def reliability(self) -> Reliability:
        """Whether lost samples are repeated."""
        return self._inner.reliability

    @property
    def matching_status(self) -> MatchingStatus:
        """Whether it has a matching subscriber now."""
        return self._inner.matching_status

    def _refuse(self) -> NoReturn:
        check_declared(self._inner)
        raise closed_error()

    async def put(
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
        """Publish a value; waits while the queue towards a neighbour is full.

        Parameters as of `zenlake.Publisher.put`.
        """
        if self._inner.gone or self._runtime.closed:
            self._refuse()
        publication = self._publication
        share = self._sending.share
        if (
            encoding is None
            and attachment is None
            and timestamp is None
            and source_info is None
            and timestamp_instrumentation is None
            and not self._builder.stamped
            and share.left > 1
            and not would_block(publication)
        ):
            share.left -= 1
            publication.put(payload if type(payload) is bytes else payload_bytes(payload))
            if publication.locals:
                await wait_for_local_room(publication)
            return
        push = self._builder.put(
            publication,
            payload,
            encoding,
            attachment,
            timestamp,
            timestamp_instrumentation,
            source_info,
        )
        await self._sending.send(publication, push)

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
        """Publish a value without waiting, and say what became of it; not awaited.

        Parameters as of `zenlake.Publisher.try_put`.
        """
        return self._inner.try_put(
            payload,
            encoding=encoding,
            attachment=attachment,
            timestamp=timestamp,
            timestamp_instrumentation=timestamp_instrumentation,
            source_info=source_info,
        )

    async def delete(
        self,
        /,
        *,
        attachment: IntoZBytes | None = None,
        timestamp: Timestamp | None = None,
        timestamp_instrumentation: TimestampInstrumentation | None = None,
        source_info: SourceInfo | None = None,
    ) -> None:
        """Publish that the value is removed.

        Parameters as of `zenlake.Publisher.delete`.
        """
        if self._inner.gone or self._runtime.closed:
            self._refuse()
        push = self._builder.delete(
            self._publication, attachment, timestamp, timestamp_instrumentation, source_info
        )
        await self._sending.send(self._publication, push)

    def declare_matching_listener(
        self, /, handler: Given[MatchingStatus] = None
    ) -> Declaring[MatchingListener]:
        """Be told when the first subscriber comes and when the last one leaves.

        Parameters as of `zenlake.Publisher.declare_matching_listener`.
        """
        check_declared(self._inner)
        return watch(self._session, self._publication, handler)
