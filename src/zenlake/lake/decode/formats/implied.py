"""Payloads whose publisher named no encoding: what they are follows from their bytes.

Each payload is read alone, so that the same bytes make the same columns whatever came before.
"""

from __future__ import annotations

from zenlake.expr.record import implied_value
from zenlake.lake.model.decoder import WHOLE, Fields

__all__ = ["Implied"]


class Implied:
    """Reads `zenoh/bytes`, which is what the wire says where a program says nothing."""

    encodings = ("zenoh/bytes",)

    def decode(self, payload: bytes, schema: str, type: object) -> Fields:
        """Return the members of an object, or one of `value`, `text` with `number`, `bytes`."""
        value = implied_value(payload)
        match value:
            case dict():
                return value
            case list():
                return {WHOLE: value}
            case bytes():
                return {"bytes": value}
            case str():
                return {"text": value, "number": None}
            case _:
                return {"text": payload.decode(), "number": float(value)}
