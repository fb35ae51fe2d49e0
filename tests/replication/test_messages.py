"""The bytes of digests, alignment queries and replies."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zenlake.errors import DecodeError
from zenlake.replication import Action, Digest, DigestDiff, Eras, Event
from zenlake.replication.messages import (
    AlignmentQuery,
    AlignmentReply,
    All,
    Discovery,
    DiscoveryReply,
    Events,
    EventsMetadata,
    IntervalFingerprints,
    Intervals,
    Retrieval,
    SubIntervalFingerprints,
    SubIntervals,
    decode_digest,
    decode_query,
    decode_reply,
    encode_digest,
    encode_query,
    encode_reply,
    fits,
)

ERAS = Eras("demo/**", None, 10_000, 5, 6, 30, 250)
ID = bytes(range(1, 17))

numbers = st.integers(0, (1 << 64) - 1)
ids = st.binary(min_size=1, max_size=16).filter(lambda raw: raw[-1] != 0)
names = st.text("abcé/", min_size=1, max_size=20)
fingerprints = st.dictionaries(numbers, numbers, max_size=5)
nested = st.dictionaries(numbers, fingerprints, max_size=6)
sets = st.frozensets(numbers, max_size=5)
nested_sets = st.dictionaries(numbers, sets, max_size=4)


@st.composite
def events(draw: st.DrawFn) -> Event:
    action = draw(st.sampled_from(Action))
    if action >= Action.PUT_MANY:
        return Event(draw(names), action, draw(numbers), draw(ids))
    base = (draw(numbers), draw(ids)) if draw(st.booleans()) else (0, b"")
    return Event(draw(st.none() | names), action, draw(numbers), draw(ids), *base)


many_events = st.lists(events(), max_size=4).map(tuple)
queries: st.SearchStrategy[AlignmentQuery] = st.one_of(
    st.just(Discovery()),
    st.just(All()),
    st.builds(DigestDiff, st.booleans(), sets, nested_sets),
    st.builds(Intervals, sets),
    st.builds(SubIntervals, nested_sets),
    st.builds(Events, many_events),
)
replies: st.SearchStrategy[AlignmentReply] = st.one_of(
    st.builds(DiscoveryReply, st.text("0123456789abcdef", min_size=1, max_size=32)),
    st.builds(IntervalFingerprints, fingerprints),
    st.builds(SubIntervalFingerprints, nested),
    st.builds(EventsMetadata, many_events),
    st.builds(Retrieval, events(), st.none() | st.binary(max_size=9)),
)
digests = st.builds(Digest, numbers, numbers, fingerprints, nested)


@given(digests)
def test_a_digest_survives_its_bytes(digest: Digest) -> None:
    assert decode_digest(encode_digest(digest), ERAS) == digest


@given(queries)
def test_a_query_survives_its_bytes(query: AlignmentQuery) -> None:
    assert decode_query(encode_query(query)) == query


@given(replies)
def test_a_reply_survives_its_bytes(reply: AlignmentReply) -> None:
    assert decode_reply(encode_reply(reply)) == reply


@given(st.binary(max_size=80), st.integers(0, 6))
def test_any_bytes_are_read_or_refused(raw: bytes, variant: int) -> None:
    for read in (decode_query, decode_reply, lambda raw: decode_digest(raw, ERAS)):
        for message in (raw, variant.to_bytes(4, "little") + raw):
            with contextlib.suppress(DecodeError):
                read(message)


@given(st.one_of(queries.map(encode_query), replies.map(encode_reply)), st.data())
def test_a_message_cut_short_is_refused(raw: bytes, data: st.DataObject) -> None:
    cut = raw[: data.draw(st.integers(0, len(raw) - 1))]
    # What is left may be another message, which is then all of it.
    with contextlib.suppress(DecodeError):
        assert encode_query(decode_query(cut)) == cut
    with contextlib.suppress(DecodeError):
        assert encode_reply(decode_reply(cut)) == cut


def test_every_message_has_the_bytes_that_bincode_gives() -> None:
    put = Event("a", Action.PUT, 5, b"\x07", 4, b"\x09")
    many = Event("a/*", Action.DELETE_MANY, 6, ID)
    seven, nine = b"\x07" + bytes(15), b"\x09" + bytes(15)

    def u64(number: int) -> bytes:
        return number.to_bytes(8, "little")

    put_bytes = (
        b"\x01" + u64(1) + b"a" + u64(5) + seven + b"\x01" + u64(4) + nine + b"\x00\x00\x00\x00"
    )
    many_bytes = (
        b"\x01" + u64(3) + b"a/*" + u64(6) + ID + b"\x00" + b"\x03\x00\x00\x00" + u64(3) + b"a/*"
    )
    assert encode_query(Discovery()).hex() == "00000000"
    assert encode_query(All()).hex() == "01000000"
    diff = DigestDiff(True, frozenset({2, 1}), {3: frozenset({4})})
    assert encode_query(diff) == b"\x02\0\0\0" + b"\x01" + b"".join(map(u64, (2, 1, 2, 1, 3, 1, 4)))
    assert encode_query(Intervals(frozenset({8}))) == b"\x03\0\0\0" + u64(1) + u64(8)
    parts = SubIntervals({8: frozenset({0, 1})})
    assert encode_query(parts) == b"\x04\0\0\0" + b"".join(map(u64, (1, 8, 2, 0, 1)))
    assert encode_query(Events((put, many))) == b"\x05\0\0\0" + u64(2) + put_bytes + many_bytes
    assert encode_reply(DiscoveryReply("a1b2")) == b"\0\0\0\0" + u64(4) + b"a1b2"
    found = IntervalFingerprints({2: 20, 1: 10})
    assert encode_reply(found) == b"\x01\0\0\0" + b"".join(map(u64, (2, 1, 10, 2, 20)))
    nested = SubIntervalFingerprints({1: {0: 10}})
    assert encode_reply(nested) == b"\x02\0\0\0" + b"".join(map(u64, (1, 1, 1, 0, 10)))
    assert encode_reply(EventsMetadata((put,))) == b"\x03\0\0\0" + u64(1) + put_bytes
    assert encode_reply(Retrieval(many)) == b"\x04\0\0\0" + many_bytes
    attached = encode_reply(Retrieval(many, b"why"))
    assert attached == b"\x04\0\0\0" + many_bytes + u64(3) + b"why"


def test_what_no_replica_would_write_is_refused_with_a_reason() -> None:
    event = encode_reply(EventsMetadata((Event("a/*", Action.PUT_MANY, 6, ID),)))
    for message, why in (
        (b"\x09\0\0\0", "unknown alignment reply 9"),
        (b"\x01\0\0\0" + b"\xff" * 8, "members where"),
        (b"\x01\0\0\0" + (1000).to_bytes(8, "little"), "bytes left for 1000 members"),
        (event[:-1] + b"+", "has the expression 'a/+' for 'a/*'"),
        (event.replace(ID, bytes(16)), "its id is zero"),
        (event + b"\0", "1 bytes too many"),
        (event[:4] + b"\1" + bytes(7) + b"\2" + bytes(40), "2 where 0 or 1 belongs"),
        (b"\0\0\0\0" + (1 << 20).to_bytes(8, "little"), "a text of 1048576 bytes"),
        (b"\0\0\0\0" + (1).to_bytes(8, "little") + b"\xff", "not UTF-8"),
        (b"\0\0\0\0" + (2).to_bytes(8, "little") + b"zz", "where the id of a node belongs"),
        (bytes((64 << 20) + 1), "bytes; 67108864 at most"),
    ):
        with pytest.raises(DecodeError, match=why.replace("*", r"\*").replace("+", r"\+")):
            decode_reply(message)
    with pytest.raises(DecodeError, match="unknown alignment query 7"):
        decode_query(b"\x07\0\0\0")
    # A digest has no more intervals than all replicas have agreed on.
    for digest in (
        Digest(1, 2, dict.fromkeys(range(31), 1), {}),
        Digest(1, 2, {}, {at: {} for at in range(7)}),
        Digest(1, 2, {}, {1: dict.fromkeys(range(6), 1)}),
    ):
        with pytest.raises(DecodeError, match="members where"):
            decode_digest(encode_digest(digest), ERAS)


def test_eclipse_writes_an_update_of_many_for_the_prefix_itself_without_a_name() -> None:
    raw = encode_reply(Retrieval(Event("a/**", Action.PUT_MANY, 6, ID)))
    nameless = raw[:4] + b"\0" + raw[4 + 1 + 8 + 4 :]
    reply = decode_reply(nameless)
    assert isinstance(reply, Retrieval)
    assert reply.event == Event(None, Action.PUT, 6, ID)


@given(queries, replies)
def test_a_reply_fits_the_query_that_asks_for_it(
    query: AlignmentQuery, reply: AlignmentReply
) -> None:
    wanted: dict[type, set[type]] = {
        Discovery: {DiscoveryReply},
        All: {Retrieval},
        DigestDiff: {IntervalFingerprints, SubIntervalFingerprints, EventsMetadata},
        Intervals: {SubIntervalFingerprints},
        SubIntervals: {EventsMetadata},
        Events: {Retrieval},
    }
    assert fits(query, reply) == (type(reply) in wanted[type(query)])
