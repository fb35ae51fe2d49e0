"""The options of a query, for type checkers."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypedDict

if TYPE_CHECKING:
    from zenlake.api.cancellation import CancellationToken
    from zenlake.api.consolidation import IntoQueryConsolidation
    from zenlake.api.options import IntoEncoding
    from zenlake.keys.parameters import IntoParameters
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


class Beyond(TypedDict, total=False):
    """What comes with any query."""

    payload: IntoZBytes | None
    encoding: IntoEncoding | None
    attachment: IntoZBytes | None
    source_info: SourceInfo | None
    cancellation_token: CancellationToken | None
    timestamp_instrumentation: TimestampInstrumentation | None


class AskOptions(Beyond, total=False):
    """The options of `Querier.get`."""

    parameters: IntoParameters | None


class GetOptions(Beyond, total=False):
    """The options of `Session.get`."""

    target: QueryTarget | None
    consolidation: IntoQueryConsolidation | None
    accept_replies: ReplyKeyExpr | None
    timeout: float | None
    congestion_control: CongestionControl | None
    priority: Priority | None
    express: bool | None
    allowed_destination: Locality | None
