"""How large rows are, told by the headers of their blocks: no row is read for it."""

from __future__ import annotations

from typing import NamedTuple

from zenlake.journal.disk.files import Shelf
from zenlake.journal.disk.frame import HEADER, Block, Torn
from zenlake.journal.disk.messages import preamble
from zenlake.journal.disk.writeahead import segment_schema

__all__ = ["BlockSize", "TailSizes"]


class BlockSize(NamedTuple):
    """The rows `first` to `end` (exclusive), and how many bytes they have together."""

    first: int
    end: int
    bytes: int


class TailSizes:
    """The blocks of a write-ahead file, by their headers alone; it grows while it is looked at.

    Checksums are not compared: what is told here is for plans, and who reads the rows compares.
    """

    def __init__(self, shelf: Shelf, path: str, journal: str, partition: int, first: int) -> None:
        """Nothing is known yet."""
        self._shelf = shelf
        self._path = path
        self.first = first
        self._next = first
        self._position = len(preamble(segment_schema(journal, partition, first)))
        self._sizes: list[BlockSize] = []

    def upto(self, end: int) -> list[BlockSize]:
        """The blocks with rows below `end`, as many as are whole.

        Raises `FileNotFoundError` when the file was sealed meanwhile.
        """
        if self._next < end:
            with self._shelf.open(self._path) as file:
                size = file.size()
                while self._next < end and self._position + HEADER.size <= size:
                    try:
                        header = file.read_at(HEADER.size, self._position)
                        block, _ = Block.parse(header, self._position)
                    except Torn:
                        break
                    if block.first != self._next or block.rows <= 0 or block.after > size:
                        break
                    self._sizes.append(BlockSize(block.first, block.end, block.length))
                    self._next, self._position = block.end, block.after
        return self._sizes
