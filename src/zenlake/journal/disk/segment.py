"""A run of rows in one file: what is known about it without reading them.

A sealed segment ends with an index of its blocks, so that a reader finds rows by offset and time
without walking the file, and with the footer of an Arrow IPC file:

    | block | block | …                            frame.py
    | header of block | header of block | …        64 bytes each, as they stand in the file
    | first position  u64 | blocks u32 | crc u32 | "ZLINDEX1" |
    | end of stream | footer | length i32 | "ARROW1" |
"""

from __future__ import annotations

import struct
import zlib
from dataclasses import dataclass, replace
from typing import Any, Final

import pyarrow as pa

from zenlake.errors import JournalCorrupt
from zenlake.journal.disk.frame import HEADER, Block, Torn

__all__ = ["MOST_KEYS", "Segment", "index_of", "read_index"]

#: A segment with more distinct keys than this is known by its least and greatest only.
MOST_KEYS: Final = 256
_TRAILER: Final = struct.Struct("<QII8s")
_MAGIC: Final = b"ZLINDEX1"


@dataclass(frozen=True, slots=True)
class Segment:
    """Rows `first` to `end` (exclusive) of a partition, and where they are.

    `path` is relative to the journal, or the URI of another filesystem. `keys` is None when there
    are too many to list; `min_key` and `max_key` are always there. Times are microseconds.
    """

    first: int
    end: int
    bytes: int
    path: str
    sealed: bool
    min_time: int
    max_time: int
    min_hlc: int
    max_hlc: int
    keys: frozenset[str] | None
    min_key: str
    max_key: str
    closed: float = 0.0
    #: How many rows a rule of retention has retired; and the keys of which none is left but those.
    retired: int = 0
    retired_keys: frozenset[str] = frozenset()

    @property
    def rows(self) -> int:
        """How many rows there are."""
        return self.end - self.first

    @classmethod
    def of(
        cls,
        blocks: list[Block],
        keys: list[str],
        *,
        path: str,
        size: int,
        sealed: bool,
        closed: float = 0.0,
    ) -> Segment:
        """The segment that these blocks and keys make."""
        return cls(
            first=blocks[0].first,
            end=blocks[-1].end,
            bytes=size,
            path=path,
            sealed=sealed,
            min_time=min(block.min_time for block in blocks),
            max_time=max(block.max_time for block in blocks),
            min_hlc=min(block.min_hlc for block in blocks),
            max_hlc=max(block.max_hlc for block in blocks),
            keys=frozenset(keys) if len(keys) <= MOST_KEYS else None,
            min_key=min(keys),
            max_key=max(keys),
            closed=closed,
        )

    def at(self, path: str) -> Segment:
        """The same rows in another place."""
        return replace(self, path=path)

    def to_page(self) -> dict[str, Any]:
        """The segment as an entry of the manifest."""
        page = {
            "first": self.first,
            "end": self.end,
            "bytes": self.bytes,
            "path": self.path,
            "min_time": self.min_time,
            "max_time": self.max_time,
            "min_hlc": self.min_hlc,
            "max_hlc": self.max_hlc,
            "keys": None if self.keys is None else sorted(self.keys),
            "min_key": self.min_key,
            "max_key": self.max_key,
            "closed": self.closed,
        }
        if self.retired:
            # Only then: a zenlake that does not know retired rows must not take them for samples.
            page |= {"retired": self.retired, "retired_keys": sorted(self.retired_keys)}
        return page

    @classmethod
    def from_page(cls, page: dict[str, Any]) -> Segment:
        """The segment that an entry of the manifest describes."""
        keys = page["keys"]
        sets = {
            "keys": None if keys is None else frozenset(keys),
            "retired_keys": frozenset(page.get("retired_keys", ())),
        }
        return cls(**{**page, **sets, "sealed": True})


def index_of(headers: list[bytes], position: int) -> bytes:
    """The index that ends a segment whose first block stands at `position`."""
    index = b"".join(headers)
    return index + _TRAILER.pack(position, len(headers), zlib.crc32(index), _MAGIC)


def read_index(file: pa.NativeFile, where: str) -> list[Block]:
    """The blocks of a sealed segment, from its index."""
    size = file.size()
    try:
        ending = file.read_at(10, size - 10)
        # After the index: the end of the stream (8), the footer, its length (4), the magic (6).
        end = size - 18 - struct.unpack_from("<i", ending)[0]
        position, count, crc, magic = _TRAILER.unpack(
            file.read_at(_TRAILER.size, end - _TRAILER.size)
        )
        start = end - _TRAILER.size - count * HEADER.size
        if magic != _MAGIC or start < 0:
            raise Torn("no index stands in front of its footer")
        index = file.read_at(count * HEADER.size, start)
        if zlib.crc32(index) != crc:
            raise Torn("the checksum of its index does not match")
        blocks = []
        for at in range(0, len(index), HEADER.size):
            block, _ = Block.parse(index[at : at + HEADER.size], position)
            blocks.append(block)
            position = block.after
        if not blocks:
            raise Torn("its index is empty")
    except (OSError, ValueError, OverflowError, struct.error, Torn) as error:
        raise JournalCorrupt(
            f"{where} is not a whole segment: {error}; restore it from a copy of the journal"
        ) from error
    return blocks
