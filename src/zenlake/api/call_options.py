"""The options of the API's calls, each set written once.

A call takes a set as `**options: Unpack[PutOptions]`. Blocking calls that Eclipse's package has too
name each option, because programs and tools inspect them there, and because `put` would be slower
with a dictionary. `tests/api/test_call_options.py` compares those with the sets here. An option
that is not given is None.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, TypedDict

if TYPE_CHECKING:
    from zenlake.api.cancellation import CancellationToken
    from zenlake.api.consolidation import IntoQueryConsolidation
    from zenlake.api.options import IntoEncoding
    from zenlake.clock import Timestamp
    from zenlake.keys.parameters import IntoParameters
    from zenlake.values import (
        CongestionControl,
        IntoZBytes,
        Locality,
        Priority,
        QueryTarget,
        Reliability,
        ReplyKeyExpr,
        SourceInfo,
        TimestampInstrumentation,
    )


class SendOptions(TypedDict, total=False):
    """How messages travel."""

    congestion_control: CongestionControl | None
    priority: Priority | None
    express: bool | None
    allowed_destination: Locality | None


class PublisherOptions(SendOptions, total=False):
    """The options of `Session.declare_publisher`."""

    encoding: IntoEncoding | None
    reliability: Reliability | None


class PublisherDeleteOptions(TypedDict, total=False):
    """The options of `Publisher.delete`."""

    attachment: IntoZBytes | None
    timestamp: Timestamp | None
    timestamp_instrumentation: TimestampInstrumentation | None
    source_info: SourceInfo | None


class PublisherPutOptions(PublisherDeleteOptions, total=False):
    """The options of `Publisher.put` and `Publisher.try_put`."""

    encoding: IntoEncoding | None


class DeleteOptions(SendOptions, PublisherDeleteOptions, total=False):
    """The options of `Session.delete`."""


class PutOptions(DeleteOptions, total=False):
    """The options of `Session.put` and `Session.try_put`."""

    encoding: IntoEncoding | None


class SubscriberOptions(TypedDict, total=False):
    """The options of `Session.declare_subscriber`."""

    allowed_origin: Locality | None


class QueryableOptions(SubscriberOptions, total=False):
    """The options of `Session.declare_queryable`."""

    complete: bool | None


class ReplyDelOptions(TypedDict, total=False):
    """The options of `Query.reply_del`."""

    congestion_control: CongestionControl | None
    priority: Priority | None
    express: bool | None
    attachment: IntoZBytes | None
    timestamp: Timestamp | None


class ReplyOptions(ReplyDelOptions, total=False):
    """The options of `Query.reply`."""

    encoding: IntoEncoding | None


class QuerierOptions(SendOptions, total=False):
    """The options of `Session.declare_querier`."""

    target: QueryTarget | None
    consolidation: IntoQueryConsolidation | None
    accept_replies: ReplyKeyExpr | None
    timeout: float | None


class AnyGetOptions(TypedDict, total=False):
    """What comes with any query."""

    payload: IntoZBytes | None
    encoding: IntoEncoding | None
    attachment: IntoZBytes | None
    source_info: SourceInfo | None
    cancellation_token: CancellationToken | None
    timestamp_instrumentation: TimestampInstrumentation | None


class QuerierGetOptions(AnyGetOptions, total=False):
    """The options of `Querier.get`."""

    parameters: IntoParameters | None


class GetOptions(QuerierOptions, AnyGetOptions, total=False):
    """The options of `Session.get`."""


class LivelinessGetOptions(TypedDict, total=False):
    """The options of `Liveliness.get`."""

    timeout: float | None
    cancellation_token: CancellationToken | None


def refuse_unknown(call: str, options: Mapping[str, object], known: frozenset[str]) -> None:
    """Raise `TypeError` for the first option that a call does not have."""
    for name in options:
        if name not in known:
            raise TypeError(
                f"{call}() got an unexpected keyword argument '{name}': "
                f"its options are {', '.join(sorted(known))}"
            )
