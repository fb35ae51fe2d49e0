"""Queriers, and the replies to queries."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Generator
from typing import TYPE_CHECKING, Any, Self, Unpack

from zenlake.aio.core import AwaitingCore
from zenlake.aio.entity import Given, Scoped, deliver, is_task, on_this_loop
from zenlake.aio.handler import Handler, iterate
from zenlake.aio.matching import Matched
from zenlake.api.call_options import GetOptions, LivelinessGetOptions, QuerierGetOptions
from zenlake.api.cancellation import (
    CancellationToken,
    cancel_with,
    only_query_of,
    refuse_cancelled,
)
from zenlake.api.querier import Querier as SyncQuerier
from zenlake.api.reply import Reply
from zenlake.engine.channel import Channel
from zenlake.values import ReplyKeyExpr

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Querier", "Replies"]


class Replies(Scoped, Handler[Reply]):
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

    async def __aexit__(self, /, *_error: object) -> None:
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
    get: Callable[..., object],
    given: Given[Reply],
    options: GetOptions | QuerierGetOptions | LivelinessGetOptions,
) -> Replies:
    """Send a query by `get`; a scope, and the program's own token, can end it."""
    token = options.get("cancellation_token")
    refuse_cancelled(token)
    own = CancellationToken()
    get(on_this_loop(given), **{**options, "cancellation_token": own})
    channel, is_callback = only_query_of(own)
    if token is not None:
        cancel_with(token, own.cancel, channel, is_callback)
    replies = Replies(session, own, channel, is_callback or is_task(given))
    if is_task(given):
        session.tasks.start(deliver(channel, given, "get"), replies)
    return replies


class Querier(Matched[SyncQuerier]):
    """A declared source of queries: neighbours know of it, so that they route them at once."""

    @property
    def accept_replies(self) -> ReplyKeyExpr:
        """Whether replies may be on keys outside of the query's key expression."""
        return self._inner.accept_replies

    def get(self, /, handler: Given[Reply] = None, **options: Unpack[QuerierGetOptions]) -> Replies:
        """Send a query; iterate over the replies.

        Parameters as of `zenlake.Querier.get`.
        """
        return ask(self._session, self._inner.get, handler, options)
