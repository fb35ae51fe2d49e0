from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zenlake import xrce
from zenlake.errors import DecodeError, EncodeError
from zenlake.testing.strategies import messages
from zenlake.wire.message import Message
from zenlake.xrce.declared import PAGE
from zenlake.xrce.framing import PACKET_MAX, UNBOUNDED, Deframer, frame

Outcome = tuple[list[bytes], str, bool, int]


def pieces(data: bytes, cuts: list[int]) -> list[bytes]:
    ends = sorted(cut % (len(data) + 1) for cut in cuts)
    return [data[a:b] for a, b in zip([0, *ends], [*ends, len(data)], strict=True)]


def outcome(parts: list[bytes], limit: int = PACKET_MAX) -> Outcome:
    """All that a stream gives: its packets, its error, its mode, and what is pending."""
    deframer = Deframer(limit)
    packets: list[bytes] = []
    try:
        for part in parts:
            for packet in deframer.feed(part):
                packets.append(packet)
    except DecodeError as error:
        return packets, str(error), deframer.unbounded, deframer.pending
    return packets, "", deframer.unbounded, deframer.pending


def one_by_one(data: bytes) -> list[bytes]:
    return [data[i : i + 1] for i in range(len(data))]


# ---------------------------------------------------------------------------------- properties


@given(
    framed=st.lists(st.binary(min_size=1, max_size=200), max_size=4),
    bare=st.none() | st.lists(messages(PAGE), max_size=4),
    cuts=st.lists(st.integers(0, 2000), max_size=6),
)
def test_a_stream_gives_the_packets_however_it_is_cut(
    framed: list[bytes], bare: list[Message] | None, cuts: list[int]
) -> None:
    told = [] if bare is None else [xrce.write(message) for message in bare]
    stream = b"".join(map(frame, framed)) + (b"" if bare is None else UNBOUNDED) + b"".join(told)
    expected = ([*framed, *told], "", bare is not None, 0)
    assert outcome([stream]) == expected
    assert outcome(one_by_one(stream)) == expected
    assert outcome(pieces(stream, cuts)) == expected


@given(
    switch=st.sampled_from([b"", UNBOUNDED]),
    data=st.binary(max_size=80),
    cuts=st.lists(st.integers(0, 80), max_size=4),
)
def test_chunking_never_changes_the_meaning_of_hostile_bytes(
    switch: bytes, data: bytes, cuts: list[int]
) -> None:
    whole = outcome([switch + data], limit=64)
    assert outcome(one_by_one(switch + data), limit=64) == whole
    assert outcome(pieces(switch + data, cuts), limit=64) == whole


@given(messages(PAGE))
def test_a_bare_message_ends_where_the_codec_says(message: Message) -> None:
    data = xrce.write(message)
    deframer = Deframer()
    assert list(deframer.feed(UNBOUNDED + data[:-1])) == []
    assert deframer.pending == len(data) - 1
    assert list(deframer.feed(data[-1:])) == [data]
    assert deframer.pending == 0


@given(st.binary(min_size=1, max_size=300))
def test_a_bare_message_that_the_codec_reads_is_cut_from_the_stream(data: bytes) -> None:
    try:
        count = len(xrce.read_packet(data))
    except DecodeError:
        return
    packets, error, _, pending = outcome([UNBOUNDED + data])
    assert (b"".join(packets), len(packets), error, pending) == (data, count, "", 0)


# -------------------------------------------------------------------------------------- frames


def test_a_packet_stands_behind_its_length() -> None:
    assert frame(b"\x0f\x01").hex() == "020f01"
    assert frame(bytes(300))[:2].hex() == "ac02"


def test_a_frame_of_nothing_is_refused_because_it_would_be_the_switch() -> None:
    with pytest.raises(EncodeError, match="empty"):
        frame(b"")


def test_a_frame_above_the_bound_is_refused() -> None:
    assert len(frame(bytes(100), limit=100)) == 101
    with pytest.raises(EncodeError, match="at most 100"):
        frame(bytes(101), limit=100)


def test_a_length_above_the_bound_is_refused_before_its_bytes_come() -> None:
    deframer = Deframer()
    assert list(deframer.feed(bytes.fromhex("80808008"))) == []  # 2^24: just allowed
    with pytest.raises(DecodeError, match=f"16777217 bytes: at most {PACKET_MAX}"):
        list(Deframer().feed(bytes.fromhex("81808008")))


def test_a_length_without_end_is_refused() -> None:
    assert list(Deframer().feed(b"\x80" * 9)) == []
    with pytest.raises(DecodeError, match="longer than ten bytes"):
        list(Deframer().feed(b"\x80" * 10))


def test_a_padded_zero_is_the_switch_too() -> None:
    assert outcome([bytes.fromhex("8000 0f01")]) == ([b"\x0f\x01"], "", True, 0)


def test_packets_before_an_error_are_given_first() -> None:
    packets = Deframer(limit=4).feed(bytes.fromhex("020f01 05"))
    assert next(packets) == b"\x0f\x01"
    with pytest.raises(DecodeError):
        next(packets)


def test_after_an_error_the_stream_is_lost() -> None:
    deframer = Deframer(limit=4)
    with pytest.raises(DecodeError):
        list(deframer.feed(b"\x05"))
    with pytest.raises(DecodeError, match="at most 4"):
        list(deframer.feed(b"\x01\x00"))
    with pytest.raises(DecodeError, match="at most 4"):
        deframer.finish()
    assert deframer.pending == 0


def test_packets_that_nobody_took_are_given_later() -> None:
    deframer = Deframer()
    deframer.feed(b"\x01a")
    assert list(deframer.feed(b"\x01b")) == [b"a", b"b"]


def test_a_stream_may_end_between_packets_only() -> None:
    deframer = Deframer()
    assert list(deframer.feed(b"\x01a")) == [b"a"]
    deframer.finish()
    assert list(deframer.feed(b"\x02a")) == []
    with pytest.raises(DecodeError, match="2 bytes into a packet"):
        deframer.finish()


# ------------------------------------------------------------------------------- bare messages


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("0a00", "message 10"),
        ("0600010c02", "12 is not defined"),
        ("060001030205", "mode is 5"),
        ("93" * 9, "more than 8 markers"),
        ("0c" + "80" * 10, "too long"),
        ("070002ffffff7f", "at most 16777216"),
        ("0600ffffff7f", "at most 16777216"),
    ],
)
def test_a_bare_message_that_cannot_end_is_refused_at_once(text: str, why: str) -> None:
    with pytest.raises(DecodeError, match=why):
        list(Deframer().feed(UNBOUNDED + bytes.fromhex(text)))


def test_a_marker_waits_for_its_message() -> None:
    deframer = Deframer()
    assert list(deframer.feed(UNBOUNDED + b"\x93")) == []
    assert list(deframer.feed(b"\x0f\x01\x0f\x02")) == [b"\x93\x0f\x01", b"\x0f\x02"]


def test_slow_bytes_buy_no_quadratic_work() -> None:
    # Read from its beginning at every byte, this would take hours, and the test its timeout.
    count = 100_000
    slow = UNBOUNDED + xrce.write(
        xrce.Declare(sn=0, declarations=(xrce.ForgetResource(rid=2),) * count)
    )
    deframer = Deframer()
    found = [packet for part in one_by_one(slow) for packet in deframer.feed(part)]
    assert found == [slow[1:]]
