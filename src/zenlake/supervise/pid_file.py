"""A data folder has one `zenlake up`: a lock that ends with its process, and a page of facts."""

from __future__ import annotations

import contextlib
import json
import os
import sys
from pathlib import Path
from typing import Any, Final

from zenlake.errors import ZError

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl

__all__ = ["InUse", "PidFile", "page_of", "running"]

LOCK: Final = "up.lock"
PAGE: Final = "up.json"


class InUse(ZError):
    """Another `zenlake up` has the folder."""


class PidFile:
    """Held while `zenlake up` runs in a folder."""

    def __init__(self, data: Path) -> None:
        """Take the folder; raises `InUse` if another one has it, `OSError` if it cannot."""
        self._data = data
        self._fd = os.open(data / LOCK, os.O_RDWR | os.O_CREAT, 0o644)
        if not _locked(self._fd, wanted=True):
            holder = os.read(self._fd, 32).decode(errors="replace").strip() or "unknown"
            os.close(self._fd)
            raise InUse(
                f"{data} is in use by the `zenlake up` with process id {holder}; ask it with "
                f"`zenlake status --data {data}`, stop it, or choose another folder with --data"
            )
        os.ftruncate(self._fd, 0)
        os.write(self._fd, f"{os.getpid()}\n".encode())

    def write_status(self, page: str) -> None:
        """Write down where and how it is; raises `OSError` where that cannot be."""
        fresh = self._data / f".{PAGE}.new"
        fresh.write_text(page, "utf-8")
        os.replace(fresh, self._data / PAGE)

    def release(self) -> None:
        """Let another one in."""
        if self._fd >= 0:
            with contextlib.suppress(OSError):
                (self._data / PAGE).unlink(missing_ok=True)
            os.close(self._fd)
            self._fd = -1


def running(data: Path) -> bool:
    """Whether some `zenlake up` has the folder."""
    try:
        fd = os.open(data / LOCK, os.O_RDWR)
    except PermissionError:
        return (data / PAGE).exists()
    except OSError:
        return False
    try:
        return not _locked(fd, wanted=False)
    finally:
        os.close(fd)


def page_of(data: Path) -> dict[str, Any] | None:
    """What the one that runs there wrote last; None if nothing can be read."""
    try:
        page = json.loads((data / PAGE).read_text("utf-8"))
    except (OSError, ValueError):
        return None
    return page if isinstance(page, dict) else None


def _locked(fd: int, *, wanted: bool) -> bool:
    """Try to lock; `wanted` for good, otherwise only to see whether another one has it."""
    try:
        if sys.platform == "win32":
            os.lseek(fd, 1 << 20, os.SEEK_SET)
            msvcrt.locking(fd, msvcrt.LK_NBLCK, 1)
            os.lseek(fd, 0, os.SEEK_SET)
        else:
            how = fcntl.LOCK_EX if wanted else fcntl.LOCK_SH
            fcntl.flock(fd, how | fcntl.LOCK_NB)
    except OSError:
        return False
    return True
