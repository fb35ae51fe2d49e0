"""A block of the write-ahead file: a header that can be trusted, then Arrow messages.

    0        4        8                16               24       28       32
    +--------+--------+----------------+----------------+--------+--------+
    | "ZLB1" |  crc   |     length     |  first offset  |  rows  |  keys  |
    +--------+--------+----------------+----------------+--------+--------+
    |     min hlc     |     max hlc    |    min time    |    max time     |
    +-----------------+----------------+----------------+-----------------+
    | keys bytes: a dictionary message, when the block brings new keys    |
    | length − keys bytes: a record batch message                         |

Everything is little-endian. The CRC-32 covers the header from byte 8 on and all that follows.
Readers of the Arrow file format never see the headers: they find messages by the footer.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

import pyarrow as pa

try:
    # The same sum, faster: it uses the instructions that processors have for it.
    from isal.isal_zlib import crc32
except ImportError:  # not every machine has it
    from zlib import crc32

__all__ = ["HEADER", "Block", "Torn", "checksum", "crc32", "verified", "walk"]

HEADER: Final = struct.Struct("<4sIQqIIqqqq")
MAGIC: Final = b"ZLB1"


class Block(NamedTuple):
    """What a header says, and where it stands in its file."""

    position: int
    length: int
    first: int
    rows: int
    keys: int
    min_hlc: int
    max_hlc: int
    min_time: int
    max_time: int

    @property
    def end(self) -> int:
        """The offset after the last row."""
        return self.first + self.rows

    @property
    def after(self) -> int:
        """The position after the last byte."""
        return self.position + HEADER.size + self.length

    def header(self, crc: int) -> bytes:
        """The 64 bytes in front of the messages."""
        return HEADER.pack(MAGIC, crc, *self[1:])

    @classmethod
    def parse(cls, header: Any, position: int) -> tuple[Block, int]:
        """The block that a header announces, and its checksum; raises `Torn`."""
        if len(header) < HEADER.size:
            raise Torn("the header is cut off")
        magic, crc, *rest = HEADER.unpack(header)
        if magic != MAGIC:
            raise Torn(f"no block begins here: {magic!r} is not {MAGIC!r}")
        return cls(position, *rest), crc


class Torn(Exception):
    """The bytes from here on are not a whole block; says why."""


def checksum(block: Block, parts: list[Any]) -> int:
    """The CRC-32 of a block's header and messages."""
    crc = crc32(block.header(0)[8:])
    for part in parts:
        crc = crc32(part, crc)
    return crc


def verified(block: Block, data: pa.Buffer) -> pa.Buffer:
    """The messages of a block that an index announced, out of its bytes; raises `Torn`."""
    parsed, crc = Block.parse(bytes(data[: HEADER.size]), block.position)
    if parsed != block:
        raise Torn("its header is not the one in the index")
    body = data[HEADER.size :]
    if checksum(block, [body]) != crc:
        raise Torn(f"the checksum of {block.length} bytes does not match")
    return body


def walk(
    file: pa.NativeFile, position: int, size: int, first: int
) -> Iterator[tuple[Block, bytes, Any]]:
    """Every whole block from `position` on, its header and messages; raises `Torn` where they end.

    The offsets must go on from `first` without a gap: a block that is whole but out of place was
    left there by an earlier life of the file.
    """
    while position < size:
        file.seek(position)
        header = bytes(file.read_buffer(HEADER.size))
        block, crc = Block.parse(header, position)
        if block.first != first:
            raise Torn(f"the block begins with offset {block.first} where {first} is due")
        if block.after > size or block.keys > block.length:
            raise Torn(f"the block says {block.length} bytes, and the file ends before")
        body = file.read_buffer(block.length)
        if checksum(block, [body]) != crc:
            raise Torn(f"the checksum of {block.length} bytes does not match")
        yield block, header, body
        position, first = block.after, block.end
