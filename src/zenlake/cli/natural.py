"""The order of keys as people count: `robot/2` comes before `robot/10`."""

from __future__ import annotations

import re

__all__ = ["natural"]

_NUMBERS = re.compile(r"(\d+)", re.ASCII)


def natural(key: str) -> tuple[tuple[tuple[int, int, str], ...], ...]:
    """What to sort keys by: chunk by chunk, and numbers by their value."""
    return tuple(tuple(_parts(chunk)) for chunk in key.split("/"))


def _parts(chunk: str) -> list[tuple[int, int, str]]:
    parts = [part for part in _NUMBERS.split(chunk) if part]
    return [
        (0, int(part), part) if part.isdecimal() and part.isascii() else (1, 0, part)
        for part in parts
    ]
