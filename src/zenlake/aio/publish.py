"""Publishers: a key that is published on again and again."""

from __future__ import annotations

from typing import NoReturn, Unpack

from zenlake.aio.core import AwaitingCore
from zenlake.aio.matching import Matched
from zenlake.api.call_options import PublisherDeleteOptions, PublisherPutOptions
from zenlake.api.entity import check_declared
from zenlake.api.options import closed_error, payload_bytes
from zenlake.api.outcome import PutOutcome
from zenlake.api.publish import Publisher as SyncPublisher
from zenlake.engine.tasks import wait_for_local_room, would_block
from zenlake.values import CongestionControl, Encoding, IntoZBytes, Priority, Reliability

__all__ = ["Publisher"]


class Publisher(Matched[SyncPublisher]):
    """A declared publication: `put` is as cheap as it gets."""

    def __init__(self, session: AwaitingCore, inner: SyncPublisher) -> None:
        """Made by `Session.declare_publisher`."""
        super().__init__(session, inner)
        self._publication = inner.publication
        self._builder = inner.builder
        self._runtime = session.runtime
        self._sending = session.sending

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

    def _refuse(self) -> NoReturn:
        check_declared(self._inner)
        raise closed_error()

    async def put(self, /, payload: IntoZBytes, **options: Unpack[PublisherPutOptions]) -> None:
        """Publish a value; waits while the queue towards a neighbour is full.

        Parameters as of `zenlake.Publisher.put`.
        """
        if self._inner.gone or self._runtime.closed:
            self._refuse()
        publication = self._publication
        share = self._sending.share
        if (
            not options
            and not self._builder.stamped
            and share.left > 1
            and not would_block(publication)
        ):
            share.left -= 1
            publication.put(payload if type(payload) is bytes else payload_bytes(payload))
            if publication.locals:
                await wait_for_local_room(publication)
            return
        await self._sending.send(publication, self._builder.put(publication, payload, **options))

    def try_put(self, /, payload: IntoZBytes, **options: Unpack[PublisherPutOptions]) -> PutOutcome:
        """Publish a value without waiting, and say what became of it; not awaited.

        Parameters as of `zenlake.Publisher.try_put`.
        """
        return self._inner.try_put(payload, **options)

    async def delete(self, /, **options: Unpack[PublisherDeleteOptions]) -> None:
        """Publish that the value is removed.

        Parameters as of `zenlake.Publisher.delete`.
        """
        if self._inner.gone or self._runtime.closed:
            self._refuse()
        publication = self._publication
        await self._sending.send(publication, self._builder.delete(publication, **options))
