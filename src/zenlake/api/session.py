"""Sessions: a program's place in the network."""

from __future__ import annotations

import atexit
import os
import weakref
from typing import TYPE_CHECKING, Any, Self, Unpack, overload

from zenlake.api.acknowledge import Acknowledgement
from zenlake.api.cancellation import CancellationToken
from zenlake.api.consolidation import IntoQueryConsolidation
from zenlake.api.core import OWN, SessionCore, open_runtime
from zenlake.api.entity import Beside, Called, Declared, H, Queued, entity_id, receiver_of
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
from zenlake.api.plain_get import PlainGets
from zenlake.api.publish import Publisher
from zenlake.api.querier import Querier, QueryOptions
from zenlake.api.query import Query
from zenlake.api.queryable import Queryable, declare_queryable_of
from zenlake.api.release import later, ready
from zenlake.api.reply import Reply
from zenlake.api.subscribe import Subscriber
from zenlake.clock import Timestamp, ZenohId
from zenlake.config import Config
from zenlake.engine.handlers import SampleQueue
from zenlake.engine.runtime import Runtime
from zenlake.errors import LocalError
from zenlake.keys import IntoKeyExpr, IntoSelector, KeyExpr, Selector
from zenlake.node.entities import IncomingQuery, SampleSink
from zenlake.node.sample import Sample
from zenlake.values import (
    CongestionControl,
    Encoding,
    EntityGlobalId,
    IntoZBytes,
    Locality,
    Priority,
    QueryTarget,
    Reliability,
    ReplyKeyExpr,
    SourceInfo,
    TimestampContext,
    TimestampInstrumentation,
    WhatAmI,
)

if TYPE_CHECKING:
    from zenlake.api.call_options import GetOptions, QueryableOptions, SubscriberOptions
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


def prepare(config: Config) -> Session:
    """Open a session that listens and lets nobody in until `session.runtime.begin()`.

    For programs of zenlake that declare what must miss nothing.
    """
    ready()
    return Session(Runtime.prepare(config))


def session_beside(runtime: Runtime) -> Session:
    """Return another session on a running node, for a service of it: the node outlives it."""
    session = Session(runtime)
    session._owner = False
    _sessions.discard(session)
    return session


class Session(SessionCore):
    """A program's place in the network: publish, subscribe, query and reply through it.

    It is closed by `close`, at the end of a `with` block, when the program lets go of it and of
    all that it declared, and at the latest when the interpreter exits.
    """

    def __init__(self, runtime: Runtime, timestamp_callback: StampCallback | None = None) -> None:
        """Made by `open`."""
        context = TimestampContext(ZenohId(runtime.zid), WhatAmI(1 << runtime.node.mode))
        super().__init__(runtime, TimestampRecorder(runtime, context, timestamp_callback))
        self._gets = PlainGets(runtime.node.settings.query_timeout)
        self._declared_keys: dict[str, int] = {}
        self._owner = True
        _sessions.add(self)

    # ---------------------------------------------------------------------------------- life

    def close(self, /) -> None:
        """Close it and all that is declared on it; closing twice does no harm."""
        runtime = self.runtime
        if not runtime.closed:
            runtime.close()
        for channel in list(self.channels):
            channel.end()
        self.channels.clear()
        self.kept.clear()
        self._plain.clear()
        self._publications.clear()

    def is_closed(self, /) -> bool:
        """Whether it is closed."""
        return self.runtime.closed

    def __enter__(self) -> Self:
        """Itself."""
        return self

    def __exit__(self, /, *_args: object, **_kwargs: object) -> None:
        """Close it."""
        self.close()

    def __del__(self) -> None:
        """Closed with its last reference."""
        runtime = getattr(self, "runtime", None)
        if runtime is not None and not runtime.closed and self._owner:
            later(self.close)

    def __repr__(self) -> str:
        """Its id."""
        return f"<Session {self.zid()}{' closed' if self.runtime.closed else ''}>"

    # --------------------------------------------------------------------------------- facts

    def zid(self, /) -> ZenohId:
        """Its id in the network."""
        return ZenohId(self.runtime.zid)

    @property
    def id(self) -> EntityGlobalId:
        """Its id as an entity."""
        return entity_id(self.runtime.zid, OWN)

    @property
    def info(self) -> SessionInfo:
        """What it knows of the network."""
        return SessionInfo(self)

    def new_timestamp(self, /) -> Timestamp:
        """A timestamp later than all that it has made or seen."""
        return self.runtime.new_timestamp()

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
        with open_runtime(self).locked() as node:
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
            with open_runtime(self).locked() as node:
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
        with open_runtime(self).locked() as node:
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
        **options: Unpack[SubscriberOptions],
    ) -> Subscriber[Handler[Sample]]: ...
    @overload
    def declare_subscriber(
        self,
        /,
        key_expr: IntoKeyExpr,
        handler: Beside[Sample, H],
        **options: Unpack[SubscriberOptions],
    ) -> Subscriber[H]: ...
    @overload
    def declare_subscriber(
        self,
        /,
        key_expr: IntoKeyExpr,
        handler: Called[Sample],
        **options: Unpack[SubscriberOptions],
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
        runtime = open_runtime(self)
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
        **options: Unpack[QueryableOptions],
    ) -> Queryable[Handler[Query]]: ...
    @overload
    def declare_queryable(
        self,
        /,
        key_expr: IntoKeyExpr,
        handler: Beside[Query, H],
        **options: Unpack[QueryableOptions],
    ) -> Queryable[H]: ...
    @overload
    def declare_queryable(
        self,
        /,
        key_expr: IntoKeyExpr,
        handler: Called[Query],
        **options: Unpack[QueryableOptions],
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
        runtime = open_runtime(self)

        def query(incoming: IncomingQuery) -> Query:
            return Query(runtime, incoming)

        return declare_queryable_of(self, key_expr, handler, query, complete, allowed_origin)

    # -------------------------------------------------------------------------------- asking

    @overload
    def get(
        self,
        /,
        selector: IntoSelector,
        handler: Queued[Reply] = None,
        **options: Unpack[GetOptions],
    ) -> Handler[Reply]: ...
    @overload
    def get(
        self,
        /,
        selector: IntoSelector,
        handler: Beside[Reply, H],
        **options: Unpack[GetOptions],
    ) -> H: ...
    @overload
    def get(
        self, /, selector: IntoSelector, handler: Called[Reply], **options: Unpack[GetOptions]
    ) -> None: ...
    def get(
        self,
        /,
        selector: IntoSelector,
        handler: object = None,
        *,
        target: QueryTarget | None = None,
        consolidation: IntoQueryConsolidation | None = None,
        accept_replies: ReplyKeyExpr | None = None,
        timeout: float | None = None,
        congestion_control: CongestionControl | None = None,
        priority: Priority | None = None,
        express: bool | None = None,
        payload: IntoZBytes | None = None,
        encoding: IntoEncoding | None = None,
        attachment: IntoZBytes | None = None,
        allowed_destination: Locality | None = None,
        source_info: SourceInfo | None = None,
        cancellation_token: CancellationToken | None = None,
        timestamp_instrumentation: TimestampInstrumentation | None = None,
    ) -> object:
        """Send a query to the queryables that match a selector; the replies come to the handler.

        Args:
            selector: A key expression, and parameters behind a `?`.
            handler: Where they go: a channel to take from (the default), a callback, or a pair of a
                callback and an object to reach as `handler`.
            target: Which of the queryables that match are asked; BEST_MATCHING if not said.
            consolidation: What becomes of several replies for one key; AUTO if not said.
            accept_replies: Whether replies may be on keys outside of the key expression.
            timeout: How long replies may take, in seconds; if not said, as the configuration says.
            congestion_control: What happens when the queue towards a neighbour is full; BLOCK if
                not said.
            priority: Which queue it waits in; DATA if not said.
            express: Whether it is sent at once, instead of in a batch with others.
            payload: A value that travels with the query.
            encoding: What the payload is, such as `"application/json"`.
            attachment: Bytes that travel beside the payload.
            allowed_destination: Whether queryables here, elsewhere, or both are asked.
            source_info: Which entity asks, and as its how-manieth query.
            cancellation_token: Ends it before its time.
            timestamp_instrumentation: At which points of its route times are taken.
        """
        open_runtime(self)
        if (
            type(selector) is str
            and target is None
            and consolidation is None
            and accept_replies is None
            and timeout is None
            and congestion_control is None
            and priority is None
            and express is None
            and payload is None
            and encoding is None
            and attachment is None
            and allowed_destination is None
            and source_info is None
            and cancellation_token is None
            and timestamp_instrumentation is None
        ):
            return self._gets.get(self, selector, handler)
        parsed = Selector.of(selector)
        qos = qos_byte(congestion_control, priority, express, CongestionControl.BLOCK)
        options = QueryOptions(
            self, target, consolidation, accept_replies, timeout, qos, allowed_destination
        )
        return options.send(
            str(parsed.key_expr),
            parsed.parameters,
            handler,
            payload,
            encoding,
            attachment,
            source_info,
            cancellation_token,
            timestamp_instrumentation,
        )

    def put_acknowledged(
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

        Args:
            key_expr: One key, without wildcards.
            payload: The value.
            encoding: What the value is.
            attachment: What goes along with it.
            timeout: How long to wait, in seconds.

        Returns:
            The timestamp that the value was published with.

        Raises:
            LocalError: No storage answers for the key, or it says why it does not store it.
        """
        acknowledgement = Acknowledgement(key_expr)
        for reply in self.get(
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
        self,
        /,
        key_expr: IntoKeyExpr,
        *,
        target: QueryTarget | None = None,
        consolidation: IntoQueryConsolidation | None = None,
        accept_replies: ReplyKeyExpr | None = None,
        timeout: float | None = None,
        congestion_control: CongestionControl | None = None,
        priority: Priority | None = None,
        express: bool | None = None,
        allowed_destination: Locality | None = None,
    ) -> Querier:
        """Declare a querier, for what is asked again and again.

        Other parameters as of `zenlake.Session.get`.

        Args:
            key_expr: A key expression, as text or as a `KeyExpr`.
        """
        runtime = open_runtime(self)
        key = KeyExpr.of(key_expr)
        qos = qos_byte(congestion_control, priority, express, CongestionControl.BLOCK)
        options = QueryOptions(
            self, target, consolidation, accept_replies, timeout, qos, allowed_destination
        )
        with runtime.locked() as node:
            entity = node.local.querier(str(key), options.target, options.destination)
            accepted = accept_replies or ReplyKeyExpr.DEFAULT
            return Querier(self, entity, options, accepted)


_sessions: weakref.WeakSet[Session] = weakref.WeakSet()


def _close_all() -> None:
    """What programs left open is closed in order, so that neighbours hear a goodbye."""
    for session in list(_sessions):
        session.close()


def _after_fork() -> None:
    """A child has none of the threads: the sessions of its parent are not its own."""
    for session in list(_sessions):
        session.runtime.closed = True
    _sessions.clear()


atexit.register(_close_all)
os.register_at_fork(after_in_child=_after_fork)
