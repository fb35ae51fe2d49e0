"""CBOR (RFC 8949): the entries of a map are fields; anything else is one value."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

import cbor2

from zenlake.lake.decoders import WHOLE, Fields, Undecodable

__all__ = ["Cbor"]


class Cbor:
    """Reads `application/cbor`."""

    encodings = ("application/cbor",)

    def decode(self, payload: bytes, schema: str, type: object) -> Fields:
        """The entries of the map by the text of their keys, or the value."""
        try:
            value = cbor2.loads(payload)
        except Exception as error:  # a tag may run code of its own, and raise what it likes
            raise Undecodable(f"not CBOR: {error}") from error
        return _named(value) if isinstance(value, Mapping) else {WHOLE: _plain(value)}


def _named(entries: Mapping[object, object]) -> dict[str, object]:
    return {str(name): _plain(value) for name, value in entries.items()}


def _plain(value: object) -> object:
    if isinstance(value, Mapping):
        return _named(value)
    if isinstance(value, list | tuple | set | frozenset):
        return [_plain(item) for item in value]
    if isinstance(value, datetime):
        return value.isoformat()
    if value is None or isinstance(value, bool | int | float | str | bytes):
        return value
    if isinstance(value, cbor2.CBORTag):
        return _plain(value.value)
    return None if value is cbor2.undefined else str(value)
