"""Queries as queryables see them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Unpack

from zenlake.aio.entity import Scoped
from zenlake.api.call_options import ReplyDelOptions, ReplyOptions, refuse_unknown
from zenlake.api.options import IntoEncoding
from zenlake.api.query import Query as SyncQuery
from zenlake.engine.tasks import wait_for_room
from zenlake.keys import IntoKeyExpr, KeyExpr, Parameters, Selector
from zenlake.values import (
    Encoding,
    IntoZBytes,
    ReplyKeyExpr,
    SourceInfo,
    TimestampStack,
    ZBytes,
)
from zenlake.values.qos import QOS_BLOCK, QOS_PRIORITY

if TYPE_CHECKING:
    from zenlake.aio.core import Sending
    from zenlake.engine.runtime import Runtime
    from zenlake.node.entities import IncomingQuery

__all__ = ["Query"]


class Query(Scoped):
    """A query that waits for its replies.

    The node that asked waits until it is finalised: by `drop`, by the end of an `async with` block,
    or when the program lets go of it.
    """

    __slots__ = ("__weakref__", "_inner", "_sending")

    def __init__(self, runtime: Runtime, sending: Sending, incoming: IncomingQuery) -> None:
        """Made for each query."""
        self._sending = sending
        self._inner = SyncQuery(runtime, incoming)

    @property
    def selector(self) -> Selector:
        """What is asked: key expression and parameters."""
        return self._inner.selector

    @property
    def key_expr(self) -> KeyExpr:
        """Which keys are asked for."""
        return self._inner.key_expr

    @property
    def parameters(self) -> Parameters:
        """The parameters of the query."""
        return self._inner.parameters

    @property
    def payload(self) -> ZBytes | None:
        """The value that came with the query."""
        return self._inner.payload

    @property
    def encoding(self) -> Encoding | None:
        """What that value is."""
        return self._inner.encoding

    @property
    def attachment(self) -> ZBytes | None:
        """What was added beside the query."""
        return self._inner.attachment

    @property
    def source_info(self) -> SourceInfo | None:
        """Who asked, if they said so."""
        return self._inner.source_info

    @property
    def timestamp_stack(self) -> TimestampStack | None:
        """Times taken along its route."""
        return self._inner.timestamp_stack

    def accepts_replies(self, /) -> ReplyKeyExpr:
        """Whether replies may be about keys that were not asked for."""
        return self._inner.accepts_replies()

    async def _room(self) -> bool:
        """Wait while the queue towards the querier is full; False if the reply is dropped."""
        await self._sending.yield_to_loop()
        incoming = self._inner.incoming
        query = incoming.branch.query
        priority = query.qos & QOS_PRIORITY
        outbox = query.source.outbox_for(priority, True)
        if outbox is None or incoming.done:
            return True
        blocking = 1 if query.qos & QOS_BLOCK else 0
        return await wait_for_room(outbox, priority, True, blocking, incoming.key)

    async def reply(
        self, /, key_expr: IntoKeyExpr, payload: IntoZBytes, **options: Unpack[ReplyOptions]
    ) -> None:
        """Reply with a value; it travels as urgently as the query did.

        Parameters as of `zenlake.Query.reply`.
        """
        refuse_unknown("reply", options, ReplyOptions.__optional_keys__)
        if await self._room():
            self._inner.reply(key_expr, payload, **options)

    async def reply_del(self, /, key_expr: IntoKeyExpr, **options: Unpack[ReplyDelOptions]) -> None:
        """Reply that a value is removed.

        Parameters as of `zenlake.Query.reply_del`.
        """
        refuse_unknown("reply_del", options, ReplyDelOptions.__optional_keys__)
        if await self._room():
            self._inner.reply_del(key_expr, **options)

    async def reply_err(
        self, /, payload: IntoZBytes, *, encoding: IntoEncoding | None = None
    ) -> None:
        """Reply with an error.

        Parameters as of `zenlake.Query.reply_err`.
        """
        if await self._room():
            self._inner.reply_err(payload, encoding=encoding)

    async def drop(self, /) -> None:
        """Finalise it: there will be no more replies from here."""
        self._inner.drop()

    async def __aexit__(self, /, *_error: object) -> None:
        """Finalise it."""
        self._inner.drop()

    def __del__(self) -> None:
        """Finalised with its last reference, by the loop."""
        inner = getattr(self, "_inner", None)
        if inner is not None and not inner.incoming.done and not inner.runtime.closed:
            inner.runtime.loop.soon(inner.drop)

    def __str__(self) -> str:
        """What is asked."""
        return str(self._inner)

    def __repr__(self) -> str:
        """What is asked."""
        return repr(self._inner)
