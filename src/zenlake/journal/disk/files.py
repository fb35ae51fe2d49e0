"""The disk, as the journal sees it: a handful of operations, so that a test can be a worse disk.

Everything the writer does to the disk goes through `JournalFiles`, everything a reader does through
`Shelf`. Paths are relative to the journal and use `/`.
"""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Sequence
from typing import Any, Protocol

import pyarrow as pa

from zenlake.journal.disk.direct import DirectFile, open_pages
from zenlake.journal.disk.lock import Lock, take_lock

__all__ = ["File", "JournalFiles", "LocalFiles", "Shelf", "replace"]

#: How much `os.write` is asked to take at once; Linux stops just below 2 GiB.
_ONE_WRITE = 1 << 30


class File(Protocol):
    """A file that only grows, except when a failed write is taken back."""

    def write(self, parts: Sequence[Any]) -> None:
        """Append all bytes of all parts, or raise `OSError`; some of them may then be there."""

    def truncate(self, size: int) -> None:
        """Forget what comes after `size` bytes, and append there from now on."""

    def fsync(self) -> None:
        """Return when the bytes survive a loss of power."""

    def close(self) -> None:
        """Let go of the file."""


class Shelf(Protocol):
    """Where a reader finds files; a missing one is `FileNotFoundError`."""

    def read(self, path: str) -> bytes:
        """All bytes of a small file."""

    def open(self, path: str) -> pa.NativeFile:
        """A file to read from anywhere, without a copy where the system allows it."""

    def mark(self, path: str) -> object:
        """Changes when another file has this name; None where that cannot be known."""

    def list(self, path: str) -> list[str]:
        """The names in a folder, sorted; empty when there is none."""


class JournalFiles(Shelf, Protocol):
    """A disk of which we are the only writer."""

    def lock(self) -> Lock:
        """Become the only writer, or raise `JournalLocked`."""

    def make(self, path: str) -> None:
        """Create a folder unless it is there."""

    def create(self, path: str) -> File:
        """A new empty file, in place of any that had its name."""

    def extend(self, path: str) -> File:
        """A file that is there, to append to."""

    def rename(self, old: str, new: str) -> None:
        """Give a file a name at once, taking that name from any other."""

    def remove(self, path: str) -> None:
        """Delete a file; a process that has it open keeps reading it."""

    def sync(self, path: str) -> None:
        """Return when the names in a folder survive a loss of power."""


def replace(files: JournalFiles, path: str, data: bytes, *, durable: bool = True) -> None:
    """Put `data` at `path` so that a reader, or a crash, finds the old or the new whole."""
    temporary = path + ".tmp"
    file = files.create(temporary)
    try:
        file.write([data])
        if durable:
            file.fsync()
    finally:
        file.close()
    files.rename(temporary, path)


class _LocalFile:
    """A file descriptor in append mode."""

    def __init__(self, path: str, flags: int) -> None:
        flags |= os.O_WRONLY | os.O_APPEND | getattr(os, "O_BINARY", 0)
        self._fd = os.open(path, flags, 0o644)

    def write(self, parts: Sequence[Any]) -> None:
        for part in parts:
            view = memoryview(part).cast("B")
            while view:
                view = view[os.write(self._fd, view[:_ONE_WRITE]) :]

    def truncate(self, size: int) -> None:
        os.ftruncate(self._fd, size)

    def fsync(self) -> None:
        os.fsync(self._fd)

    def close(self) -> None:
        os.close(self._fd)


def _appended(path: str, flags: int, direct: bool) -> File:
    """A file to append to, written past the page cache if `direct` and that is possible."""
    if direct and hasattr(os, "O_DIRECT"):
        with contextlib.suppress(OSError):  # not every filesystem can
            return DirectFile(open_pages(path, flags))
    return _LocalFile(path, flags)


#: Descriptors that are kept for the moment when the process has no others.
SPARE = 4
#: Folders that stay open, so that their names can be synced without another descriptor.
MOST_FOLDERS = 64


class LocalFiles:
    """A folder of this machine, in which only its owner may look.

    `direct`: files to append to are written past the page cache, where the system can.
    """

    def __init__(self, root: str | os.PathLike[str], *, direct: bool = True) -> None:
        self._direct = direct
        self.root = os.path.abspath(root)
        self._spare: list[int] = []
        self._folders: dict[str, int] = {}

    def __del__(self) -> None:
        for fd in (*self._spare, *self._folders.values()):
            with contextlib.suppress(OSError):
                os.close(fd)

    def __repr__(self) -> str:
        return f"LocalFiles({self.root!r})"

    def _at(self, path: str) -> str:
        return os.path.join(self.root, path) if path else self.root

    def read(self, path: str) -> bytes:
        """All bytes of a small file."""
        with open(self._at(path), "rb") as file:
            return file.read()

    def open(self, path: str) -> pa.NativeFile:
        """Map the file: columns that nobody looks at are never read."""
        where = self._at(path)
        # An empty file cannot be mapped.
        return pa.memory_map(where, "r") if os.path.getsize(where) else pa.BufferReader(b"")

    def mark(self, path: str) -> object:
        """Which file it is, and when it was written last."""
        status = os.stat(self._at(path))
        return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns

    def list(self, path: str) -> list[str]:
        """The names in a folder, sorted; empty when there is none."""
        try:
            return sorted(os.listdir(self._at(path)))
        except FileNotFoundError:
            return []

    def lock(self) -> Lock:
        """Become the only writer, or raise `JournalLocked`."""
        if not os.path.isdir(self.root):
            self.make("")
            LocalFiles(os.path.dirname(self.root)).sync("")
        self._reserve()
        return take_lock(self._at("lock"))

    def _reserve(self) -> None:
        """Keep some descriptors for the moment when there are no others."""
        with contextlib.suppress(OSError):
            while len(self._spare) < SPARE:
                self._spare.append(os.open(os.devnull, os.O_RDONLY))

    def _opened(self, path: str, flags: int) -> File:
        """A file to append to; a process without descriptors takes one that was kept."""
        if not self._spare:
            return _appended(self._at(path), flags, self._direct)
        try:
            file = _appended(self._at(path), flags, self._direct)
        except OSError as error:
            if error.errno not in (errno.EMFILE, errno.ENFILE):
                raise
            os.close(self._spare.pop())
            return _appended(self._at(path), flags, self._direct)
        if len(self._spare) < SPARE:
            self._reserve()
        return file

    def make(self, path: str) -> None:
        """Create a folder unless it is there."""
        # What is recorded may be anything: nobody else on this machine may read it.
        os.makedirs(self._at(path), 0o700, exist_ok=True)

    def create(self, path: str) -> File:
        """A new empty file, in place of any that had its name."""
        return self._opened(path, os.O_CREAT | os.O_TRUNC)

    def extend(self, path: str) -> File:
        """A file that is there, to append to."""
        return self._opened(path, 0)

    def rename(self, old: str, new: str) -> None:
        """Give a file a name at once, taking that name from any other."""
        os.replace(self._at(old), self._at(new))

    def remove(self, path: str) -> None:
        """Delete a file; a process that has it open keeps reading it."""
        os.remove(self._at(path))

    def sync(self, path: str) -> None:
        """Return when the names in a folder survive a loss of power."""
        if os.name == "nt":
            return  # Windows opens no folders, and its renames are journalled
        known = self._folders.get(path)
        if known is not None and _same(known, self._at(path)):
            os.fsync(known)
            return
        fd = os.open(self._at(path), os.O_RDONLY)
        try:
            os.fsync(fd)
        except BaseException:
            os.close(fd)
            raise
        if known is not None:
            os.close(known)
        elif len(self._folders) >= MOST_FOLDERS:
            os.close(fd)
            return
        self._folders[path] = fd


def _same(fd: int, path: str) -> bool:
    """Whether an open folder is still the one of that name."""
    opened, named = os.fstat(fd), os.stat(path)
    return (opened.st_dev, opened.st_ino) == (named.st_dev, named.st_ino)
