"""Plain text: kept as text, and as a number too where it is one.

Both are columns of their own, so a sensor that says `21.5`, and `n/a` when it is broken, drops
out of neither.
"""

from __future__ import annotations

import math
import re
from typing import Final

from zenlake.lake.model.decoder import Fields, Undecodable

__all__ = ["Plain", "number", "text"]

_NUMBER: Final = re.compile(r"[+-]?(\d+|(\d+\.\d*|\.\d+|\d+(?=[eE]))([eE][+-]?\d+)?)", re.ASCII)
MOST_DIGITS: Final = 400


class Plain:
    """Reads `text/plain`, `zenoh/string`, and bytes without an encoding."""

    encodings = ("text/plain", "zenoh/string", "zenoh/bytes")

    def decode(self, payload: bytes, schema: str, type: object) -> Fields:
        """`text`, and `number` where the text is one."""
        decoded = text(payload)
        value = number(decoded.strip())
        return {"text": decoded, "number": None if value is None else float(value)}


def text(payload: bytes) -> str:
    """The text of a payload, which must be UTF-8."""
    try:
        return payload.decode()
    except UnicodeDecodeError as error:
        raise Undecodable(
            f"not text: byte {error.start} is not UTF-8; say under `encoding` what it is"
        ) from error


def number(digits: str) -> int | float | None:
    """The number that a text spells; None if it spells none, or one too large to hold."""
    if len(digits) > MOST_DIGITS or not _NUMBER.fullmatch(digits):
        return None
    if digits.lstrip("+-").isdigit():
        integer = int(digits)
        return integer if -(1 << 63) <= integer < 1 << 63 else float(digits)
    value = float(digits)
    return value if math.isfinite(value) else None
