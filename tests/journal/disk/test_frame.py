"""Blocks: what is whole is found, and nothing else."""

from __future__ import annotations

import zlib

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from zenlake.journal.disk.frame import HEADER, Block, Torn, checksum, walk
from zenlake.journal.disk.segment import index_of

LONG = st.integers(-(1 << 63), (1 << 63) - 1)


def block_at(position: int, body: bytes, first: int = 0, rows: int = 1) -> bytes:
    block = Block(position, len(body), first, rows, 0, -1, 1, 2, 3)
    return block.header(checksum(block, [body])) + body


@given(
    length=st.integers(0, 1 << 40),
    first=st.integers(0, 1 << 62),
    rows=st.integers(0, (1 << 32) - 1),
    keys=st.integers(0, (1 << 32) - 1),
    stats=st.tuples(LONG, LONG, LONG, LONG),
)
def test_a_header_says_what_was_put_into_it(
    length: int, first: int, rows: int, keys: int, stats: tuple[int, int, int, int]
) -> None:
    block = Block(77, length, first, rows, keys, *stats)
    header = block.header(0xDEADBEEF)
    assert len(header) == HEADER.size == 64
    assert Block.parse(header, 77) == (block, 0xDEADBEEF)
    assert (block.end, block.after) == (first + rows, 77 + 64 + length)


def test_a_header_and_the_index_have_the_bytes_that_the_format_says() -> None:
    """As docs/reference/journal-format.md has them: journals of any age must be read."""
    header = bytes.fromhex(
        "5a4c4231 efbeadde 1800000000000000 0500000000000000 02000000 07000000"
        "feffffffffffffff 0100000000000000 0200000000000000 0300000000000000"
    )
    block = Block(77, 0x18, 5, 2, 7, -2, 1, 2, 3)
    assert block.header(0xDEADBEEF) == header
    assert Block.parse(header, 77) == (block, 0xDEADBEEF)
    crc = zlib.crc32(header * 2).to_bytes(4, "little")
    assert index_of([header, header], 0x0102) == (
        header * 2 + bytes.fromhex("0201000000000000 02000000") + crc + b"ZLINDEX1"
    )


@given(flip=st.integers(0, 8 * (64 + 24) - 1))
def test_one_changed_bit_anywhere_is_noticed(flip: int) -> None:
    data = bytearray(block_at(0, b"x" * 24))
    data[flip // 8] ^= 1 << flip % 8
    with pytest.raises(Torn):
        list(walk(pa.BufferReader(bytes(data)), 0, len(data), 0))


@given(data=st.binary(max_size=300))
def test_whatever_the_bytes_are_only_whole_blocks_come_out(data: bytes) -> None:
    good = block_at(0, b"good" * 4)
    found = []
    try:
        for block, _, body in walk(pa.BufferReader(good + data), 0, len(good + data), 0):
            found.append((block, bytes(body)))
    except Torn:
        pass
    assert [bytes(body) for _, body in found] == [b"good" * 4]


def test_a_whole_block_in_the_wrong_place_is_left_over_from_another_life() -> None:
    first = block_at(0, b"a" * 8, first=5, rows=2)
    stale = block_at(len(first), b"b" * 8, first=9)
    blocks = walk(pa.BufferReader(first + stale), 0, len(first + stale), 5)
    assert next(blocks)[0].end == 7
    with pytest.raises(Torn, match="begins with offset 9 where 7 is due"):
        next(blocks)


@given(parts=st.lists(st.binary(max_size=700), max_size=4))
def test_the_sum_is_the_crc_32_of_zlib_whoever_computes_it(parts: list[bytes]) -> None:
    block = Block(0, sum(len(part) for part in parts), 0, 1, 0, -1, 1, 2, 3)
    assert checksum(block, list(parts)) == zlib.crc32(block.header(0)[8:] + b"".join(parts))
