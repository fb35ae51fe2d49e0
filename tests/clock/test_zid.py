from __future__ import annotations

import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zenlake.clock import TimestampId, ZenohId
from zenlake.errors import LocatorError

ids = st.binary(min_size=1, max_size=16).filter(any)


@pytest.mark.parametrize(
    ("wire", "text"),
    [
        ("b3a201", "1a2b3"),
        ("01", "1"),
        ("0001", "100"),
        ("10", "10"),
        ("ff" * 16, "ff" * 16),
        ("00" * 15 + "0f", "f" + "00" * 15),
    ],
)
def test_text_is_the_number_most_significant_digit_first(wire: str, text: str) -> None:
    zid = ZenohId(bytes.fromhex(wire))
    assert str(zid) == text
    assert ZenohId.parse(text) == zid
    assert bytes(ZenohId.parse(text)) == bytes.fromhex(wire)


@pytest.mark.parametrize(
    ("text", "advice"),
    [
        ("", "1 to 32"),
        ("0", "zero is not an id"),
        ("0000", "zero is not an id"),
        ("01", "write '1'"),
        ("1A", "write '1a'"),
        ("xyz", "not hexadecimal"),
        ("1_0", "not hexadecimal"),
        ("+1", "not hexadecimal"),
        (" 1", "not hexadecimal"),
        ("٣", "not hexadecimal"),
        ("1" * 33, "33 digits"),
    ],
)
def test_text_that_is_no_id_is_refused_with_advice(text: str, advice: str) -> None:
    with pytest.raises(LocatorError, match=advice):
        ZenohId.parse(text)


@pytest.mark.parametrize("data", [b"", b"\0", bytes(16), b"\1" * 17, bytes(17)])
def test_bytes_that_are_no_id_are_refused(data: bytes) -> None:
    with pytest.raises(LocatorError):
        ZenohId(data)


def test_high_zero_bytes_do_not_matter() -> None:
    assert ZenohId(b"\1\0\0") == ZenohId(b"\1")
    assert hash(ZenohId(b"\1\0\0")) == hash(ZenohId(b"\1"))
    assert len(ZenohId(b"\1\0\0")) == 1


def test_an_id_is_not_its_text_nor_its_bytes() -> None:
    assert ZenohId(b"\1") != "1"
    assert ZenohId(b"\1") != b"\1"
    with pytest.raises(TypeError):
        ZenohId("1")  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        _ = ZenohId(b"\1") < b"\2"


def test_the_least_significant_byte_decides_the_order_first() -> None:
    assert ZenohId(b"\0\1") < ZenohId(b"\1")
    assert ZenohId.parse("100") < ZenohId.parse("2")
    assert ZenohId.parse("2") >= ZenohId.parse("100")


def test_a_timestamp_id_is_a_node_id() -> None:
    assert TimestampId(b"\1") == ZenohId(b"\1")


@given(ids, ids)
def test_order_is_that_of_the_sixteen_byte_arrays(a: bytes, b: bytes) -> None:
    padded = a.ljust(16, b"\0"), b.ljust(16, b"\0")
    assert (ZenohId(a) < ZenohId(b)) == (padded[0] < padded[1])
    assert (ZenohId(a) <= ZenohId(b)) == (padded[0] <= padded[1])
    assert (ZenohId(a) > ZenohId(b)) == (padded[0] > padded[1])
    assert (ZenohId(a) >= ZenohId(b)) == (padded[0] >= padded[1])
    assert (ZenohId(a) == ZenohId(b)) == (padded[0] == padded[1])


@given(ids)
def test_text_bytes_number_and_pickle_bring_the_same_id_back(data: bytes) -> None:
    zid = ZenohId(data)
    assert ZenohId.parse(str(zid)) == zid
    assert ZenohId(bytearray(bytes(zid))) == zid
    assert int(zid) == int(str(zid), 16)
    assert pickle.loads(pickle.dumps(zid)) == zid
    assert repr(zid) == str(zid)  # as in the original
