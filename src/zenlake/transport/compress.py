"""Compressed batches: one byte in front says whether the rest is an LZ4 block.

    bit 0   1 the rest is an LZ4 block (raw: no frame, no size), 0 it is as it was

A batch is sent compressed only if that makes it smaller.
"""

from __future__ import annotations

from collections.abc import Callable

from zenlake.errors import DecodeError

Block = Callable[[bytes], bytes]


class Lz4:
    """The two directions of LZ4 blocks; needs the package `lz4`."""

    def __init__(self) -> None:
        """Raises `ImportError` if the package is missing."""
        import lz4.block

        self._compress = lz4.block.compress
        self._decompress = lz4.block.decompress
        self._error: type[Exception] = lz4.block.LZ4BlockError

    def pack(self, batch: bytes) -> bytes:
        """A batch with its header byte."""
        block: bytes = self._compress(batch, store_size=False)
        return b"\1" + block if len(block) < len(batch) else b"\0" + batch

    def unpack(self, data: bytes, limit: int) -> bytes:
        """The batch again; never larger than `limit`."""
        if not data:
            raise DecodeError("an empty batch, without its header", 0)
        if not data[0] & 1:
            return data[1:]
        try:
            batch: bytes = self._decompress(data[1:], uncompressed_size=limit)
        except (self._error, ValueError, OverflowError, MemoryError) as error:
            raise DecodeError(f"the batch is no LZ4 block of at most {limit} bytes", 0) from error
        return batch
