"""Values of the API as the remote API writes them, and back."""

from __future__ import annotations

from typing import Any, NamedTuple

from zenlake.api import info
from zenlake.api.consolidation import QueryConsolidation
from zenlake.clock import NTP64, Timestamp, ZenohId
from zenlake.errors import LocalError
from zenlake.keys import KeyExpr
from zenlake.node import sample as node_sample
from zenlake.remote import fields
from zenlake.remote.messages import CutSample
from zenlake.values import (
    CongestionControl,
    ConsolidationMode,
    Encoding,
    Locality,
    Priority,
    QueryTarget,
    Reliability,
    ReplyKeyExpr,
    SampleKind,
)

__all__ = [
    "Quality",
    "QuerySettings",
    "cut_sample_of",
    "encoding_from",
    "encoding_of",
    "key_from",
    "link_of",
    "locality",
    "sample_of",
    "stamp_from",
    "stamp_of",
    "transport_of",
]

BLOCK, EXPRESS, RELIABLE, LOCALITY = 0x08, 0x10, 0x20, 6


class Quality(NamedTuple):
    """What a quality-of-service byte says."""

    priority: Priority
    congestion_control: CongestionControl
    express: bool
    reliability: Reliability
    locality: Locality

    @classmethod
    def read(cls, byte: int) -> Quality:
        """The parts of `llrecppp`; a priority that is none is DATA."""
        number = byte & 7
        return cls(
            Priority(number) if number else Priority.DATA,
            CongestionControl.BLOCK if byte & BLOCK else CongestionControl.DROP,
            bool(byte & EXPRESS),
            Reliability.RELIABLE if byte & RELIABLE else Reliability.BEST_EFFORT,
            locality(byte >> LOCALITY),
        )


class QuerySettings(NamedTuple):
    """What a byte of query settings says."""

    target: QueryTarget
    consolidation: QueryConsolidation
    accept: ReplyKeyExpr

    @classmethod
    def read(cls, byte: int) -> QuerySettings:
        """The parts of `000rcctt`."""
        if byte & 3 == 3:
            raise LocalError("target 3: there is best-matching, all and all-complete")
        return cls(
            QueryTarget(byte & 3),
            QueryConsolidation(ConsolidationMode(byte >> 2 & 3)),
            ReplyKeyExpr.MATCHING_QUERY if byte & 16 else ReplyKeyExpr.ANY,
        )


def locality(number: int) -> Locality:
    """A locality by its number."""
    try:
        return Locality(number)
    except ValueError:
        raise LocalError(f"locality {number}: there is 0, 1 and 2") from None


def encoding_from(written: fields.RemoteEncoding) -> Encoding:
    """An encoding of the API."""
    return Encoding.from_wire(written.id, written.schema.encode() or None)


def encoding_of(encoding: Encoding) -> fields.RemoteEncoding:
    """An encoding as it is written."""
    schema = (encoding.schema or b"").decode("utf-8", "replace")
    return fields.RemoteEncoding(encoding.id, schema)


def stamp_from(written: fields.Stamp | None) -> Timestamp | None:
    """A timestamp of the API."""
    if written is None:
        return None
    return Timestamp(NTP64.from_raw(written.time), ZenohId(written.id.rstrip(b"\0")))


def stamp_of(stamp: Timestamp | None) -> fields.Stamp | None:
    """A timestamp as it is written."""
    if stamp is None:
        return None
    return fields.Stamp(stamp.seconds << 32 | stamp.fraction, stamp.id_bytes)


def sample_of(sample: node_sample.Sample) -> fields.RemoteSample:
    """A sample as it is written."""
    attachment = sample.attachment
    qos = sample.priority.value
    qos |= BLOCK if sample.congestion_control is CongestionControl.BLOCK else 0
    qos |= EXPRESS if sample.express else 0
    qos |= RELIABLE if sample.reliability is Reliability.RELIABLE else 0
    return fields.RemoteSample(
        str(sample.key_expr),
        sample.payload.to_bytes(),
        1 if sample.kind is SampleKind.DELETE else 0,
        encoding_of(sample.encoding),
        None if attachment is None else attachment.to_bytes(),
        stamp_of(sample.timestamp),
        qos | Locality.ANY.value << LOCALITY,
    )


def cut_sample_of(sample: node_sample.Sample, most: int) -> CutSample:
    """A sample as it is written, without its payload if that has more than `most` bytes."""
    written = sample_of(sample)
    size = len(written.payload)
    return CutSample(written, 0) if size <= most else CutSample(written._replace(payload=b""), size)


def transport_of(transport: info.Transport) -> fields.RemoteTransport:
    """A session with another node as it is written."""
    return fields.RemoteTransport(
        bytes(transport.zid), transport.whatami.value, transport.is_qos, transport.is_multicast
    )


def link_of(link: info.Link) -> fields.RemoteLink:
    """A link as it is written."""
    reliability = link.reliability
    return fields.RemoteLink(
        zid=bytes(link.zid),
        src=link.src,
        dst=link.dst,
        group=link.group,
        mtu=min(link.mtu, 0xFFFF),
        streamed=link.is_streamed,
        interfaces=link.interfaces,
        auth=link.auth_identifier,
        priorities=link.priorities,
        reliability=None if reliability is None else reliability.value,
    )


def key_from(body: dict[str, Any]) -> KeyExpr:
    """The key expression that a message is about; raises `KeyExprError`."""
    return KeyExpr(body["key"])
