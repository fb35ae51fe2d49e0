from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zenlake.errors import DecodeError
from zenlake.transport.stream import BatchDeframer


def fed(deframer: BatchDeframer, data: bytes, limit: int = 65535) -> list[bytes]:
    deframer.feed(data, limit)
    first = [deframer.first[deframer.prefix :]] if deframer.first else []
    bounds = zip(deframer.starts, deframer.ends, strict=True)
    return first + [data[start:end] for start, end in bounds]


def framed(batches: list[bytes], prefix: int = 2) -> bytes:
    return b"".join(len(batch).to_bytes(prefix, "little") + batch for batch in batches)


def test_whole_batches_are_cut_without_a_copy() -> None:
    data = framed([b"one", b"", b"three"])
    deframer = BatchDeframer()
    deframer.feed(data, 65535)
    assert deframer.first == b""
    assert (deframer.starts, deframer.ends) == ([2, 7, 9], [5, 7, 14])


@pytest.mark.parametrize("prefix", [2, 4])
@given(data=st.data())
def test_chunking_never_changes_the_batches(prefix: int, data: st.DataObject) -> None:
    batches = data.draw(st.lists(st.binary(max_size=300), max_size=8))
    stream = framed(batches, prefix)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=12)))
    deframer = BatchDeframer(prefix)
    found: list[bytes] = []
    for start, stop in zip([0, *cuts], [*cuts, len(stream)], strict=True):
        found += fed(deframer, stream[start:stop])
    assert found == batches


def test_a_stream_may_come_byte_by_byte() -> None:
    deframer = BatchDeframer()
    stream = framed([b"a" * 300, b"b"])
    found = [batch for byte in stream for batch in fed(deframer, bytes((byte,)))]
    assert found == [b"a" * 300, b"b"]


def test_a_batch_longer_than_agreed_is_refused_before_it_comes() -> None:
    with pytest.raises(DecodeError, match="2000 bytes announced, 1022 agreed"):
        BatchDeframer().feed((2000).to_bytes(2, "little"), 1022)


def test_a_long_length_of_low_latency_mode_is_refused_too() -> None:
    with pytest.raises(DecodeError, match="4294967295 bytes announced"):
        BatchDeframer(4).feed(b"\xff" * 4, 65535)
