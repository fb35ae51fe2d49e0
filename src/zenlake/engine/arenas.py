"""Keeps the memory that the samples of one read take for those of the next.

The interpreter takes small objects from arenas of 1 MiB. It unmaps an arena when the last object in
it is freed, and maps another when the next read needs it: then the system clears every page again,
which can cost a subscriber a tenth of its time. One object that stays keeps its arena mapped.
"""

from __future__ import annotations

from typing import Final

__all__ = ["LARGE_READ", "keep_arenas"]

#: A read of so many bytes may become more objects than the free part of an arena holds.
LARGE_READ: Final = 1 << 18
#: How many bytes of arenas stay mapped: what a read of half a megabyte of small samples takes.
_KEPT_BYTES: Final = 4 << 20
#: The bytes of the objects that fill arenas: as large as small objects are, for fewer of them.
_FILLER: Final = 480
#: What bytes need beside their content, rounded up.
_HEAD: Final = 40
#: One filler of so many stays: at least two in an arena.
_APART: Final = 1000

_kept: list[bytes] = []


def keep_arenas() -> None:
    """Have some arenas stay mapped, from the first call on."""
    if not _kept:
        _kept.extend([bytes(_FILLER - _HEAD) for _ in range(_KEPT_BYTES // _FILLER)][::_APART])
