"""CSV: one sample is one line of values, named by a header.

The header is, in this order, `type` of the table (`["x", "y"]`), the schema of the encoding
(`text/csv;x,y`), or the first line of the payload.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence

from zenlake.lake.decode.formats.plain import text, word_value
from zenlake.lake.model.decoder import Fields, Reason, Undecodable

__all__ = ["Csv"]


class Csv:
    """Reads `text/csv` (RFC 4180)."""

    encodings = ("text/csv",)

    def decode(self, payload: bytes, schema: str, type: object) -> Fields:
        """The values by the names in the header: numbers where they look like numbers."""
        lines = _lines(text(payload))
        header = _header(schema, type)
        if header is None:
            if not lines:
                raise Undecodable("no line of names")
            header = lines.pop(0)
        elif len(lines) == 2 and lines[0] == header:
            lines.pop(0)  # it says again what is known
        names = [name.strip() for name in header]
        if not all(names) or len(set(names)) < len(names):
            raise Undecodable("a name in the header is empty or there twice", Reason.NAME)
        if len(lines) != 1:
            raise Undecodable(f"{len(lines)} lines of values where a sample has one")
        if len(lines[0]) != len(names):
            raise Undecodable(f"{len(lines[0])} values for {len(names)} names")
        return {name: _value(word) for name, word in zip(names, lines[0], strict=True)}


def _lines(words: str) -> list[list[str]]:
    try:
        reader = csv.reader(io.StringIO(words.removeprefix("\ufeff"), newline=""), strict=True)
        return [line for line in reader if line]
    except csv.Error as error:
        raise Undecodable(f"not CSV: {error}") from error


def _header(schema: str, type: object) -> list[str] | None:
    if isinstance(type, Sequence) and not isinstance(type, str):
        return [str(name) for name in type]
    given = _lines(type if isinstance(type, str) else schema)
    return given[0] if given else None


def _value(word: str) -> object:
    word = word.strip()
    return word_value(word) if word else None
