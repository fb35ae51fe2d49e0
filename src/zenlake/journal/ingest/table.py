"""Rows as machine words: what the walk over batches writes and columns are made of.

A row is five words:

    the value, as Arrow's "view"     two words: length, and the bytes themselves if they are few,
                                     or else which of the chunks that are kept, and where in it
    time                             of its timestamp, or the one that it was given here, shifted
                                     as `hlc` is
    flags                            QoS, kind, reliability, whether it has a timestamp, encoding
    numbers                          of its key, and of the id in its timestamp

What few messages have (source information, attachments, encoding schemas) goes into lists of
their own. `zenlake.journal.ingest.columns` makes columns of all that, many rows at a time.
"""

from __future__ import annotations

from typing import Final

from librt.strings import BytesWriter, read_i32_le, read_i64_le, write_i32_le, write_i64_le
from mypy_extensions import i32, i64

#: The longest value that a view holds itself.
INLINE: Final = 12
#: Bytes of a row in the table.
ROW: Final = 40
#: Bits of a row's flags; the QoS byte is below them, the encoding above.
DELETED: Final = 0x100
RELIABLE: Final = 0x200
UNSTAMPED: Final = 0x400


class RowTable:
    """Rows under construction, or handed over."""

    __slots__ = (
        "attachments", "chunk", "chunk_number", "chunks", "count", "frames", "held", "ids", "keys",
        "rows", "schemas", "sources",
    )  # fmt: skip

    def __init__(self, keys: list[str], ids: list[bytes]) -> None:
        """The numbers of keys and ids count in these lists, which grow."""
        self.keys: list[str] = keys
        self.ids: list[bytes] = ids
        self.chunks: list[bytes] = []
        #: The bytes of all chunks.
        self.held: int = 0
        #: The chunk that lanes walk on, and its number.
        self.chunk: bytes = b""
        self.chunk_number: i64 = -1
        self.count: i64 = 0
        self.rows: BytesWriter = BytesWriter()
        #: Of each stretch of rows: how many, and when they were received in µs.
        self.frames: BytesWriter = BytesWriter()
        #: Row, number of the id, entity, sequence number.
        self.sources: BytesWriter = BytesWriter()
        #: Row, and the two words of a view.
        self.attachments: BytesWriter = BytesWriter()
        self.schemas: BytesWriter = BytesWriter()

    def keep(self, data: bytes) -> i64:
        """Keep a chunk; its number."""
        chunks = self.chunks
        chunks.append(data)
        self.held += len(data)
        return len(chunks) - 1

    def forget(self) -> None:
        """The chunk that was kept last is not needed."""
        self.held -= len(self.chunks.pop())
        self.chunk = b""

    def view(self, out: BytesWriter, data: bytes) -> None:
        """Write the view of some bytes that are a chunk of their own."""
        size: i64 = len(data)
        if size > INLINE:
            write_i64_le(out, size)
            write_i64_le(out, self.keep(data))
        else:
            write_view(out, data, 0, size, 0)


def write_view(out: BytesWriter, data: bytes, at: i64, size: i64, chunk: i64) -> None:
    """Write the view of `data[at : at + size]`, where `data` is the chunk of that number."""
    if size > INLINE:
        write_i64_le(out, size)
        write_i64_le(out, chunk | (at << 32))
    elif at + INLINE <= len(data):
        # What follows the value is never looked at.
        write_i32_le(out, i32(size))
        write_i32_le(out, read_i32_le(data, at))
        write_i64_le(out, read_i64_le(data, at + 4))
    else:
        write_i32_le(out, i32(size))
        for i in range(INLINE):
            out.append(data[at + i] if i < size else 0)
