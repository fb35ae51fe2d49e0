"""Queriers, and the replies to queries."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Generator
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from zenlake.aio.core import AwaitingCore
from zenlake.aio.entity import Declared, Declaring, Given, deliver, is_task, on_this_loop
from zenlake.aio.handler import Handler, iterate
from zenlake.aio.matching import MatchingListener, watch
from zenlake.api.cancellation import (
    CancellationToken,
    cancel_with,
    only_query_of,
    refuse_cancelled,
)
from zenlake.api.entity import check_declared
from zenlake.api.matching import MatchingStatus
from zenlake.api.options import IntoEncoding
from zenlake.api.querier import Querier as SyncQuerier
from zenlake.api.reply import Reply
from zenlake.engine.channel import Channel
from zenlake.keys import KeyExpr
from zenlake.keys.parameters import IntoParameters
from zenlake.values import (
    EntityGlobalId,
    IntoZBytes,
    ReplyKeyExpr,
    SourceInfo,
    TimestampInstrumentation,
)

if TYPE_CHECKING:
    from collections.abc import Callable


__all__ = ["Querier", "Replies"]


class Replies(Handler[Reply]):
    """The replies to a query, as they come; iterating ends after the last.

    The query is sent at once. It ends with an `async with` block, or when the program lets go of
    its replies.
    """

    __slots__ = ("_kept", "_runtime", "_token")

    def __init__(
        self, session: AwaitingCore, token: CancellationToken, channel: Channel, kept: bool
    ):
        """`token` ends the query; `kept`: a callback is told, so that it ends by itself."""
        super().__init__(channel, "Reply")
        self._runtime = session.runtime
        self._token = token
        self._kept = kept

    def __await__(self) -> Generator[Any, None, Self]:
        """Itself: it is asked already."""
        return self
        yield

    def __aiter__(self) -> AsyncGenerator[Reply, None]:
        """All replies, until the last."""
        if self._kept:
            raise TypeError("a function is called with the replies: there is nothing to take")
        return iterate(self, self)

    async def __aenter__(self) -> Self:
        """Itself."""
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Ask no more."""
        self._token.cancel()

    def __del__(self) -> None:
        """Asked no more with its last reference."""
        token = getattr(self, "_token", None)
        if token is not None and not self._kept and not self._channel.ended:
            self._runtime.loop.soon(token.cancel)

    def __repr__(self) -> str:
        """Whether more may come."""
        return f"<Replies{' over' if self._channel.ended else ''}>"


def ask(
    session: AwaitingCore,
    given: Given[Reply],
    token: CancellationToken | None,
    asking: Callable[[Any, CancellationToken], object],
) -> Replies:
    """Send a query that a scope, and the program's own token, can end."""
    refuse_cancelled(token)
    own = CancellationToken()
    asking(on_this_loop(given), own)
    channel, is_callback = only_query_of(own)
    if token is not None:
        cancel_with(token, own.cancel, channel, is_callback)
    replies = Replies(session, own, channel, is_callback or is_task(given))
    if is_task(given):
        session.tasks.start(deliver(channel, given, "get"), replies)
    return replies


class Querier(Declared[SyncQuerier]):
    """A declared source of queries: neighbours know of it, so that they route them at once."""

    @property
    def id(self) -> EntityGlobalId:
        """Its id, which no other entity has."""
        return self._inner.id

    @property
    def key_expr(self) -> KeyExpr:
        """The key expression of its queries."""
        return self._inner.key_expr

    @property
    def accept_replies(self) -> ReplyKeyExpr:
        """Whether replies may be on keys outside of the query's key expression."""
        return self._inner.accept_replies

    @property
    def matching_status(self) -> MatchingStatus:
        """Whether it has a matching queryable now."""
        return self._inner.matching_status

    def get(
        self,
        /,
        handler: Given[Reply] = None,
        *,
        parameters: IntoParameters | None = None,
        payload: IntoZBytes | None = None,
        encoding: IntoEncoding | None = None,
        attachment: IntoZBytes | None = None,
        source_info: SourceInfo | None = None,
        cancellation_token: CancellationToken | None = None,
        timestamp_instrumentation: TimestampInstrumentation | None = None,
    ) -> Replies:
        """Send a query; iterate over the replies.

        Parameters as of `zenlake.Querier.get`.
        """

        def asking(handler: Any, token: CancellationToken) -> object:
            return self._inner.get(
                handler,
                parameters=parameters,
                payload=payload,
                encoding=encoding,
                attachment=attachment,
                source_info=source_info,
                cancellation_token=token,
                timestamp_instrumentation=timestamp_instrumentation,
            )

        return ask(self._session, handler, cancellation_token, asking)

    def declare_matching_listener(
        self, /, handler: Given[MatchingStatus] = None
    ) -> Declaring[MatchingListener]:
        """Listen to its matching status: the first queryable comes, the last one leaves.

        Parameters as of `zenlake.Querier.declare_matching_listener`.
        """
        check_declared(self._inner)
        return watch(self._session, self._inner.entity, handler)
