"""Sessions: a program's place in the network."""

from __future__ import annotations

import atexit
import os
import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Self, overload

from zenlake.api.entity import Beside, Called, Declared, H, Queued, entity_id, receiver_of
from zenlake.api.get import Getting
from zenlake.api.info import SessionInfo
from zenlake.api.liveliness import Liveliness
from zenlake.api.options import (
    IntoEncoding,
    StampCallback,
    TimestampRecorder,
    encoding_parts,
    locality,
    qos_byte,
)
from zenlake.api.publish import Publisher
from zenlake.api.put import OWN
from zenlake.api.query import Query
from zenlake.api.queryable import Queryable
from zenlake.api.release import later, ready
from zenlake.api.subscribe import Subscriber
from zenlake.clock import Timestamp, ZenohId
from zenlake.config import Config
from zenlake.engine.channel import Channel
from zenlake.engine.handlers import QueryQueue, SampleQueue
from zenlake.engine.runtime import Runtime
from zenlake.errors import LocalError
from zenlake.keys import IntoKeyExpr, KeyExpr
from zenlake.node.entities import IncomingQuery, SampleSink
from zenlake.node.sample import Sample
from zenlake.values import (
    CongestionControl,
    Encoding,
    EntityGlobalId,
    Locality,
    Priority,
    Reliability,
    TimestampContext,
    WhatAmI,
)

if TYPE_CHECKING:
    from zenlake.engine.handlers import Handler

__all__ = ["Session", "open"]


def open(
    config: Config | None = None, *, timestamp_callback: StampCallback | None = None
) -> Session:
    """Open a session: waits until it is connected as `config` says, and says what it tried if not.

    `timestamp_callback` tells the time in a form of its own where messages ask for it.
    """
    if config is not None and not isinstance(config, Config):
        raise TypeError(f"a session is opened with a Config, not {type(config).__name__}")
    ready()
    return Session(Runtime.open(Config() if config is None else config), timestamp_callback)


class Session(Getting):
    """A program's place in the network: publish, subscribe, query and reply through it.

    It is closed by `close`, at the end of a `with` block, when the program lets go of it and of
    all that it declared, and at the latest when the interpreter exits.
    """

    def __init__(self, runtime: Runtime, timestamp_callback: StampCallback | None = None) -> None:
        """Made by `open`."""
        context = TimestampContext(ZenohId(runtime.zid), WhatAmI(1 << runtime.node.mode))
        super().__init__(runtime, TimestampRecorder(runtime, context, timestamp_callback))
        #: What lives on though the program forgot it: it has a callback.
        self._kept: set[Declared] = set()
        #: Channels that the node does not know of, and so does not end.
        self._channels: set[Channel] = set()
        self._declared_keys: dict[str, int] = {}
        self._owner = True
        _sessions.add(self)

    @classmethod
    def beside(cls, runtime: Runtime) -> Session:
        """Another session on a running node, for a service of it: the node outlives it.

        Args:
            runtime: The running node.
        """
        session = cls(runtime)
        session._owner = False
        _sessions.discard(session)
        return session

    # ---------------------------------------------------------------------------------- life

    def _keep(self, entity: Declared) -> None:
        self._kept.add(entity)

    def _forget(self, entity: Declared) -> None:
        self._kept.discard(entity)

    def close(self, /) -> None:
        """Close it and all that is declared on it; closing twice does no harm."""
        runtime = self._runtime
        if not runtime.closed:
            runtime.close()
        for channel in list(self._channels):
            channel.end()
        self._channels.clear()
        self._kept.clear()
        self._plain.clear()
        self._publications.clear()

    def is_closed(self, /) -> bool:
        """Whether it is closed."""
        return self._runtime.closed

    def __enter__(self) -> Self:
        """Itself."""
        return self

    def __exit__(self, /, *_args: object, **_kwargs: object) -> None:
        """Close it."""
        self.close()

    def __del__(self) -> None:
        """Closed with its last reference."""
        runtime = getattr(self, "_runtime", None)
        if runtime is not None and not runtime.closed and self._owner:
            later(self.close)

    def __repr__(self) -> str:
        """Its id."""
        return f"<Session {self.zid()}{' closed' if self._runtime.closed else ''}>"

    # --------------------------------------------------------------------------------- facts

    def zid(self, /) -> ZenohId:
        """Its id in the network."""
        return ZenohId(self._runtime.zid)

    @property
    def id(self) -> EntityGlobalId:
        """Its id as an entity."""
        return entity_id(self._runtime.zid, OWN)

    @property
    def info(self) -> SessionInfo:
        """What it knows of the network."""
        return SessionInfo(self)

    def new_timestamp(self, /) -> Timestamp:
        """A timestamp later than all that it has made or seen."""
        return self._runtime.new_timestamp()

    def liveliness(self, /) -> Liveliness:
        """What it can do about liveliness."""
        return Liveliness(self)

    # ------------------------------------------------------------------------ key expressions

    def declare_keyexpr(self, /, key_expr: IntoKeyExpr) -> KeyExpr:
        """Check a key expression, and have neighbours told a number for it.

        What is sent under it from then on carries the number instead of the text.

        Args:
            key_expr: A key expression, as text or as a `KeyExpr`.
        """
        key = KeyExpr.of(key_expr)
        with self._open().locked() as node:
            count = self._declared_keys.get(str(key), 0)
            self._declared_keys[str(key)] = count + 1
            if not count:
                node.local.declare_key(str(key))
        return key

    def undeclare(self, /, obj: KeyExpr | Declared) -> None:
        """Undeclare a key expression, or anything else that was declared on this session.

        Args:
            obj: A key expression that `declare_keyexpr` gave, or anything else declared here.
        """
        if isinstance(obj, Declared):
            obj.undeclare()
            return
        text = str(KeyExpr.of(obj))
        count = self._declared_keys.get(text, 0)
        if not count:
            raise LocalError(
                f"'{text}' is not declared on this session: undeclare what declare_keyexpr() gave"
            )
        if count == 1:
            del self._declared_keys[text]
            with self._open().locked() as node:
                node.local.undeclare_key(text)
        else:
            self._declared_keys[text] = count - 1

    # ---------------------------------------------------------------------------- publishing

    def declare_publisher(
        self,
        /,
        key_expr: IntoKeyExpr,
        *,
        encoding: IntoEncoding | None = None,
        congestion_control: CongestionControl | None = None,
        priority: Priority | None = None,
        express: bool | None = None,
        reliability: Reliability | None = None,
        allowed_destination: Locality | None = None,
    ) -> Publisher:
        """Declare a publisher, for a key that is published on again and again.

        Args:
            key_expr: A key expression, as text or as a `KeyExpr`.
            encoding: What its payloads are, where `put` does not say.
            congestion_control: What happens when the queue towards a neighbour is full; DROP if not
                said.
            priority: Which queue it waits in; DATA if not said.
            express: Whether it is sent at once, instead of in a batch with others.
            reliability: Whether a lost sample is sent again; RELIABLE if not said.
            allowed_destination: Whether it may reach subscribers here, elsewhere, or both.
        """
        key = KeyExpr.of(key_expr)
        id, schema = encoding_parts(encoding)
        qos = qos_byte(congestion_control, priority, express)
        reliable = reliability is not Reliability.BEST_EFFORT
        with self._open().locked() as node:
            publication = node.local.publisher(
                str(key), qos, reliable, id, schema, locality(allowed_destination)
            )
            return Publisher(self, publication, Encoding.of(encoding))

    # --------------------------------------------------------------------------- subscribing

    @overload
    def declare_subscriber(
        self,
        /,
        key_expr: IntoKeyExpr,
        handler: Queued[Sample] = None,
        *,
        allowed_origin: Locality | None = None,
    ) -> Subscriber[Handler[Sample]]: ...
    @overload
    def declare_subscriber(
        self,
        /,
        key_expr: IntoKeyExpr,
        handler: Beside[Sample, H],
        *,
        allowed_origin: Locality | None = None,
    ) -> Subscriber[H]: ...
    @overload
    def declare_subscriber(
        self,
        /,
        key_expr: IntoKeyExpr,
        handler: Called[Sample],
        *,
        allowed_origin: Locality | None = None,
    ) -> Subscriber[None]: ...
    def declare_subscriber(
        self,
        /,
        key_expr: IntoKeyExpr,
        handler: object = None,
        *,
        allowed_origin: Locality | None = None,
    ) -> Subscriber[Any]:
        """Subscribe to a key expression.

        Args:
            key_expr: A key expression, as text or as a `KeyExpr`; as text also with a filter, like
                `robot/**?_filter=battery<20`.
            handler: Where they go: a channel to take from (the default), a callback, or a pair of a
                callback and an object to reach as `handler`.
            allowed_origin: Whether it takes what comes from here, from elsewhere, or both.
        """
        passes = None
        if isinstance(key_expr, str) and "?" in key_expr:
            from zenlake.api.filtered import Filter

            key_expr, passes = Filter.parse(key_expr)
        key = KeyExpr.of(key_expr)
        runtime = self._open()
        receiver = receiver_of(self, handler, "Sample", key)
        with runtime.locked() as node:
            sink: SampleSink = SampleQueue(receiver.channel)
            sink = sink if passes is None else passes.before(sink)
            asked = None if passes is None else passes.asked_by_routers
            entity = node.local.subscribe(str(key), sink, locality(allowed_origin), filter=asked)
            return Subscriber(self, receiver, entity)

    # ----------------------------------------------------------------------------- answering

    @overload
    def declare_queryable(
        self,
        /,
        key_expr: IntoKeyExpr,
        handler: Queued[Query] = None,
        *,
        complete: bool | None = None,
        allowed_origin: Locality | None = None,
    ) -> Queryable[Handler[Query]]: ...
    @overload
    def declare_queryable(
        self,
        /,
        key_expr: IntoKeyExpr,
        handler: Beside[Query, H],
        *,
        complete: bool | None = None,
        allowed_origin: Locality | None = None,
    ) -> Queryable[H]: ...
    @overload
    def declare_queryable(
        self,
        /,
        key_expr: IntoKeyExpr,
        handler: Called[Query],
        *,
        complete: bool | None = None,
        allowed_origin: Locality | None = None,
    ) -> Queryable[None]: ...
    def declare_queryable(
        self,
        /,
        key_expr: IntoKeyExpr,
        handler: object = None,
        *,
        complete: bool | None = None,
        allowed_origin: Locality | None = None,
    ) -> Queryable[Any]:
        """Reply to queries on a key expression.

        Args:
            key_expr: A key expression, as text or as a `KeyExpr`.
            handler: Where they go: a channel to take from (the default), a callback, or a pair of a
                callback and an object to reach as `handler`.
            complete: Whether it has all that there is on its key expression.
            allowed_origin: Whether it takes what comes from here, from elsewhere, or both.
        """
        runtime = self._open()

        def query(incoming: IncomingQuery) -> Query:
            return Query(runtime, incoming)

        return self._queryable(key_expr, handler, query, complete, allowed_origin)

    def _queryable(
        self,
        key_expr: IntoKeyExpr,
        handler: object,
        query: Callable[[IncomingQuery], object],
        complete: bool | None,
        allowed_origin: Locality | None,
    ) -> Queryable[Any]:
        """Declare a queryable whose handler is given what `query` makes of each query."""
        key = KeyExpr.of(key_expr)
        runtime = self._open()
        receiver = receiver_of(self, handler, "Query", key)
        with runtime.locked() as node:
            sink = QueryQueue(receiver.channel, query)
            entity = node.local.queryable(str(key), sink, bool(complete), locality(allowed_origin))
            return Queryable(self, receiver, entity)


_sessions: weakref.WeakSet[Session] = weakref.WeakSet()


def _close_all() -> None:
    """What programs left open is closed in order, so that neighbours hear a goodbye."""
    for session in list(_sessions):
        session.close()


def _after_fork() -> None:
    """A child has none of the threads: the sessions of its parent are not its own."""
    for session in list(_sessions):
        session._runtime.closed = True
    _sessions.clear()


atexit.register(_close_all)
os.register_at_fork(after_in_child=_after_fork)
