"""CBOR (RFC 8949): the entries of a map are fields; anything else is one value."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Final

import cbor2

from zenlake.lake.decoders import WHOLE, Fields, Undecodable

__all__ = ["Cbor"]

MOST_ITEMS: Final = 1_000_000


class Cbor:
    """Reads `application/cbor`."""

    encodings = ("application/cbor",)

    def decode(self, payload: bytes, schema: str, type: object) -> Fields:
        """The entries of the map by the text of their keys, or the value."""
        try:
            value = cbor2.loads(payload)
        except Exception as error:  # a tag may run code of its own, and raise what it likes
            raise Undecodable(f"not CBOR: {error}") from error
        room = [MOST_ITEMS]
        if isinstance(value, Mapping):
            return _named(value, room)
        return {WHOLE: _plain(value, room)}


def _named(entries: Mapping[object, object], room: list[int]) -> dict[str, object]:
    return {str(name): _plain(value, room) for name, value in entries.items()}


def _plain(value: object, room: list[int]) -> object:
    # Tags let a value stand in many places though it was written once.
    room[0] -= 1
    if room[0] < 0:
        raise Undecodable(f"more than {MOST_ITEMS:,} values, those that are repeated counted")
    if isinstance(value, Mapping):
        return _named(value, room)
    if isinstance(value, list | tuple | set | frozenset):
        return [_plain(item, room) for item in value]
    if isinstance(value, datetime):
        return value.isoformat()
    if value is None or isinstance(value, bool | int | float | str | bytes):
        return value
    if isinstance(value, cbor2.CBORTag):
        return _plain(value.value, room)
    return None if value is cbor2.undefined else str(value)
