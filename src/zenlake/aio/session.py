"""Sessions: a program's place in the network."""

from __future__ import annotations

import warnings
from functools import partial
from typing import Any, Unpack

from zenlake.aio.core import AwaitingCore
from zenlake.aio.entity import Declared, Declaring, Given, Scoped, function_of, on_this_loop
from zenlake.aio.info import SessionInfo
from zenlake.aio.liveliness import Liveliness
from zenlake.aio.publish import Publisher
from zenlake.aio.querier import Querier, Replies, ask
from zenlake.aio.query import Query
from zenlake.aio.queryable import Queryable
from zenlake.aio.subscribe import Subscriber
from zenlake.api.acknowledge import Acknowledgement
from zenlake.api.call_options import (
    DeleteOptions,
    GetOptions,
    PublisherOptions,
    PutOptions,
    QuerierOptions,
    QueryableOptions,
    SubscriberOptions,
)
from zenlake.api.core import delete_message, open_runtime, put_message
from zenlake.api.options import IntoEncoding, StampCallback
from zenlake.api.outcome import PutOutcome
from zenlake.api.queryable import declare_queryable_of
from zenlake.api.reply import Reply
from zenlake.api.session import Session as SyncSession
from zenlake.api.session import session_beside as session_beside_sync
from zenlake.clock import Timestamp, ZenohId
from zenlake.config import Config
from zenlake.engine.runtime import Runtime
from zenlake.keys import IntoKeyExpr, IntoSelector, KeyExpr
from zenlake.node.entities import IncomingQuery
from zenlake.node.sample import Sample
from zenlake.values import EntityGlobalId, IntoZBytes

__all__ = ["Session", "open"]


def open(
    config: Config | None = None, *, timestamp_callback: StampCallback | None = None
) -> Declaring[Session]:
    """Open a session: `await` it, or enter it with `async with` and have it closed at the end.

    Waits until it is connected as `config` says, and says what it tried if not.
    `timestamp_callback` tells the time in a form of its own where messages ask for it.
    """
    if config is not None and not isinstance(config, Config):
        raise TypeError(f"a session is opened with a Config, not {type(config).__name__}")
    return Declaring(_open(Config() if config is None else config, timestamp_callback))


async def _open(config: Config, timestamp_callback: StampCallback | None) -> Session:
    return Session(SyncSession(await Runtime.open_async(config), timestamp_callback))


def session_beside(runtime: Runtime) -> Session:
    """Return another session on a running node, for a service with a loop of its own.

    The node outlives it, and may run on another loop; callbacks would be called there, so what is
    declared here has channels or coroutine functions.
    """
    session = Session(session_beside_sync(runtime))
    session._owner = False
    return session


class Session(Scoped, AwaitingCore):
    """A program's place in the network: publish, subscribe, query and reply through it.

    It belongs to the loop on which it was opened, and all its links and timers run there.
    """

    def __init__(self, inner: SyncSession) -> None:
        """Made by `open`."""
        super().__init__(inner)
        self._inner = inner
        self._owner = True

    # ---------------------------------------------------------------------------------- life

    async def close(self, /) -> None:
        """Close it and all that is declared on it; closing twice does no harm.

        Waits a moment for the last words to be written; who is cancelled while waiting closes
        everything at once.
        """
        if not self._owner:
            await self.tasks.end()
            return
        try:
            await self.tasks.end()
        finally:
            try:
                await self.runtime.close_async()
            finally:
                self._inner.close()
                await self.tasks.end()

    def is_closed(self, /) -> bool:
        """Whether it is closed."""
        return self.runtime.closed

    async def __aexit__(self, /, *_error: object) -> None:
        """Close it."""
        await self.close()

    def __del__(self) -> None:
        """Closed with its last reference, which is later than a program should leave it to."""
        runtime = getattr(self, "runtime", None)
        if runtime is not None and not runtime.closed and self._owner:
            warnings.warn(f"unclosed session {self!r}", ResourceWarning, source=self, stacklevel=2)
            runtime.loop.soon(self._inner.close)

    def __repr__(self) -> str:
        """Its id."""
        return repr(self._inner)

    # --------------------------------------------------------------------------------- facts

    def zid(self, /) -> ZenohId:
        """Its id in the network."""
        return self._inner.zid()

    @property
    def id(self) -> EntityGlobalId:
        """Its id as an entity."""
        return self._inner.id

    @property
    def info(self) -> SessionInfo:
        """What it knows of the network."""
        return SessionInfo(self)

    def new_timestamp(self, /) -> Timestamp:
        """A timestamp later than all that it has made or seen."""
        return self._inner.new_timestamp()

    def liveliness(self, /) -> Liveliness:
        """What it can do about liveliness."""
        return Liveliness(self)

    # ------------------------------------------------------------------------ key expressions

    async def declare_keyexpr(self, /, key_expr: IntoKeyExpr) -> KeyExpr:
        """Check a key expression and keep it at hand for what is sent under it.

        Parameters as of `zenlake.Session.declare_keyexpr`.
        """
        return self._inner.declare_keyexpr(key_expr)

    async def undeclare(self, /, obj: KeyExpr | Declared[Any]) -> None:
        """Undeclare a key expression, or anything else that was declared on this session.

        Parameters as of `zenlake.Session.undeclare`.
        """
        if isinstance(obj, Declared):
            await obj.undeclare()
        else:
            self._inner.undeclare(obj)

    # ---------------------------------------------------------------------------- publishing

    async def put(
        self, /, key_expr: IntoKeyExpr, payload: IntoZBytes, **options: Unpack[PutOptions]
    ) -> None:
        """Publish a value under a key; waits while the queue towards a neighbour is full.

        Parameters as of `zenlake.Session.put`.
        """
        await self.sending.send(*put_message(self.core, key_expr, payload, options))

    def try_put(
        self, /, key_expr: IntoKeyExpr, payload: IntoZBytes, **options: Unpack[PutOptions]
    ) -> PutOutcome:
        """Publish a value under a key without waiting, and say what became of it; not awaited.

        Parameters as of `zenlake.Session.try_put`.
        """
        return self._inner.try_put(key_expr, payload, **options)

    async def delete(self, /, key_expr: IntoKeyExpr, **options: Unpack[DeleteOptions]) -> None:
        """Publish that the value under a key is removed.

        Parameters as of `zenlake.Session.delete`.
        """
        await self.sending.send(*delete_message(self.core, key_expr, options))

    def declare_publisher(
        self, /, key_expr: IntoKeyExpr, **options: Unpack[PublisherOptions]
    ) -> Declaring[Publisher]:
        """Declare a publisher, for a key that is published on again and again.

        Parameters as of `zenlake.Session.declare_publisher`.
        """

        async def declare() -> Publisher:
            return Publisher(self, self._inner.declare_publisher(key_expr, **options))

        return Declaring(declare())

    # --------------------------------------------------------------------------- subscribing

    def declare_subscriber(
        self,
        /,
        key_expr: IntoKeyExpr,
        handler: Given[Sample] = None,
        **options: Unpack[SubscriberOptions],
    ) -> Declaring[Subscriber]:
        """Subscribe to a key expression.

        Parameters as of `zenlake.Session.declare_subscriber`.
        """

        async def declare() -> Subscriber:
            inner = self._inner.declare_subscriber(key_expr, on_this_loop(handler), **options)
            return Subscriber(self, inner, handler)

        return Declaring(declare())

    # ----------------------------------------------------------------------------- answering

    def declare_queryable(
        self,
        /,
        key_expr: IntoKeyExpr,
        handler: Given[Query] = None,
        **options: Unpack[QueryableOptions],
    ) -> Declaring[Queryable]:
        """Reply to queries on a key expression.

        Parameters as of `zenlake.Session.declare_queryable`.
        """
        given = on_this_loop(handler)
        if callable(function_of(given)):
            raise TypeError("replies are awaited: give a queryable a coroutine function")

        async def declare() -> Queryable:
            runtime = open_runtime(self.core)
            sending = self.sending

            def query(incoming: IncomingQuery) -> Query:
                return Query(runtime, sending, incoming)

            inner = declare_queryable_of(self.core, key_expr, given, query, **options)
            return Queryable(self, inner, handler)

        return Declaring(declare())

    # -------------------------------------------------------------------------------- asking

    def get(
        self,
        /,
        selector: IntoSelector,
        handler: Given[Reply] = None,
        **options: Unpack[GetOptions],
    ) -> Replies:
        """Send a query to the queryables that match a selector; iterate over the replies.

        Parameters as of `zenlake.Session.get`.
        """
        return ask(self, partial(self._inner.get, selector), handler, options)

    async def put_acknowledged(
        self,
        /,
        key_expr: IntoKeyExpr,
        payload: IntoZBytes,
        *,
        encoding: IntoEncoding | None = None,
        attachment: IntoZBytes | None = None,
        timeout: float = 10.0,
    ) -> Timestamp:
        """Publish a value through a storage of its key, and wait until that has it for good.

        The arguments and errors are those of `zenlake.Session.put_acknowledged`.

        Parameters as of `zenlake.Session.put_acknowledged`.
        """
        acknowledgement = Acknowledgement(key_expr)
        async for reply in self.get(
            acknowledgement.selector,
            payload=payload,
            encoding=encoding,
            attachment=attachment,
            timeout=timeout,
        ):
            stamp = acknowledgement.hear(reply)
            if stamp is not None:
                return stamp
        raise acknowledgement.failure()

    def declare_querier(
        self, /, key_expr: IntoKeyExpr, **options: Unpack[QuerierOptions]
    ) -> Declaring[Querier]:
        """Declare a querier, for what is asked again and again.

        Parameters as of `zenlake.Session.declare_querier`.
        """

        async def declare() -> Querier:
            return Querier(self, self._inner.declare_querier(key_expr, **options))

        return Declaring(declare())
