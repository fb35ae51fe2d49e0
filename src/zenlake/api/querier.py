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
    H,
    Queued,
    forgotten,
    receiver_of,
)
from zenlake.api.matching import Matched
from zenlake.api.options import (
    IntoEncoding,
    encoding_parts,
    locality,
    optional_bytes,
    payload_bytes,
    seconds,
    source_on_wire,
)
from zenlake.api.reply import GetReplyQueue, Reply
from zenlake.engine.handlers import Receiver
from zenlake.keys import Parameters
from zenlake.keys.parameters import ANY_KEY_EXPR, TIME, IntoParameters
from zenlake.node.entities import LocalQuerier
from zenlake.values import (
    ConsolidationMode,
    IntoZBytes,
    Locality,
    QueryTarget,
    ReplyKeyExpr,
    SourceInfo,
    TimestampInstrumentation,
)
from zenlake.wire.codec_zenoh import QueryBody

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from zenlake.api.call_options import QuerierGetOptions
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
        target: QueryTarget | None,
        consolidation: IntoQueryConsolidation | None,
        accept_replies: ReplyKeyExpr | None,
        timeout: float | None,
        qos: int,
        allowed_destination: Locality | None,
    ) -> None:
        """Everything but the query itself."""
        if isinstance(consolidation, QueryConsolidation):
            consolidation = consolidation.mode
        self.session = session
        self.target: int = (target or QueryTarget.DEFAULT).value
        self.consolidation = (consolidation or _LATEST).value
        self.any_key = accept_replies is ReplyKeyExpr.ANY
        self.timeout = seconds(timeout, session.runtime.node.settings.query_timeout)
        self.qos = qos
        self.destination = locality(allowed_destination)

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


class Querier(Matched):
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
        super().__init__(session, entity)
        self._options: QueryOptions = options
        self._accept_replies: ReplyKeyExpr = accept_replies

    @property
    def accept_replies(self) -> ReplyKeyExpr:
        """Whether replies may be on keys outside of the query's key expression."""
        self._check()
        return self._accept_replies

    @overload
    def get(
        self, /, handler: Queued[Reply] = None, **options: Unpack[QuerierGetOptions]
    ) -> Handler[Reply]: ...
    @overload
    def get(self, /, handler: Beside[Reply, H], **options: Unpack[QuerierGetOptions]) -> H: ...
    @overload
    def get(self, /, handler: Called[Reply], **options: Unpack[QuerierGetOptions]) -> None: ...
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

        Other parameters as of `zenlake.Session.get`.

        Args:
            parameters: The parameters of the query, as text, a dictionary or `Parameters`.
        """
        self._check_open()
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
