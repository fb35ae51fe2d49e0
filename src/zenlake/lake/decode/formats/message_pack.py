"""MessagePack: the entries of a map are fields; anything else is one value."""

from __future__ import annotations

from typing import Final

from zenlake.lake.decode.formats.bounded import fields_of, library
from zenlake.lake.model.decoder import Fields, Undecodable

__all__ = ["MessagePack"]

_AS_DATETIME: Final = 3


class MessagePack:
    """Reads MessagePack, which has no name among the encodings of Zenoh but these of custom."""

    encodings = ("application/msgpack", "application/x-msgpack", "application/vnd.msgpack")

    def decode(self, payload: bytes, schema: str, type: object) -> Fields:
        """The entries of the map by the text of their keys, or the value; extensions as bytes."""
        msgpack = library("msgpack", "MessagePack")
        try:
            value = msgpack.unpackb(
                payload,
                strict_map_key=False,
                timestamp=_AS_DATETIME,
                ext_hook=lambda code, data: data,
            )
        except Exception as error:  # whatever the library has for bytes that are none
            raise Undecodable(f"not MessagePack: {error!r}"[:400]) from error
        return fields_of(value)
