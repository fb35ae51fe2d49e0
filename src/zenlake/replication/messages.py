"""What replicas say to each other: digests, alignment queries and replies, and their bytes.

    digest on @-digest/<zid>/<fingerprint>            payload: Digest
    query to @zid/<zid>/<fingerprint>/aligner         attachment: AlignmentQuery
    its replies                                       attachment: AlignmentReply, payload: a value

Maps and sets are written in the order of their numbers; Eclipse's are in no order.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple, TypeAlias

from zenlake.errors import DecodeError
from zenlake.replication.bincode import BincodeReader, u32, u64, written_text
from zenlake.replication.eras import Eras
from zenlake.replication.events import SMALLEST, Event, decode_event, encode_event

__all__ = [
    "MOST_BYTES",
    "AlignmentQuery",
    "AlignmentReply",
    "All",
    "Digest",
    "DigestDiff",
    "Discovery",
    "DiscoveryReply",
    "Events",
    "EventsMetadata",
    "IntervalFingerprints",
    "Intervals",
    "Retrieval",
    "SubIntervalFingerprints",
    "SubIntervals",
    "decode_digest",
    "decode_query",
    "decode_reply",
    "encode_digest",
    "encode_query",
    "encode_reply",
    "fits",
]

#: The longest query or reply that is accepted: 10 million parts of intervals, or 100 000s of keys.
MOST_BYTES: Final = 64 << 20

Fingerprints: TypeAlias = Mapping[int, int]


class Digest(NamedTuple):
    """The fingerprints of a log: one of all that is cold, one of each warm interval or hot part."""

    configuration: int
    cold: int
    warm: Fingerprints
    hot: Mapping[int, Fingerprints]


class DigestDiff(NamedTuple):
    """Where a digest differs from what one has."""

    cold: bool
    warm: frozenset[int]
    hot: Mapping[int, frozenset[int]]


# ------------------------------------------------------------------------------------- queries


class Discovery(NamedTuple):
    """Who is there? Asked by a storage that begins empty."""


class All(NamedTuple):
    """Everything."""


class Intervals(NamedTuple):
    """The fingerprints of the parts of these intervals."""

    intervals: frozenset[int]


class SubIntervals(NamedTuple):
    """The events of these parts of intervals, without values."""

    parts: Mapping[int, frozenset[int]]


class Events(NamedTuple):
    """The values of these events."""

    events: tuple[Event, ...]


AlignmentQuery: TypeAlias = Discovery | All | DigestDiff | Intervals | SubIntervals | Events

# ------------------------------------------------------------------------------------- replies


class DiscoveryReply(NamedTuple):
    """I am there: my zid."""

    zid: str


class IntervalFingerprints(NamedTuple):
    """The fingerprint of each cold interval."""

    intervals: Fingerprints


class SubIntervalFingerprints(NamedTuple):
    """The fingerprint of each part of some intervals."""

    parts: Mapping[int, Fingerprints]


class EventsMetadata(NamedTuple):
    """Events without their values."""

    events: tuple[Event, ...]


class Retrieval(NamedTuple):
    """An event, whose value is the payload of the reply.

    Eclipse's storages keep no attachments. Ours do: one that a value has follows the event, where
    Eclipse's reader has stopped.
    """

    event: Event
    attachment: bytes | None = None


AlignmentReply: TypeAlias = (
    DiscoveryReply | IntervalFingerprints | SubIntervalFingerprints | EventsMetadata | Retrieval
)


def fits(query: AlignmentQuery, reply: AlignmentReply) -> bool:
    """Whether a reply can answer a query."""
    match query:
        case Discovery():
            return isinstance(reply, DiscoveryReply)
        case DigestDiff():
            return isinstance(
                reply, IntervalFingerprints | SubIntervalFingerprints | EventsMetadata
            )
        case Intervals():
            return isinstance(reply, SubIntervalFingerprints)
        case SubIntervals():
            return isinstance(reply, EventsMetadata)
        case All() | Events():
            return isinstance(reply, Retrieval)


# ------------------------------------------------------------------------------------- writing


def encode_digest(digest: Digest) -> bytes:
    """The payload of a publication."""
    return (
        u64(digest.configuration)
        + u64(digest.cold)
        + _fingerprints(digest.warm)
        + _nested_fingerprints(digest.hot)
    )


def encode_query(query: AlignmentQuery) -> bytes:
    """The attachment of a query."""
    match query:
        case Discovery():
            return u32(0)
        case All():
            return u32(1)
        case DigestDiff(cold, warm, hot):
            return u32(2) + bytes([cold]) + _numbers(warm) + _nested_numbers(hot)
        case Intervals(intervals):
            return u32(3) + _numbers(intervals)
        case SubIntervals(parts):
            return u32(4) + _nested_numbers(parts)
        case Events(events):
            return u32(5) + u64(len(events)) + b"".join(map(encode_event, events))


def encode_reply(reply: AlignmentReply) -> bytes:
    """The attachment of a reply."""
    match reply:
        case DiscoveryReply(zid):
            return u32(0) + written_text(zid)
        case IntervalFingerprints(intervals):
            return u32(1) + _fingerprints(intervals)
        case SubIntervalFingerprints(parts):
            return u32(2) + _nested_fingerprints(parts)
        case EventsMetadata(events):
            return u32(3) + u64(len(events)) + b"".join(map(encode_event, events))
        case Retrieval(event, attachment):
            more = b"" if attachment is None else u64(len(attachment)) + attachment
            return u32(4) + encode_event(event) + more


def _fingerprints(fingerprints: Fingerprints) -> bytes:
    return u64(len(fingerprints)) + b"".join(
        u64(at) + u64(fingerprints[at]) for at in sorted(fingerprints)
    )


def _nested_fingerprints(nested: Mapping[int, Fingerprints]) -> bytes:
    return u64(len(nested)) + b"".join(u64(at) + _fingerprints(nested[at]) for at in sorted(nested))


def _numbers(numbers: frozenset[int]) -> bytes:
    return u64(len(numbers)) + b"".join(map(u64, sorted(numbers)))


def _nested_numbers(nested: Mapping[int, frozenset[int]]) -> bytes:
    return u64(len(nested)) + b"".join(u64(at) + _numbers(nested[at]) for at in sorted(nested))


# ------------------------------------------------------------------------------------- reading


def decode_digest(payload: bytes, eras: Eras) -> Digest:
    """A digest of replicas that agree on `eras`; it has no more numbers than those allow."""
    reader = BincodeReader(payload)
    digest = Digest(
        reader.u64(),
        reader.u64(),
        _read_fingerprints(reader, eras.warm),
        _read_nested_fingerprints(reader, eras.hot, eras.parts),
    )
    reader.end()
    return digest


def decode_query(attachment: bytes) -> AlignmentQuery:
    """A query that another replica sent."""
    reader = _reader(attachment)
    query: AlignmentQuery
    match reader.u32():
        case 0:
            query = Discovery()
        case 1:
            query = All()
        case 2:
            query = DigestDiff(reader.flag(), _read_numbers(reader), _read_nested_numbers(reader))
        case 3:
            query = Intervals(_read_numbers(reader))
        case 4:
            query = SubIntervals(_read_nested_numbers(reader))
        case 5:
            query = Events(_read_events(reader))
        case unknown:
            raise DecodeError(f"unknown alignment query {unknown}; 0 to 5 are known", 0)
    reader.end()
    return query


def decode_reply(attachment: bytes) -> AlignmentReply:
    """A reply that another replica sent."""
    reader = _reader(attachment)
    reply: AlignmentReply
    match reader.u32():
        case 0:
            reply = DiscoveryReply(_zid(reader.text()))
        case 1:
            reply = IntervalFingerprints(_read_fingerprints(reader, MOST_BYTES))
        case 2:
            reply = SubIntervalFingerprints(
                _read_nested_fingerprints(reader, MOST_BYTES, MOST_BYTES)
            )
        case 3:
            reply = EventsMetadata(_read_events(reader))
        case 4:
            event = decode_event(reader)
            attached = reader.take(reader.u64()) if reader.left else None
            reply = Retrieval(event, attached)
        case unknown:
            raise DecodeError(f"unknown alignment reply {unknown}; 0 to 4 are known", 0)
    reader.end()
    return reply


def _reader(attachment: bytes) -> BincodeReader:
    if len(attachment) > MOST_BYTES:
        raise DecodeError(
            f"replication message of {len(attachment)} bytes; {MOST_BYTES} at most", MOST_BYTES
        )
    return BincodeReader(attachment)


def _read_fingerprints(reader: BincodeReader, most: int) -> dict[int, int]:
    return {reader.u64(): reader.u64() for _ in range(reader.number_of(16, most))}


def _read_nested_fingerprints(
    reader: BincodeReader, most: int, parts: int
) -> dict[int, dict[int, int]]:
    return {
        reader.u64(): _read_fingerprints(reader, parts) for _ in range(reader.number_of(16, most))
    }


def _read_numbers(reader: BincodeReader) -> frozenset[int]:
    return frozenset(reader.u64() for _ in range(reader.number_of(8, MOST_BYTES)))


def _read_nested_numbers(reader: BincodeReader) -> dict[int, frozenset[int]]:
    return {reader.u64(): _read_numbers(reader) for _ in range(reader.number_of(16, MOST_BYTES))}


def _read_events(reader: BincodeReader) -> tuple[Event, ...]:
    return tuple(decode_event(reader) for _ in range(reader.number_of(SMALLEST, MOST_BYTES)))


def _zid(text: str) -> str:
    if not 1 <= len(text) <= 32 or text.strip("0123456789abcdef"):
        raise DecodeError(f"replication message has {text[:40]!r} where the id of a node belongs")
    return text
