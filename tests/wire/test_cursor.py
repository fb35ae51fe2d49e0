"""The primitives: what they read, what they write, and all that a stranger can get wrong."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zenlake.errors import DecodeError, EncodeError
from zenlake.testing.strategies import integers, zids
from zenlake.wire.cursor import U8_MAX, U16_MAX, U32_MAX, U64_MAX, Reader, Writer

VLE = [
    (0, "00"),
    (127, "7f"),
    (128, "8001"),
    (300, "ac02"),
    (16383, "ff7f"),
    (16384, "808001"),
    (2**28 - 1, "ffffff7f"),
    (2**32 - 1, "ffffffff0f"),
    (2**56 - 1, "ff" * 7 + "7f"),
    (2**56, "80" * 8 + "01"),
    (2**63, "80" * 8 + "80"),
    (2**64 - 1, "ff" * 9),
]


def written(value: int) -> bytes:
    w = Writer()
    w.vle(value, U64_MAX)
    assert w.size == len(w.getvalue())
    return w.getvalue()


# ------------------------------------------------------------------- variable-length integers


@pytest.mark.parametrize(("value", "encoded"), VLE)
def test_a_variable_length_integer_takes_seven_bits_a_byte(value: int, encoded: str) -> None:
    assert written(value).hex() == encoded
    r = Reader(bytes.fromhex(encoded) + b"\xff")
    assert r.vle(U64_MAX) == value
    assert r.pos == len(encoded) // 2


@given(integers(U64_MAX), st.binary(max_size=3))
def test_an_integer_comes_back_and_its_skipper_agrees(value: int, behind: bytes) -> None:
    data = written(value)
    assert len(data) <= 9
    r, s = Reader(data + behind), Reader(data + behind)
    assert r.vle(U64_MAX) == value
    s.skip_vle()
    assert r.pos == s.pos == len(data)


@given(st.binary(min_size=1, max_size=12))
def test_any_nine_bytes_hold_an_integer_of_64_bits(data: bytes) -> None:
    r, s = Reader(data), Reader(data)
    ends = [i for i, byte in enumerate(data[:9]) if byte < 0x80 or i == 8]
    if ends:
        assert 0 <= r.vle(U64_MAX) <= U64_MAX
        s.skip_vle()
        assert r.pos == s.pos == ends[0] + 1
    else:
        with pytest.raises(DecodeError, match="has no last byte"):
            r.vle(U64_MAX)
        with pytest.raises(DecodeError):
            s.skip_vle()
        assert r.pos == s.pos == 0


def test_a_longer_form_than_needed_is_accepted() -> None:
    for data in (b"\x05", b"\x85\x00", b"\x85\x80\x80\x00", b"\x85" + b"\x80" * 7 + b"\x00"):
        r = Reader(data)
        assert r.vle(U8_MAX) == 5
        assert r.pos == len(data)


@given(integers(U64_MAX), st.sampled_from([U8_MAX, U16_MAX, U32_MAX]))
def test_a_value_above_its_width_is_refused_both_ways(value: int, limit: int) -> None:
    r, w = Reader(written(value)), Writer()
    if value <= limit:
        assert r.vle(limit) == value
        w.vle(value, limit)
        assert w.getvalue() == written(value)
    else:
        with pytest.raises(DecodeError, match=f"{value} at offset 0 is above {limit}"):
            r.vle(limit)
        assert r.pos == 0
        with pytest.raises(EncodeError):
            w.vle(value, limit)


@pytest.mark.parametrize("value", [-1, -(2**64), 2**64])
def test_what_is_no_integer_of_64_bits_is_not_written(value: int) -> None:
    w = Writer()
    with pytest.raises(EncodeError):
        w.vle(value, U64_MAX)
    with pytest.raises(EncodeError):
        w.nat(value)
    assert (w.size, w.getvalue()) == (0, b"")


# ----------------------------------------------------------------------------- fixed integers


@given(st.integers(0, U16_MAX))
def test_two_bytes_are_little_endian(value: int) -> None:
    w = Writer()
    w.u16(value)
    assert w.getvalue() == value.to_bytes(2, "little")
    r = Reader(w.getvalue())
    assert (r.u16(), r.pos) == (value, 2)


@pytest.mark.parametrize("value", [-1, 256, 2**70])
def test_one_byte_holds_0_to_255(value: int) -> None:
    with pytest.raises(EncodeError, match="one byte"):
        Writer().u8(value)


@pytest.mark.parametrize("value", [-1, 65536, 2**70])
def test_two_bytes_hold_0_to_65535(value: int) -> None:
    with pytest.raises(EncodeError, match="two bytes"):
        Writer().u16(value)


# ------------------------------------------------------------------------------------- times


@given(integers(U32_MAX), integers(U32_MAX))
def test_a_time_in_halves_is_the_integer_of_64_bits(seconds: int, fraction: int) -> None:
    w = Writer()
    w.ntp64(seconds, fraction)
    assert w.getvalue() == written(seconds << 32 | fraction)
    assert w.size == len(w.getvalue())
    r = Reader(w.getvalue())
    assert r.ntp64() == (seconds, fraction)
    assert r.pos == r.end


@given(st.binary(max_size=12))
def test_a_time_reads_like_an_integer_from_any_bytes(data: bytes) -> None:
    r, s = Reader(data), Reader(data)
    try:
        value = s.vle(U64_MAX)
    except DecodeError:
        with pytest.raises(DecodeError):
            r.ntp64()
        return
    assert r.ntp64() == (value >> 32, value & U32_MAX)
    assert r.pos == s.pos


@pytest.mark.parametrize("halves", [(-1, 0), (0, -1), (2**32, 0), (0, 2**32)])
def test_a_half_of_a_time_has_32_bits(halves: tuple[int, int]) -> None:
    with pytest.raises(EncodeError, match="two 32-bit halves"):
        Writer().ntp64(*halves)


# ------------------------------------------------------------------- natural numbers (2018)


@given(integers(U64_MAX), st.binary(max_size=3))
def test_a_natural_number_has_no_special_last_byte(value: int, behind: bytes) -> None:
    w = Writer()
    w.nat(value)
    r = Reader(w.getvalue() + behind)
    assert r.nat() == value
    assert r.pos == w.size == max(1, (value.bit_length() + 6) // 7)


def test_a_natural_number_ends_after_ten_bytes() -> None:
    assert Reader(b"\xff" * 9 + b"\x01").nat() == U64_MAX
    with pytest.raises(DecodeError, match="64 bits"):
        Reader(b"\xff" * 9 + b"\x02").nat()
    with pytest.raises(DecodeError, match="longer than ten bytes"):
        Reader(b"\x80" * 11).nat()
    with pytest.raises(DecodeError, match="no last byte"):
        Reader(b"\x80").nat()


# ------------------------------------------------------------------------- bytes, text and ids


@given(st.binary(max_size=300))
def test_bytes_stand_behind_their_length(data: bytes) -> None:
    w = Writer()
    w.sized(data, U32_MAX)
    r = Reader(w.getvalue())
    assert r.take(r.vle(U32_MAX)) == data
    assert r.pos == r.end == w.size


@given(st.text(max_size=40))
def test_text_is_utf_8_behind_its_length_in_bytes(text: str) -> None:
    w = Writer()
    w.text(text, U16_MAX)
    r = Reader(w.getvalue())
    assert r.text(r.vle(U16_MAX)) == text
    assert r.pos == r.end == w.size


@pytest.mark.parametrize("data", [b"\xff", b"\xc3", b"\xed\xa0\x80", b"\xc0\x80", b"a\x80"])
def test_what_is_not_utf_8_is_refused(data: bytes) -> None:
    with pytest.raises(DecodeError, match="the text at offset 0 is not UTF-8"):
        Reader(data).text(len(data))


def test_half_of_a_surrogate_pair_is_not_written() -> None:
    with pytest.raises(EncodeError, match="is not UTF-8"):
        Writer().text("\ud83d", U16_MAX)


@given(zids())
def test_a_node_id_comes_back(zid: bytes) -> None:
    w = Writer()
    w.zid(zid)
    assert Reader(w.getvalue()).zid(len(zid)) == zid


@given(zids(), st.integers(0, 15))
def test_high_zero_bytes_of_a_node_id_are_dropped(zid: bytes, more: int) -> None:
    padded = (zid + bytes(more))[:16]
    r = Reader(padded)
    assert r.zid(len(padded)) == zid
    assert r.pos == len(padded)


@pytest.mark.parametrize("size", [0, 17, 255])
def test_a_node_id_has_1_to_16_bytes(size: int) -> None:
    with pytest.raises(DecodeError, match="1 to 16"):
        Reader(b"\x01" * 300).zid(size)
    with pytest.raises(EncodeError, match="1 to 16"):
        Writer().zid(b"\x01" * size)


# ---------------------------------------------------------------------------- bounds and ends


def test_nothing_is_read_past_the_end() -> None:
    r = Reader(b"\x00\x00\x00\x00", 1, 2)
    for read in (lambda: r.u16(), lambda: r.take(2), lambda: r.skip(2), lambda: r.narrow(2)):
        with pytest.raises(DecodeError, match="2 more bytes announced, 1 left at offset 1"):
            read()
    assert r.rest() == b"\x00"
    with pytest.raises(DecodeError) as caught:
        r.u8()
    assert caught.value.offset == 2


def test_a_huge_length_is_refused_without_arithmetic_tricks() -> None:
    r = Reader(b"abc")
    for size in (4, 2**31, 2**63 - 1, 2**63, 2**64 - 1):
        with pytest.raises(DecodeError, match=f"{size} more bytes announced, 3 left"):
            r.take(size)
        with pytest.raises(DecodeError, match=f"{size} more bytes announced, 3 left"):
            r.skip(size)
        with pytest.raises(DecodeError, match=f"{size} more bytes announced, 3 left"):
            r.narrow(size)
    assert (r.pos, r.end) == (0, 3)


@given(integers(U64_MAX), st.integers(1, 9), st.binary(max_size=40))
def test_a_count_that_cannot_be_true_is_refused(count: int, size: int, behind: bytes) -> None:
    r = Reader(written(count) + behind)
    if count * size <= len(behind):
        assert r.count(U64_MAX, size) == count
    else:
        with pytest.raises(DecodeError, match=f"{count} elements announced at offset 0"):
            r.count(U64_MAX, size)


def test_a_narrowed_reader_must_read_all_of_its_part() -> None:
    r = Reader(b"abcd")
    former = r.narrow(2)
    assert (former, r.end) == (4, 2)
    r.skip(1)
    with pytest.raises(DecodeError, match="1 bytes left over in X at offset 1"):
        r.widen(former, "X")
    r.skip(1)
    r.widen(former, "X")
    assert (r.pos, r.end, r.peek()) == (2, 4, ord("c"))


@pytest.mark.parametrize(
    ("header", "body", "size"),
    [(0x0E, b"\x05", 0), (0x2E, b"\x85\x01\x05", 2), (0x4E, b"\x01ab", 2)],
)
def test_an_unknown_extension_is_passed_over_by_its_shape(
    header: int, body: bytes, size: int
) -> None:
    r = Reader(body)
    r.skip_extension(header, "X")
    assert r.pos == size


# ------------------------------------------------------------------------------------ writing


@given(st.binary(max_size=300), st.binary(max_size=20))
def test_a_length_can_be_filled_in_later(data: bytes, before: bytes) -> None:
    w = Writer()
    w.raw(before)
    place, start = w.hold(), w.size
    w.raw(data)
    w.fill(place, start, U32_MAX)
    w.u8(7)
    expected = Writer()
    expected.sized(data, U32_MAX)
    assert w.getvalue() == before + expected.getvalue() + b"\x07"
    assert w.size == len(w.getvalue())
