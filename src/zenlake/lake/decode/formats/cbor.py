"""CBOR (RFC 8949): the entries of a map are fields; anything else is one value."""

from __future__ import annotations

import cbor2

from zenlake.lake.decode.formats.bounded import fields_of
from zenlake.lake.model.decoder import Fields, Undecodable

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
        return fields_of(value, _untagged)


def _untagged(value: object) -> object:
    if isinstance(value, cbor2.CBORTag):
        return value.value
    return None if value is cbor2.undefined else str(value)
