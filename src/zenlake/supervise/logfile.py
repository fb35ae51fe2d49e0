"""The log of a part: a file of bounded size, whose failure stops nothing."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import IO, Final

__all__ = ["LogFile"]

MOST: Final = 4 << 20
"""Bytes of a log before it is put aside."""

KEPT: Final = 3
"""How many logs are put aside; the oldest goes."""


class LogFile:
    """A file of at most a few megabytes, with the ones before it beside it."""

    def __init__(self, path: Path, most: int = MOST, kept: int = KEPT) -> None:
        """`path.1` is the log before it, and so on up to `kept`."""
        self.path = path
        self._most = most
        self._kept = kept
        self._file: IO[bytes] | None = None
        self._size = 0

    def write(self, line: bytes) -> None:
        """Append a line; on a full disk it is lost."""
        try:
            if self._file is None or self._size + len(line) > self._most:
                self._open(rotate=self._file is not None)
            assert self._file is not None
            self._file.write(line)
            self._file.flush()
            self._size += len(line)
        except OSError:
            # Nothing can be said about it here; the disk has a line of its own in the status.
            self.close()

    def _open(self, rotate: bool) -> None:
        self.close()
        self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        size = self.path.stat().st_size if self.path.exists() else 0
        if rotate or size >= self._most:
            for number in range(self._kept, 0, -1):
                older = self._aside(number - 1)
                if older.exists():
                    os.replace(older, self._aside(number))
            size = 0
        self._file = self.path.open("ab")
        self._size = size

    def _aside(self, number: int) -> Path:
        return self.path.with_name(f"{self.path.name}.{number}") if number else self.path

    def close(self) -> None:
        """Let go of the file; the next line opens it again."""
        if self._file is not None:
            with contextlib.suppress(OSError):
                self._file.close()
            self._file = None
