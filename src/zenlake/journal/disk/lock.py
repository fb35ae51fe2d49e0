"""One writer for a journal: a lock that ends with its process, however that ends."""

from __future__ import annotations

import os
import sys
from typing import Protocol

from zenlake.errors import JournalLocked

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl

__all__ = ["Lock", "take_lock"]


class Lock(Protocol):
    """Held until it is released, or its holder is gone."""

    def release(self) -> None:
        """Let another writer in."""


class _FileLock:
    def __init__(self, fd: int) -> None:
        self._fd = fd

    def release(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


def take_lock(path: str) -> Lock:
    """Lock the file at `path`, and write there who did."""
    fd = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        if sys.platform == "win32":
            # Locked past the end, so that others can still read whose lock it is.
            os.lseek(fd, 1 << 20, os.SEEK_SET)
            msvcrt.locking(fd, msvcrt.LK_NBLCK, 1)
            os.lseek(fd, 0, os.SEEK_SET)
        else:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        holder = os.read(fd, 64).decode(errors="replace").strip() or "unknown"
        os.close(fd)
        raise JournalLocked(
            f"{os.path.dirname(path)} is being written by process {holder}; a journal has one "
            "writer: stop that process, or record into another folder"
        ) from error
    os.ftruncate(fd, 0)
    os.write(fd, f"{os.getpid()}\n".encode())
    return _FileLock(fd)
