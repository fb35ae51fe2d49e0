"""Part of what a link brought, kept for later.

A batch or a message in fragments that is complete only with a later read is put together from its
pieces. A large piece stays where it was read, so that it is copied once; it keeps all of that read
alive, so a small piece is copied out.
"""

from __future__ import annotations

from typing import Final

#: Pieces smaller than this are copied: to keep what they lie in would cost as much.
WORTH: Final = 4096
#: Of a read, a piece that is left where it is makes up one in so many bytes at least.
KEPT: Final = 4

Piece = bytes | memoryview


def piece(data: bytes, start: int, end: int) -> Piece:
    """The bytes from `start` to `end`."""
    size = end - start
    if size < WORTH or size * KEPT < len(data):
        return data[start:end]
    return memoryview(data)[start:end]
