"""Liveliness: being alive under a key, and knowing who is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Unpack, overload

from zenlake.api.cancellation import CancellationToken, refuse_cancelled
from zenlake.api.core import SessionCore, open_runtime
from zenlake.api.entity import Beside, Called, Declared, H, Queued, forgotten, receiver_of
from zenlake.api.options import seconds
from zenlake.api.querier import watch
from zenlake.api.reply import Reply
from zenlake.api.subscribe import Subscriber
from zenlake.engine.handlers import ReplyQueue, TokenQueue
from zenlake.keys import IntoKeyExpr, KeyExpr
from zenlake.node.entities import Token
from zenlake.node.sample import Sample

if TYPE_CHECKING:
    from zenlake.api.call_options import LivelinessGetOptions
    from zenlake.engine.handlers import Handler
    from zenlake.node.programs.local import Local

__all__ = ["Liveliness", "LivelinessToken"]


class LivelinessToken(Declared):
    """A liveliness token: alive until it is undeclared or the session ends."""

    def __del__(self) -> None:
        """Undeclared with its last reference."""
        forgotten(self)

    WHAT: ClassVar[str] = "liveliness token"

    def __init__(self, session: SessionCore, entity: Token) -> None:
        """Made by `Liveliness.declare_token`."""
        super().__init__(session)
        self._entity: Token = entity

    def _withdraw(self, local: Local) -> None:
        local.liveliness.untoken(self._entity)

    def __repr__(self) -> str:
        """What it is alive under."""
        self._check()
        return f"<LivelinessToken {self._entity.key}>"


class Liveliness:
    """What a session can do about liveliness."""

    def __init__(self, session: SessionCore) -> None:
        """Made by `Session.liveliness`."""
        self._session: SessionCore = session

    def declare_token(self, /, key_expr: IntoKeyExpr) -> LivelinessToken:
        """Be alive under a key.

        Args:
            key_expr: A key expression, as text or as a `KeyExpr`.
        """
        key = KeyExpr.of(key_expr)
        with open_runtime(self._session).locked() as node:
            return LivelinessToken(self._session, node.local.liveliness.token(str(key)))

    @overload
    def get(
        self,
        /,
        key_expr: IntoKeyExpr,
        handler: Queued[Reply] = None,
        **options: Unpack[LivelinessGetOptions],
    ) -> Handler[Reply]: ...
    @overload
    def get(
        self,
        /,
        key_expr: IntoKeyExpr,
        handler: Beside[Reply, H],
        **options: Unpack[LivelinessGetOptions],
    ) -> H: ...
    @overload
    def get(
        self,
        /,
        key_expr: IntoKeyExpr,
        handler: Called[Reply],
        **options: Unpack[LivelinessGetOptions],
    ) -> None: ...
    def get(
        self,
        /,
        key_expr: IntoKeyExpr,
        handler: object = None,
        *,
        timeout: float | None = None,
        cancellation_token: CancellationToken | None = None,
    ) -> object:
        """Ask who is alive now.

        Args:
            key_expr: A key expression, as text or as a `KeyExpr`.
            handler: Where they go: a channel to take from (the default), a callback, or a pair of a
                callback and an object to reach as `handler`.
            timeout: How long replies may take, in seconds; if not said, as the configuration says.
            cancellation_token: Ends it before its time.
        """
        key = KeyExpr.of(key_expr)
        refuse_cancelled(cancellation_token)
        session = self._session
        runtime = open_runtime(session)
        patience = seconds(timeout, runtime.node.settings.query_timeout)
        receiver = receiver_of(session, handler, "Reply", key)
        sink = ReplyQueue(receiver.channel, Reply)
        with runtime.locked() as node:
            get = node.local.liveliness.get(str(key), sink, patience)
        watch(session, receiver, cancellation_token, lambda local: local.liveliness.cancel(get))
        return receiver.handler

    @overload
    def declare_subscriber(
        self,
        /,
        key_expr: IntoKeyExpr,
        handler: Queued[Sample] = None,
        *,
        history: bool | None = None,
    ) -> Subscriber[Handler[Sample]]: ...
    @overload
    def declare_subscriber(
        self,
        /,
        key_expr: IntoKeyExpr,
        handler: Beside[Sample, H],
        *,
        history: bool | None = None,
    ) -> Subscriber[H]: ...
    @overload
    def declare_subscriber(
        self, /, key_expr: IntoKeyExpr, handler: Called[Sample], *, history: bool | None = None
    ) -> Subscriber[None]: ...
    def declare_subscriber(
        self, /, key_expr: IntoKeyExpr, handler: object = None, *, history: bool | None = None
    ) -> Subscriber[Any]:
        """Be told who comes alive (PUT) and who dies (DELETE); with `history`, who is already.

        Args:
            key_expr: A key expression, as text or as a `KeyExpr`.
            handler: Where they go: a channel to take from (the default), a callback, or a pair of a
                callback and an object to reach as `handler`.
        """
        key = KeyExpr.of(key_expr)
        session = self._session
        runtime = open_runtime(session)
        receiver = receiver_of(session, handler, "Sample", key)
        with runtime.locked() as node:
            sink = TokenQueue(receiver.channel)
            entity = node.local.liveliness.watch(str(key), sink, bool(history))
            return Subscriber(session, receiver, entity)

    def __repr__(self) -> str:
        """Whose it is."""
        return f"<Liveliness of {self._session!r}>"
