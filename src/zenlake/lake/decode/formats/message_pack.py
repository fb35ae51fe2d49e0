"""MessagePack: the entries of a map are fields; anything else is one value."""

from __future__ import annotations

from typing import Any

from zenlake.lake.decode.formats.bounded import library, named, plain_value
from zenlake.lake.decode.formats.instants import instant_text
from zenlake.lake.model.decoder import Fields, Reason, Undecodable

__all__ = ["MessagePack"]


class MessagePack:
    """Reads MessagePack, which has no name among the encodings of Zenoh but these of custom."""

    encodings = ("application/msgpack", "application/x-msgpack", "application/vnd.msgpack")

    def decode(self, payload: bytes, schema: str, type: object) -> Fields:
        """The entries of the map by the text of their keys, or the value; extensions as bytes."""
        return named(self.value(payload))

    def value(self, payload: bytes) -> object:
        """Return the value as columns hold it; raises `Undecodable`."""
        msgpack = library("msgpack", "MessagePack")
        try:
            value = msgpack.unpackb(
                payload,
                strict_map_key=False,
                object_pairs_hook=_named_once,
                ext_hook=lambda code, data: data,
            )
        except Undecodable:
            raise
        except Exception as error:  # whatever the library has for bytes that are none
            raise Undecodable(f"not MessagePack: {error!r}"[:400]) from error
        return plain_value(value, _text)


def _named_once(pairs: list[tuple[Any, Any]]) -> dict[Any, Any]:
    entries: dict[Any, Any] = {}
    for name, value in pairs:
        if name in entries:
            raise Undecodable(f"'{name}' stands twice in one map", Reason.NAME, str(name))
        entries[name] = value
    return entries


def _text(value: Any) -> object:
    """Return a time as text, with its nanoseconds."""
    return instant_text(value.seconds, f"{value.nanoseconds:09}")
