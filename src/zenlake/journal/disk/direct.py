"""Writing past the memory that the system keeps for files.

What a journal writes is rarely read soon, and copying it into memory that the system must find
first can cost many times the writing itself. Whole pages go to the disk from a buffer; the page
that is not full yet is written again when it has grown, with the same bytes before the new ones.

What is asked of the system is a handful of operations, so that a test can be a worse one.
"""

from __future__ import annotations

import contextlib
import mmap
import os
from collections.abc import Sequence
from typing import Any, Final, Protocol

__all__ = ["PAGE", "DirectFile", "PageFile", "open_pages"]

#: What is written directly is gathered in a buffer of this size, and written in whole pages.
STAGE: Final = 1 << 20
PAGE: Final = 4096


class PageFile(Protocol):
    """A file that is read and written in whole pages, from memory that begins with one."""

    def size(self) -> int:
        """How many bytes it has."""

    def read(self, into: memoryview, position: int) -> None:
        """Read up to as many bytes as there is room for."""

    def write(self, data: memoryview, position: int) -> int:
        """Write pages over what is there or behind it; tells how many bytes were taken."""

    def truncate(self, size: int) -> None:
        """Cut it to so many bytes."""

    def fsync(self) -> None:
        """Return when the bytes survive a loss of power."""

    def close(self) -> None:
        """Let go of it."""


class _SystemPages:
    """Pages of a file of this machine."""

    def __init__(self, fd: int) -> None:
        self._fd = fd

    def size(self) -> int:
        return os.fstat(self._fd).st_size

    def read(self, into: memoryview, position: int) -> None:
        os.preadv(self._fd, [into], position)

    def write(self, data: memoryview, position: int) -> int:
        return os.pwrite(self._fd, data, position)

    def truncate(self, size: int) -> None:
        os.ftruncate(self._fd, size)

    def fsync(self) -> None:
        os.fsync(self._fd)

    def close(self) -> None:
        os.close(self._fd)


def open_pages(path: str, flags: int) -> PageFile:
    """A file of this machine; raises `OSError` where its filesystem cannot be written directly."""
    return _SystemPages(os.open(path, flags | os.O_RDWR | os.O_DIRECT, 0o644))


class DirectFile:
    """A file that only grows, written in whole pages."""

    def __init__(self, pages: PageFile) -> None:
        """Append to what is there; closes it if that cannot be read."""
        self._pages = pages
        self._buffer = mmap.mmap(-1, STAGE)
        self._view = memoryview(self._buffer)
        self._size = 0
        #: How many bytes of the last page are in the buffer.
        self._tail = 0
        try:
            self._size = pages.size()
            self._load()
        except OSError:
            self.close()
            raise

    def _load(self) -> None:
        """Have the bytes of the last page in the buffer."""
        self._tail = self._size % PAGE
        if self._tail:
            self._pages.read(self._view[:PAGE], self._size - self._tail)

    def write(self, parts: Sequence[Any]) -> None:
        """Append all bytes of all parts, or raise `OSError`; some of them may then be there."""
        filled = self._tail
        for part in parts:
            view = memoryview(part).cast("B")
            while view:
                taken = min(len(view), STAGE - filled)
                self._view[filled : filled + taken] = view[:taken]
                view = view[taken:]
                filled += taken
                if filled == STAGE:
                    self._put(filled, filled)
                    filled = 0
        if filled != self._tail:
            padded = -(-filled // PAGE) * PAGE
            self._view[filled:padded] = bytes(padded - filled)
            self._put(padded, filled)

    def _put(self, length: int, filled: int) -> None:
        """Write the pages of the buffer, of which so many bytes count."""
        start = self._size - self._tail
        done = 0
        while done < length:
            done += self._pages.write(self._view[done:length], start + done)
        self._size = start + filled
        self._tail = filled % PAGE
        if self._tail:
            self._pages.truncate(self._size)
            written = filled - self._tail
            if written:
                self._view[: self._tail] = self._view[written:filled]

    def truncate(self, size: int) -> None:
        """Forget what comes after `size` bytes, and append there from now on."""
        self._pages.truncate(size)
        self._size = size
        self._load()

    def fsync(self) -> None:
        """Return when the bytes survive a loss of power."""
        self._pages.fsync()

    def close(self) -> None:
        """Let go of the file."""
        self._view.release()
        # The error of a write that failed holds on to what was written, and it to the buffer.
        with contextlib.suppress(BufferError):
            self._buffer.close()
        self._pages.close()
