"""Why something failed, in one line of words."""

from __future__ import annotations

import errno
import re
from typing import Final

__all__ = ["is_disk_full", "reason_of"]

LONGEST: Final = 300

_WORDS: Final = (
    ("No space left on device", "the disk is full"),
    ("Disk quota exceeded", "the disk quota is used up"),
    ("Read-only file system", "the filesystem is read-only"),
    ("Permission denied", "permission denied"),
    ("Too many open files", "too many files are open"),
)
_FULL: Final = (
    "no space left on device", "disk quota exceeded", "the disk is full",
    "the disk quota is used up",
)  # fmt: skip
_NUMBERS: Final = {
    errno.ENOSPC: "the disk is full",
    errno.EDQUOT: "the disk quota is used up",
    errno.EROFS: "the filesystem is read-only",
    errno.EACCES: "permission denied",
    errno.EPERM: "permission denied",
    errno.EMFILE: "too many files are open",
}
_RAISED: Final = re.compile(
    r"^(?:[\w.]+\.)?(\w*(?:Error|Exception|Interrupt)): (.+)$", re.MULTILINE
)
_PATH: Final = re.compile(r"'(/[^'\n]+)'|\"(/[^\"\n]+)\"|(?<![\w/])(/[\w.@+-]+(?:/[\w.@+=-]+)+)")


def reason_of(error: BaseException) -> str:
    """Why something failed, in one line: what a disk says in words, else the innermost error.

    Errors of Spark's tasks carry the traceback of the worker as text; its last line is what
    happened there.
    """
    text = str(error) or type(error).__name__
    path = error.filename if isinstance(error, OSError) else None
    if path is None:
        match = _PATH.search(text)
        path = next((part for part in match.groups() if part), None) if match else None
    if isinstance(error, OSError) and error.errno in _NUMBERS:
        return _at(_NUMBERS[error.errno], path)
    for words, plain in _WORDS:
        if words.lower() in text.lower():
            return _at(plain, path)
    raised = _RAISED.findall(text)
    if raised:
        name, said = raised[-1]
        return _line(
            said if name in ("ZError", "JournalError", "LocalError") else f"{name}: {said}"
        )
    name = "" if type(error).__module__.startswith("zenlake") else f"{type(error).__name__}: "
    return _line(f"{name}{text}" if str(error) else text)


def is_disk_full(error: BaseException) -> bool:
    """Return True if there was no room on a disk, or no quota, here or in a task."""
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
        return True
    text = str(error).lower()
    return any(words in text for words in _FULL)


def _at(words: str, path: object) -> str:
    return words if path is None else f"{words}: {path}"


def _line(text: str) -> str:
    first = " ".join(text.strip().partition("\n")[0].split())
    return first if len(first) <= LONGEST else f"{first[:LONGEST]}…"
