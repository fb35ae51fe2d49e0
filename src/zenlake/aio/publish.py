"""Publishers: a key that is published on again and again."""

from __future__ import annotations

from typing import TYPE_CHECKING

from zenlake.aio.entity import Declared, Declaring, Given
from zenlake.aio.matching import MatchingListener, watch
from zenlake.api.matching import MatchingStatus
from zenlake.api.options import IntoEncoding, payload_bytes
from zenlake.api.publish import Publisher as SyncPublisher
from zenlake.api.publish import PutOutcome
from zenlake.clock import Timestamp
from zenlake.engine.tasks import YIELD, TimeSlice, publish, wait_for_local_room, would_block
from zenlake.keys import KeyExpr
from zenlake.node.entities import Publication
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
from zenlake.wire.codec_network import Push

if TYPE_CHECKING:
    from zenlake.aio.session import Session

__all__ = ["Publisher"]


class Sending:
    """Sends what a session publishes: waits for room, and lets other tasks run in between."""

    def __init__(self) -> None:
        """One for a session."""
        self.share = TimeSlice()

    async def send(self, publication: Publication, push: Push) -> None:
        """Publish anything."""
        await self.yield_to_loop()
        if would_block(publication):
            await publish(publication, push)
        else:
            publication.publish(push)
        if publication.locals:
            await wait_for_local_room(publication)

    async def yield_to_loop(self) -> None:
        """Let other tasks of the loop run, if this one has run long."""
        share = self.share
        share.left -= 1
        if share.left <= 0 and share.spent():
            await YIELD


class Publisher(Declared[SyncPublisher]):
    """A declared publication: `put` is as cheap as it gets."""

    def __init__(self, session: Session, inner: SyncPublisher) -> None:
        """Made by `Session.declare_publisher`."""
        super().__init__(session, inner)
        self._publication = inner._publication
        self._runtime = inner._runtime
        self._sending = session._sending

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
        inner = self._inner
        if inner._gone or self._runtime.closed:
            inner._refuse()
        publication = self._publication
        share = self._sending.share
        if (
            encoding is None
            and attachment is None
            and timestamp is None
            and source_info is None
            and timestamp_instrumentation is None
            and not inner._push.stamped
            and share.left > 1
            and not would_block(publication)
        ):
            share.left -= 1
            publication.put(payload if type(payload) is bytes else payload_bytes(payload))
            if publication.locals:
                await wait_for_local_room(publication)
            return
        push = inner._put(
            payload, encoding, attachment, timestamp, timestamp_instrumentation, source_info
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
        push = self._inner._delete(attachment, timestamp, timestamp_instrumentation, source_info)
        await self._sending.send(self._publication, push)

    def declare_matching_listener(
        self, /, handler: Given[MatchingStatus] = None
    ) -> Declaring[MatchingListener]:
        """Be told when the first subscriber comes and when the last one leaves.

        Parameters as of `zenlake.Publisher.declare_matching_listener`.
        """
        self._inner._check()
        return watch(self._session, self._publication, handler)
