"""Batches out of a stream of bytes, and back."""

from __future__ import annotations

from zenlake.errors import DecodeError


class Deframer:
    """Cuts a stream into batches by the length in front of each.

    Whole batches are not copied: `feed` returns the buffer to read from and leaves the bounds of
    its batches in `starts` and `ends`. Only the piece of an unfinished batch is kept.
    """

    __slots__ = ("_kept", "_kept_size", "_wanted", "ends", "prefix", "starts")

    def __init__(self, prefix: int = 2) -> None:
        """`prefix`: how many bytes a length has, little-endian (4 in low-latency mode)."""
        self.prefix: int = prefix
        self.starts: list[int] = []
        self.ends: list[int] = []
        self._kept: list[bytes] = []
        self._kept_size: int = 0
        self._wanted: int = 0

    def feed(self, data: bytes, limit: int) -> bytes:
        """Take more bytes in; a batch announced longer than `limit` is refused."""
        if self._kept_size:
            self._kept.append(data)
            self._kept_size += len(data)
            if self._kept_size < self._wanted:
                self.starts = []
                self.ends = []
                return b""
            data = b"".join(self._kept)
            self._kept = []
            self._kept_size = 0
            self._wanted = 0
        starts: list[int] = []
        ends: list[int] = []
        prefix = self.prefix
        pos = 0
        end = len(data)
        while pos + prefix <= end:
            size = data[pos] | (data[pos + 1] << 8)
            if prefix == 4:
                size |= (data[pos + 2] << 16) | (data[pos + 3] << 24)
            if size > limit:
                raise DecodeError(f"a batch of {size} bytes announced, {limit} agreed", pos)
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
            self._kept = [data[pos:]]
            self._kept_size = end - pos
        self.starts = starts
        self.ends = ends
        return data
