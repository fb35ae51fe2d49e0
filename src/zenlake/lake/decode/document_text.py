"""Payloads of CBOR and MessagePack as texts of JSON, which Spark can parse.

Spark reads neither, and a question may not call Python. So the source that reads files for Spark
(`lake/query/object_source`) gives such rows a text beside their columns, for the column `json`
(`lake/query/document_column`).
"""

from __future__ import annotations

import json
import math
from typing import Any, Final

from zenlake.lake.decode.formats.cbor import Cbor
from zenlake.lake.decode.formats.message_pack import MessagePack
from zenlake.lake.model.decoder import Undecodable
from zenlake.lake.model.json_values import plain
from zenlake.recorded.encoding import without_custom_id

__all__ = ["BINARY_ENCODINGS", "DOCUMENT_TEXT", "MOST_BYTES", "document_text", "is_binary"]

DOCUMENT_TEXT: Final = "document_text"
"""The column with the text; null where the payload is no object and no array."""
MOST_BYTES: Final = 4 << 20
"""The longest document, as a payload and as a text: a VARIANT under construction takes many times
as much."""

_DECODERS: Final[dict[str, Cbor | MessagePack]] = {
    name: decoder for decoder in (Cbor(), MessagePack()) for name in decoder.encodings
}
BINARY_ENCODINGS: Final = tuple(_DECODERS)
"""The encodings of such payloads, without a schema."""
_ENCODER: Final = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), default=plain)


def is_binary(encoding: str | None) -> bool:
    """Return True if payloads of a recorded encoding are CBOR or MessagePack."""
    return encoding is not None and _name(encoding) in _DECODERS


def document_text(payload: bytes | None, encoding: str | None) -> str | None:
    """Return an object or array of CBOR or MessagePack as JSON; None for all other payloads.

    Bytes inside become text, or hexadecimal if they are none. NaN and infinities, which JSON has
    not, become the texts that Spark casts to them.
    """
    if payload is None or encoding is None or len(payload) > MOST_BYTES:
        return None
    decoder = _DECODERS.get(_name(encoding))
    if decoder is None:
        return None
    try:
        value = decoder.value(payload)
        return _bounded_text(_finite(value)) if isinstance(value, dict | list) else None
    except (Undecodable, ValueError, RecursionError):
        return None


def _name(encoding: str) -> str:
    return without_custom_id(encoding).partition(";")[0]


def _bounded_text(value: Any) -> str | None:
    """Return a value as JSON, or None if it is too long: references may repeat what came once."""
    size = 0
    parts = []
    for part in _ENCODER.iterencode(value):
        size += len(part)
        if size > MOST_BYTES:
            return None
        parts.append(part)
    text = "".join(parts)
    return text if len(text.encode()) <= MOST_BYTES else None


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _finite(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_finite(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    return value
