"""Liveliness: being alive under a key, and knowing who is."""

from __future__ import annotations

from functools import partial
from typing import Unpack

from zenlake.aio.core import AwaitingCore
from zenlake.aio.entity import Declared, Declaring, Given, on_this_loop
from zenlake.aio.querier import Replies, ask
from zenlake.aio.subscribe import Subscriber
from zenlake.api.call_options import LivelinessGetOptions
from zenlake.api.liveliness import Liveliness as SyncLiveliness
from zenlake.api.liveliness import LivelinessToken as SyncLivelinessToken
from zenlake.api.reply import Reply
from zenlake.keys import IntoKeyExpr
from zenlake.node.sample import Sample

__all__ = ["Liveliness", "LivelinessToken"]


class LivelinessToken(Declared[SyncLivelinessToken]):
    """A liveliness token: alive until it is undeclared or the session ends."""


class Liveliness:
    """What a session can do about liveliness."""

    def __init__(self, session: AwaitingCore) -> None:
        """Made by `Session.liveliness`."""
        self._session = session
        self._inner = SyncLiveliness(session.core)

    def declare_token(self, /, key_expr: IntoKeyExpr) -> Declaring[LivelinessToken]:
        """Be alive under a key.

        Parameters as of `zenlake.Liveliness.declare_token`.
        """

        async def declare() -> LivelinessToken:
            return LivelinessToken(self._session, self._inner.declare_token(key_expr))

        return Declaring(declare())

    def declare_subscriber(
        self,
        /,
        key_expr: IntoKeyExpr,
        handler: Given[Sample] = None,
        *,
        history: bool | None = None,
    ) -> Declaring[Subscriber]:
        """Be told who comes alive (PUT) and who dies (DELETE); with `history`, who is already.

        Parameters as of `zenlake.Liveliness.declare_subscriber`.
        """

        async def declare() -> Subscriber:
            inner = self._inner.declare_subscriber(key_expr, on_this_loop(handler), history=history)
            return Subscriber(self._session, inner, handler)

        return Declaring(declare())

    def get(
        self,
        /,
        key_expr: IntoKeyExpr,
        handler: Given[Reply] = None,
        **options: Unpack[LivelinessGetOptions],
    ) -> Replies:
        """Ask who is alive now.

        Parameters as of `zenlake.Liveliness.get`.
        """
        return ask(self._session, partial(self._inner.get, key_expr), handler, options)

    def __repr__(self) -> str:
        """Whose it is."""
        return repr(self._inner)
