"""Plain text: kept as text, and as a number too where it is one.

Both are columns of their own, so a sensor that says `21.5`, and `n/a` when it is broken, drops
out of neither.
"""

from __future__ import annotations

from zenlake.expr.record import number_of
from zenlake.lake.model.decoder import Fields, Reason, Undecodable

__all__ = ["Plain", "text", "word_value"]


class Plain:
    """Reads `text/plain` and `zenoh/string`."""

    encodings = ("text/plain", "zenoh/string")

    def decode(self, payload: bytes, schema: str, type: object) -> Fields:
        """`text`, and `number` where the text is one."""
        decoded = text(payload)
        value = number_of(decoded.strip())
        return {"text": decoded, "number": None if value is None else float(value)}


def text(payload: bytes) -> str:
    """The text of a payload, which must be UTF-8."""
    try:
        return payload.decode()
    except UnicodeDecodeError as error:
        raise Undecodable(
            f"not text: byte {error.start} is not UTF-8; say under `encoding` what it is"
        ) from error


def word_value(word: str) -> object:
    """Return the truth value or the number that a word of a line spells, or the word."""
    if word in ("true", "false"):
        return word == "true"
    value = number_of(word)
    if isinstance(value, float) and word.lstrip("+-").isdigit():
        raise Undecodable(f"{word[:40]} does not fit 64 bits", Reason.RANGE)
    return word if value is None else value
