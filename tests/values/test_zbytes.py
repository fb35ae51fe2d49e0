from __future__ import annotations

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from zenlake.errors import SerializeError
from zenlake.values import ZBytes

pieces = st.lists(st.binary(max_size=6), max_size=6)


def address(buffer: memoryview) -> int:
    return int(np.frombuffer(buffer, dtype=np.uint8).ctypes.data)


def test_bytes_text_and_nothing_are_payloads() -> None:
    assert ZBytes(b"ab").to_bytes() == b"ab"
    assert ZBytes("é").to_bytes() == b"\xc3\xa9"
    assert ZBytes(None).to_bytes() == ZBytes().to_bytes() == b""
    assert ZBytes(ZBytes(b"ab")).to_bytes() == b"ab"
    assert bytes(ZBytes(b"ab")) == b"ab"
    assert str(ZBytes(b"ab")) == "ab"


@pytest.mark.parametrize("value", [5, 1.5, [1], object()])
def test_other_values_are_refused_with_advice(value: object) -> None:
    with pytest.raises(TypeError, match="z_serialize"):
        ZBytes(value)  # type: ignore[arg-type]


def test_whole_bytes_are_handed_back_without_a_copy() -> None:
    data = b"x" * 1000
    assert ZBytes(data).to_bytes() is data


def test_what_may_change_is_copied() -> None:
    held = bytearray(b"ab")
    array = np.array([1, 2], dtype=np.uint8)
    payloads = ZBytes(held), ZBytes(memoryview(held)), ZBytes(array)
    held[0] = 0
    array[0] = 0
    assert [payload.to_bytes() for payload in payloads] == [b"ab", b"ab", b"\1\2"]


def test_what_cannot_change_is_held_where_it_is() -> None:
    array = np.arange(4, dtype="<u2")
    array.flags.writeable = False
    payload = ZBytes(array)
    assert address(payload.view()) == array.ctypes.data
    assert payload.to_bytes() == array.tobytes()


def test_borrowing_holds_what_may_change() -> None:
    array = np.zeros((2, 3), dtype=np.float32)
    payload = ZBytes.borrow(array)
    array[0, 0] = 1.0
    assert payload.to_bytes() == array.tobytes()
    assert payload.view().readonly
    assert all(part.readonly for part in payload.slices())
    assert ZBytes.borrow(b"ab") == b"ab"


@pytest.mark.parametrize(
    "array",
    [
        np.arange(10, dtype=np.uint8)[::2],
        np.zeros((0, 3)),
        np.array([(1, 2.0)], dtype=[("a", "i1"), ("b", "f4")]),
        np.array(7, dtype=np.int64),
        np.asfortranarray(np.arange(6, dtype=np.int16).reshape(2, 3)),
    ],
    ids=["strided", "empty", "records", "scalar", "columns first"],
)
def test_buffers_of_any_shape_give_their_bytes(
    array: np.ndarray[tuple[int, ...], np.dtype[np.generic]],
) -> None:
    assert ZBytes(array).to_bytes() == array.tobytes()
    assert ZBytes.borrow(array).to_bytes() == array.tobytes()
    assert len(ZBytes.borrow(array)) == array.nbytes


def test_a_window_and_its_cuts_stay_in_the_batch() -> None:
    batch = b"0123456789"
    window = ZBytes.window(batch, 2, 8)
    assert window == b"234567"
    assert window[1:3] == b"34"
    assert address(window[1:3].view()) == address(memoryview(batch)) + 3
    assert address(next(window.slices())) == address(memoryview(batch)) + 2


@pytest.mark.parametrize(("start", "end"), [(-1, 2), (3, 2), (0, 11)])
def test_a_window_outside_the_batch_is_refused(start: int, end: int) -> None:
    with pytest.raises(SerializeError):
        ZBytes.window(b"0123456789", start, end)


def test_joined_pieces_are_not_moved() -> None:
    one, two = b"abc", b"de"
    rope = ZBytes.join([one, "", two])
    assert [address(part) for part in rope.slices()] == [
        address(memoryview(one)),
        address(memoryview(two)),
    ]
    assert rope == b"abcde"
    assert (ZBytes(one) + two).to_string() == "abcde"
    assert bytes(rope.view()) == b"abcde"


def test_it_equals_the_bytes_and_text_it_holds() -> None:
    payload = ZBytes(b"ab")
    assert payload == b"ab"
    assert payload == bytearray(b"ab")
    assert payload == memoryview(b"ab")
    assert payload == "ab"
    assert payload == ZBytes.join([b"a", b"b"])
    assert payload != ZBytes(b"ba")
    assert payload != 5
    assert payload != "\ud800"
    assert hash(payload) == hash(b"ab") == hash(ZBytes.join([b"a", b"b"]))


def test_bytes_that_are_no_text_say_where() -> None:
    with pytest.raises(ValueError, match="byte 1"):
        ZBytes(b"a\xff").to_string()
    with pytest.raises(SerializeError):
        str(ZBytes(b"\xff"))


def test_a_lone_surrogate_is_refused() -> None:
    with pytest.raises(SerializeError, match="surrogate"):
        ZBytes("a\ud800")


def test_an_index_outside_is_refused() -> None:
    for payload in (ZBytes(b"abc"), ZBytes.join([b"ab", b"c"])):
        for index in (3, -4):
            with pytest.raises(IndexError):
                payload[index]
        with pytest.raises(SerializeError, match="steps of 1"):
            payload[::2]


def test_a_long_payload_is_shown_in_part() -> None:
    assert repr(ZBytes(b"ab")) == "ZBytes(b'ab')"
    assert "1000000 bytes" in repr(ZBytes(bytes(1_000_000)))
    assert len(repr(ZBytes(bytes(1_000_000)))) < 400


def test_payloads_are_never_in_shared_memory() -> None:
    assert ZBytes(b"ab").as_shm() is None  # type: ignore[func-returns-value]


@given(pieces, st.integers(-40, 40), st.integers(-40, 40))
def test_a_rope_behaves_as_its_bytes(parts: list[bytes], start: int, end: int) -> None:
    whole = b"".join(parts)
    for payload in (
        ZBytes.join(parts),
        ZBytes(whole),
        ZBytes.window(b"<" + whole + b">", 1, len(whole) + 1),
    ):
        assert payload.to_bytes() == whole
        assert len(payload) == len(whole)
        assert bool(payload) is bool(whole)
        assert payload == whole
        assert hash(payload) == hash(whole)
        assert payload[start:end] == whole[start:end]
        assert payload[start:][: end - start] == whole[start:][: end - start]
        assert list(payload) == list(whole)
        assert b"".join(payload.slices()) == whole
        assert bytes(payload.view()) == whole
        assert pickle.loads(pickle.dumps(payload)) == payload
        if whole:
            assert payload[-1] == whole[-1]
