from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from zenlake.errors import DecodeError, EncodeError
from zenlake.links.serial_frame import (
    ACK,
    INIT,
    MAX_FRAME,
    MAX_PAYLOAD,
    RESET,
    SerialDeframer,
    check_sum,
    decode,
    encode,
)

payloads = st.binary(max_size=MAX_PAYLOAD)


@pytest.mark.parametrize(
    ("payload", "check"),
    [(b"\x00\x11\x00", "73ec75f9"), (b"\x11\x22\x00\x33", "8d036dfb"), (b"", "00000000")],
)
def test_the_check_sum_is_that_of_other_implementations(payload: bytes, check: str) -> None:
    assert check_sum(payload).to_bytes(4, "little").hex() == check


def test_a_frame_is_as_other_implementations_write_it() -> None:
    # header 0, length 4, the payload, its check sum; each zero replaced by the way to the next
    assert encode(0, b"\x11\x22\x00\x33").hex() == "01020403112206338d036dfb00"
    assert encode(INIT, b"").hex() == "020101010101010100"
    assert encode(INIT | ACK, b"").hex() == "020301010101010100"
    assert encode(RESET, b"").hex() == "020401010101010100"


def test_a_long_run_without_zeros_is_cut() -> None:
    frame = encode(INIT, b"\xaa" * 600)
    assert b"\0" not in frame[:-1]
    assert decode(frame[:-1]) == (INIT, b"\xaa" * 600)


@given(st.integers(0, 7), payloads)
def test_what_is_encoded_is_decoded(header: int, payload: bytes) -> None:
    frame = encode(header, payload)
    assert frame.index(0) == len(frame) - 1
    assert len(frame) <= MAX_FRAME
    assert decode(frame[:-1]) == (header, payload)


@pytest.mark.parametrize("size", [251, 252, 253, 254, 255, 505, 506, 507, 508, MAX_PAYLOAD])
def test_runs_that_just_fill_a_step_survive(size: int) -> None:
    for payload in (b"\x01" * size, b"\x01" * size + b"\0", b"\0" + b"\x01" * size):
        if len(payload) <= MAX_PAYLOAD:
            assert decode(encode(0, payload)[:-1]) == (0, payload)


def test_too_long_a_batch_is_refused() -> None:
    with pytest.raises(EncodeError, match="1501 bytes is too long"):
        encode(0, bytes(MAX_PAYLOAD + 1))


@given(st.lists(payloads, max_size=4), st.data())
def test_cutting_the_line_anywhere_changes_nothing(
    batches: list[bytes], data: st.DataObject
) -> None:
    line = b"".join(encode(0, batch) for batch in batches)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(line)), max_size=5)))
    frames = SerialDeframer()
    found: list[tuple[int, bytes]] = []
    for start, end in zip([0, *cuts], [*cuts, len(line)], strict=True):
        found += frames.feed(line[start:end])
    assert found == [(0, batch) for batch in batches]
    assert frames.dropped == 0


@given(payloads, st.data())
def test_one_damaged_byte_is_never_taken_for_a_batch(payload: bytes, data: st.DataObject) -> None:
    frame = bytearray(encode(0, payload))
    at = data.draw(st.integers(0, len(frame) - 2))
    frame[at] ^= data.draw(st.integers(1, 255))
    # The check sum covers the payload alone: a flag may be damaged unseen.
    assert all(found == payload for _, found in SerialDeframer().feed(bytes(frame)))


@given(st.binary(max_size=4000), payloads)
def test_after_any_noise_the_second_frame_is_found(noise: bytes, payload: bytes) -> None:
    frames = SerialDeframer()
    frames.feed(noise + b"\0")
    assert frames.feed(encode(0, payload)) == [(0, payload)]


def changed(payload: bytes, cut: int, more: bytes) -> bytes:
    """A frame without its end mark that may have lost its last bytes, or have others there."""
    frame = encode(3, payload)[:-1]
    return frame[: len(frame) - cut] + more


@given(
    st.binary(max_size=2000)
    | st.builds(changed, payloads, st.integers(0, 2), st.binary(max_size=2))
)
@example(encode(3, b"abc")[:-1])
def test_any_bytes_are_a_frame_or_a_decode_error(frame: bytes) -> None:
    try:
        header, payload = decode(frame)
    except DecodeError:
        return
    assert len(payload) < len(frame)
    assert decode(encode(header, payload)[:-1]) == (header, payload)


def test_endless_bytes_without_an_end_are_not_collected() -> None:
    frames = SerialDeframer()
    for _ in range(100):
        assert frames.feed(b"\x01" * 1000) == []
        assert len(frames._begun) <= MAX_FRAME
    assert frames.dropped == 1
    assert frames.feed(b"tail of it\0" + encode(0, b"next")) == [(0, b"next")]
