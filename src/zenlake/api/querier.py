"""Queriers, and the options that they share with `Session.get`."""

from __future__ import annotations

from collections.abc import Callable
from types import GenericAlias
from typing import TYPE_CHECKING, Any, ClassVar, Final, overload

from zenlake.api.cancellation import CancellationToken, cancel_with, refuse_cancelled
from zenlake.api.consolidation import IntoQueryConsolidation, QueryConsolidation
from zenlake.api.core import SessionCore, open_runtime
from zenlake.api.entity import (
    Beside,
    Called,
    Declared,
    H,
    Queued,
    entity_id,
    forgotten,
    receiver_of,
)
from zenlake.api.matching import MatchingListener, MatchingStatus, watch_matching
from zenlake.api.options import (
    IntoEncoding,
    closed_error,
    encoding_parts,
    optional_bytes,
    payload_bytes,
    source_on_wire,
)
from zenlake.api.reply import GetReplyQueue, Reply
from zenlake.engine.handlers import Receiver
from zenlake.keys import KeyExpr, Parameters
from zenlake.keys.parameters import ANY_KEY_EXPR, TIME, IntoParameters
from zenlake.node.entities import LocalQuerier
from zenlake.values import (
    ConsolidationMode,
    EntityGlobalId,
    IntoZBytes,
    ReplyKeyExpr,
    SourceInfo,
    TimestampInstrumentation,
)
from zenlake.wire.codec_zenoh import QueryBody

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from zenlake.api.get_options import AskOptions
    from zenlake.engine.handlers import Handler
    from zenlake.node.programs.local import Local

__all__ = ["Querier", "QueryOptions", "watch"]

#: What becomes of several replies for one key, where a program does not say.
_LATEST: Final = ConsolidationMode.DEFAULT


class QueryOptions:
    """How queries are sent: what `Session.get` and a declared querier have in common."""

    def __init__(
        self,
        session: SessionCore,
        target: int,
        consolidation: IntoQueryConsolidation | None,
        accept_replies: ReplyKeyExpr | None,
        timeout: float,
        qos: int,
        destination: int,
    ) -> None:
        """Everything but the query itself."""
        if isinstance(consolidation, QueryConsolidation):
            consolidation = consolidation.mode
        self.session = session
        self.target = target
        self.consolidation = (consolidation or _LATEST).value
        self.any_key = accept_replies is ReplyKeyExpr.ANY
        self.timeout = timeout
        self.qos = qos
        self.destination = destination

    def send(
        self,
        key: str,
        parameters: Parameters,
        handler: object,
        payload: IntoZBytes | None,
        encoding: IntoEncoding | None,
        attachment: IntoZBytes | None,
        source_info: SourceInfo | None,
        token: CancellationToken | None,
        instrumentation: TimestampInstrumentation | None,
    ) -> Any:
        """Send a query, and give the handler that the replies come to."""
        refuse_cancelled(token)
        session = self.session
        runtime = open_runtime(session)
        any_key = self.any_key or ANY_KEY_EXPR in parameters
        if any_key and ANY_KEY_EXPR not in parameters:
            parameters.insert(ANY_KEY_EXPR, "")
        body: QueryBody | None = None
        if payload is not None or encoding is not None:
            id, schema = encoding_parts(encoding)
            value = b"" if payload is None else payload_bytes(payload)
            body = QueryBody(encoding=id, schema=schema, payload=value)
        receiver = receiver_of(session, handler, "Reply", key)
        sink = GetReplyQueue(receiver.channel)
        with runtime.locked() as node:
            get = node.local.get(
                key,
                str(parameters),
                sink,
                target=self.target,
                consolidation=self.consolidation,
                any_key=any_key,
                timeout=self.timeout,
                qos=self.qos,
                body=body,
                attachment=optional_bytes(attachment),
                source_info=source_on_wire(source_info),
                timestamp_stack=session.stamps.begin(instrumentation),
                destination=self.destination,
                timed=TIME in parameters,
            )
        watch(session, receiver, token, lambda local: local.cancel(get))
        return receiver.handler


def watch(
    session: SessionCore,
    receiver: Receiver,
    token: CancellationToken | None,
    cancel: Callable[[Local], None],
) -> None:
    """Have a query ended with its token."""
    if token is None:
        return
    runtime = session.runtime

    def end() -> None:
        if not runtime.closed:
            with runtime.locked() as node:
                cancel(node.local)

    cancel_with(token, end, receiver.channel, receiver.is_callback)


class Querier(Declared):
    """A declared source of queries: neighbours know of it, so that they route them at once."""

    def __del__(self) -> None:
        """Undeclared with its last reference."""
        forgotten(self)

    WHAT: ClassVar[str] = "querier"

    def __class_getitem__(cls, item: object) -> GenericAlias:
        """`Querier[...]` may be written, as in Eclipse's package, and means nothing."""
        return GenericAlias(cls, item)

    def __init__(
        self,
        session: SessionCore,
        entity: LocalQuerier,
        options: QueryOptions,
        accept_replies: ReplyKeyExpr,
    ) -> None:
        """Made by `Session.declare_querier`."""
        super().__init__(session)
        #: For the awaiting querier around it.
        self.entity: LocalQuerier = entity
        self._options: QueryOptions = options
        self._accept_replies: ReplyKeyExpr = accept_replies

    @property
    def id(self) -> EntityGlobalId:
        """Its id, which no other entity has."""
        self._check()
        return entity_id(self._runtime.zid, self.entity.eid)

    @property
    def key_expr(self) -> KeyExpr:
        """The key expression of its queries."""
        self._check()
        return KeyExpr.trusted(self.entity.key)

    @property
    def accept_replies(self) -> ReplyKeyExpr:
        """Whether replies may be on keys outside of the query's key expression."""
        self._check()
        return self._accept_replies

    @property
    def matching_status(self) -> MatchingStatus:
        """Whether it has a matching queryable now."""
        self._check()
        with self._runtime.locked() as node:
            return MatchingStatus(node.local.matching.of_querier(self.entity))

    @overload
    def get(
        self, /, handler: Queued[Reply] = None, **options: Unpack[AskOptions]
    ) -> Handler[Reply]: ...
    @overload
    def get(self, /, handler: Beside[Reply, H], **options: Unpack[AskOptions]) -> H: ...
    @overload
    def get(self, /, handler: Called[Reply], **options: Unpack[AskOptions]) -> None: ...
    def get(
        self,
        /,
        handler: object = None,
        *,
        parameters: IntoParameters | None = None,
        payload: IntoZBytes | None = None,
        encoding: IntoEncoding | None = None,
        attachment: IntoZBytes | None = None,
        source_info: SourceInfo | None = None,
        cancellation_token: CancellationToken | None = None,
        timestamp_instrumentation: TimestampInstrumentation | None = None,
    ) -> object:
        """Send a query; the replies come to the handler.

        Args:
            handler: Where they go: a channel to take from (the default), a callback, or a pair of a
                callback and an object to reach as `handler`.
            parameters: The parameters of the query, as text, a dictionary or `Parameters`.
            payload: A value that travels with the query.
            encoding: What the payload is, such as `"application/json"`.
            attachment: Bytes that travel beside the payload.
            source_info: Which entity asks, and as its how-manieth query.
            cancellation_token: Ends it before its time.
            timestamp_instrumentation: At which points of its route times are taken.
        """
        self._check()
        if self._runtime.closed:
            raise closed_error()
        return self._options.send(
            self.entity.key,
            Parameters(parameters),
            handler,
            payload,
            encoding,
            attachment,
            source_info,
            cancellation_token,
            timestamp_instrumentation,
        )

    @overload
    def declare_matching_listener(
        self, /, handler: Queued[MatchingStatus] = None
    ) -> MatchingListener[Handler[MatchingStatus]]: ...
    @overload
    def declare_matching_listener(
        self, /, handler: Beside[MatchingStatus, H]
    ) -> MatchingListener[H]: ...
    @overload
    def declare_matching_listener(
        self, /, handler: Called[MatchingStatus]
    ) -> MatchingListener[None]: ...
    def declare_matching_listener(self, /, handler: object = None) -> MatchingListener[Any]:
        """Listen to its matching status: the first queryable comes, the last one leaves.

        Args:
            handler: Where they go: a channel to take from (the default), a callback, or a pair of a
                callback and an object to reach as `handler`.
        """
        self._check()
        return watch_matching(self._session, self.entity, handler)

    def _withdraw(self, local: Local) -> None:
        local.unquerier(self.entity)

    def __repr__(self) -> str:
        """What it asks about."""
        self._check()
        return f"<Querier {self.entity.key}>"
