"""Sending queries without a declaration, and declaring queriers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Unpack, cast, overload

from zenlake.api.acknowledge import Acknowledgement
from zenlake.api.entity import Beside, Called, H, Queued
from zenlake.api.options import IntoEncoding, TimestampRecorder, locality, qos_byte, seconds
from zenlake.api.plain_get import PlainGets
from zenlake.api.put import Putting
from zenlake.api.querier import (
    CancellationToken,
    IntoQueryConsolidation,
    Querier,
    QueryOptions,
    Reply,
)
from zenlake.clock import Timestamp
from zenlake.engine.runtime import Runtime
from zenlake.keys import IntoKeyExpr, IntoSelector, KeyExpr, Selector
from zenlake.values import (
    CongestionControl,
    IntoZBytes,
    Locality,
    Priority,
    QueryTarget,
    ReplyKeyExpr,
    SourceInfo,
    TimestampInstrumentation,
)

if TYPE_CHECKING:
    from zenlake.api.get_options import GetOptions
    from zenlake.api.session import Session
    from zenlake.engine.handlers import Handler


class Getting(Putting):
    """The part of a session that sends queries."""

    def __init__(self, runtime: Runtime, stamps: TimestampRecorder) -> None:
        """Through a running node."""
        super().__init__(runtime, stamps)
        self._gets = PlainGets(runtime.node.settings.query_timeout)

    def _query_options(
        self,
        target: QueryTarget | None,
        consolidation: IntoQueryConsolidation | None,
        accept_replies: ReplyKeyExpr | None,
        timeout: float | None,
        qos: int,
        allowed_destination: Locality | None,
    ) -> QueryOptions:
        return QueryOptions(
            cast("Session", self),
            (target or QueryTarget.DEFAULT).value,
            consolidation,
            accept_replies,
            seconds(timeout, self._runtime.node.settings.query_timeout),
            qos,
            locality(allowed_destination),
        )

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
        self._open()
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
            return self._gets.get(cast("Session", self), selector, handler)
        parsed = Selector.of(selector)
        qos = qos_byte(congestion_control, priority, express, CongestionControl.BLOCK)
        options = self._query_options(
            target, consolidation, accept_replies, timeout, qos, allowed_destination
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

        Args:
            key_expr: A key expression, as text or as a `KeyExpr`.
            target: Which of the queryables that match are asked; BEST_MATCHING if not said.
            consolidation: What becomes of several replies for one key; AUTO if not said.
            accept_replies: Whether replies may be on keys outside of the key expression.
            timeout: How long replies may take, in seconds; if not said, as the configuration says.
            congestion_control: What happens when the queue towards a neighbour is full; BLOCK if
                not said.
            priority: Which queue it waits in; DATA if not said.
            express: Whether it is sent at once, instead of in a batch with others.
            allowed_destination: Whether queryables here, elsewhere, or both are asked.
        """
        runtime = self._open()
        key = KeyExpr.of(key_expr)
        qos = qos_byte(congestion_control, priority, express, CongestionControl.BLOCK)
        options = self._query_options(
            target, consolidation, accept_replies, timeout, qos, allowed_destination
        )
        with runtime.locked() as node:
            entity = node.local.querier(str(key), options.target, options.destination)
            accepted = accept_replies or ReplyKeyExpr.DEFAULT
            return Querier(cast("Session", self), entity, options, accepted)
