"""Batches out of a stream of bytes, and back."""

from __future__ import annotations

from zenlake.errors import DecodeError
from zenlake.transport.piece import Piece, piece


class BatchDeframer:
    """Cuts a stream into batches by the length in front of each.

    Complete batches are not copied: `feed` leaves the bounds of those that lie in the bytes it was
    given in `starts` and `ends`. Only a batch that came in pieces is put together, in `first`; it
    comes before the others.
    """

    __slots__ = ("_kept", "_kept_size", "_wanted", "ends", "first", "prefix", "starts")

    def __init__(self, prefix: int = 2) -> None:
        """`prefix`: how many bytes a length has, little-endian (4 in low-latency mode)."""
        self.prefix: int = prefix
        self.first: bytes = b""
        self.starts: list[int] = []
        self.ends: list[int] = []
        #: Pieces of an incomplete batch; they keep the reads that they lie in.
        self._kept: list[Piece] = []
        self._kept_size: int = 0
        self._wanted: int = 0

    def feed(self, data: bytes, limit: int) -> None:
        """Take more bytes in; a batch announced longer than `limit` is refused."""
        starts: list[int] = []
        ends: list[int] = []
        self.first = b""
        self.starts = starts
        self.ends = ends
        prefix = self.prefix
        pos = 0
        end = len(data)
        while self._kept_size:
            # The rest of what is wanted, and no more: what follows stays where it is.
            taken = min(self._wanted - self._kept_size, end - pos)
            if taken:
                self._keep(data, pos, pos + taken)
                pos += taken
            if self._kept_size < self._wanted:
                return
            batch = b"".join(self._kept)
            size = self._size(batch, 0, limit)
            if len(batch) < prefix + size:
                self._kept = [batch]
                self._wanted = prefix + size
                continue
            self._kept = []
            self._kept_size = 0
            self.first = batch
        while pos + prefix <= end:
            size = self._size(data, pos, limit)
            stop = pos + prefix + size
            if stop > end:
                self._wanted = stop - pos
                break
            starts.append(pos + prefix)
            ends.append(stop)
            pos = stop
        else:
            self._wanted = prefix
        if pos < end:
            self._keep(data, pos, end)

    def _keep(self, data: bytes, start: int, end: int) -> None:
        """Keep a piece for later: a batch of 64 KiB is rarely in one read."""
        self._kept.append(piece(data, start, end))
        self._kept_size += end - start

    def _size(self, data: bytes, pos: int, limit: int) -> int:
        """The length announced at `pos`."""
        size = data[pos] | (data[pos + 1] << 8)
        if self.prefix == 4:
            size |= (data[pos + 2] << 16) | (data[pos + 3] << 24)
        if size > limit:
            raise DecodeError(f"a batch of {size} bytes announced, {limit} agreed", pos)
        return size
