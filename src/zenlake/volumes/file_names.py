"""File names for keys, and back: what a filesystem forbids is written as `%` and two digits.

    robot/7/pose        robot/7/pose
    a/.hidden           a/%2Ehidden
    a:b/50%             a%3Ab/50%25

A key may have others below it (`a` and `a/b`), a file may not: such a key's file has a `%` at
its end (`a%`), which no escaped name has. Chunks too long for a file name are named by a digest
(`%~…`), and so is a whole key whose path the system does not take: too long, too deep, or with a
name that it forbids. Their keys are known from the records beside the files.
"""

from __future__ import annotations

import hashlib
import re
from typing import Final

__all__ = ["BESIDE", "digest_of", "is_digest", "key_of", "path_of"]

BESIDE: Final = "%"
"""At the end of a file name: the key has others below it."""

_LONGEST: Final = 240
# Control characters, what Windows forbids, and the escape itself.
_FORBIDDEN: Final = re.compile(r'[\x00-\x1f\x7f%\\:*?"<>|]')
# Names that mean something (., ..), are hidden, or lose their end on some systems.
_EDGES: Final = re.compile(r"^\.|[. ]$")
_ESCAPED: Final = re.compile(r"%([0-9A-F]{2})")
_DIGEST: Final = "%~"


def path_of(key: str) -> str:
    """The relative path of a key's file."""
    return "/".join(map(_name, key.split("/")))


def digest_of(key: str) -> str:
    """The name of a key's file where the system does not take its path."""
    return _DIGEST + "~" + hashlib.sha256(key.encode()).hexdigest()[:40]


def key_of(path: str) -> str | None:
    """The key that a relative path stands for, or None if only the records know it."""
    if is_digest(path):
        return None
    return _ESCAPED.sub(lambda match: chr(int(match[1], 16)), path.removesuffix(BESIDE))


def is_digest(path: str) -> bool:
    """Whether a path has a chunk that was too long for a name."""
    return any(name.startswith(_DIGEST) for name in path.split("/"))


def _name(chunk: str) -> str:
    name = _EDGES.sub(_escape, _FORBIDDEN.sub(_escape, chunk))
    if len(name.encode()) > _LONGEST:
        return _DIGEST + hashlib.sha256(chunk.encode()).hexdigest()[:40]
    return name


def _escape(match: re.Match[str]) -> str:
    return f"%{ord(match[0]):02X}"
