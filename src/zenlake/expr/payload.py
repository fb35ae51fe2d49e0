"""Reads payloads for filters, by one rule in routers, subscribers, answers and typed tables.

    >>> seen_payload(b'{"battery": 12}', "zenoh/bytes")
    ({'battery': 12}, None)
    >>> seen_payload(b"+5", "")
    (None, 5)

The encoding decides how a payload is read:

* JSON and its kin: strictly, as JSON;
* CBOR and MessagePack, where the libraries for them are installed;
* none, plain bytes, or text: by the bytes (`expr/record.implied_value`);
* any other: as JSON, if it is that.

A router reads no CBOR and no MessagePack, since it may lack what the subscriber has: it asks no
filter about those (`read_everywhere`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import date, datetime, time
from typing import Any, Final

from zenlake.expr.record import implied_value, json_value

__all__ = ["MOST_DEPTH", "MOST_ITEMS", "read_everywhere", "seen_payload"]

MOST_ITEMS: Final = 100_000
"""Values that a binary document is looked at for; more are none that a filter sees."""
MOST_DEPTH: Final = 200

Scalar = int | float | str | bool | None
Seen = tuple[Mapping[str, Any] | None, Scalar]
"""The members of a payload that is an object, and the value of one that is a single value."""

NOTHING: Final[Seen] = (None, None)

#: Before the name of an encoding that has no number.
_CUSTOM: Final = "unknown(65535);"
_IMPLIED: Final = frozenset({"", "zenoh/bytes", "text/plain", "zenoh/string"})


def seen_payload(payload: bytes, encoding: str) -> Seen:
    """Return the members of a payload, or its value; neither for what is none of these."""
    name = _name_of(encoding)
    if name in _IMPLIED:
        return _seen(implied_value(payload))
    read = _BINARY.get(name)
    if read is not None:
        return _seen(_binary_value(payload, read))
    return _seen(json_value(payload))


def read_everywhere(encoding: str) -> bool:
    """Return True if every program reads such payloads in the same way."""
    return _name_of(encoding) not in _BINARY


def _name_of(encoding: str) -> str:
    return encoding.removeprefix(_CUSTOM).partition(";")[0]


def _seen(value: object) -> Seen:
    if isinstance(value, dict):
        return value, None
    return None, value if isinstance(value, int | float | str | bool) else None


def _cbor(payload: bytes) -> object:
    import cbor2

    return cbor2.loads(payload)


def _message_pack(payload: bytes) -> object:
    import msgpack

    return msgpack.unpackb(
        payload, strict_map_key=False, timestamp=3, ext_hook=lambda code, data: data
    )


_BINARY: Final[Mapping[str, Callable[[bytes], object]]] = {
    "application/cbor": _cbor,
    "application/msgpack": _message_pack,
    "application/x-msgpack": _message_pack,
    "application/vnd.msgpack": _message_pack,
}


def _binary_value(payload: bytes, read: Callable[[bytes], object]) -> object:
    """Return the document in CBOR or MessagePack; None if it is none, or cannot be read here."""
    try:
        return _plain(read(payload), [MOST_ITEMS], 0)
    except Exception:  # whatever the libraries have for bytes of strangers
        return None


def _plain(value: object, room: list[int], depth: int) -> object:
    """Return a value as JSON would have it, bounded: references may make a small one endless."""
    room[0] -= 1
    if room[0] < 0 or depth > MOST_DEPTH:
        raise ValueError("too much")
    if value is None or isinstance(value, bool | int | float | str | bytes):
        return value
    if isinstance(value, Mapping):
        named = {str(name): _plain(one, room, depth + 1) for name, one in value.items()}
        if len(named) < len(value):
            raise ValueError("two keys are the same as text")
        return named
    if isinstance(value, list | tuple | set | frozenset):
        return [_plain(one, room, depth + 1) for one in value]
    if isinstance(value, datetime | date | time):
        return value.isoformat()
    tagged: object = getattr(value, "value", None) if hasattr(value, "tag") else str(value)
    return _plain(tagged, room, depth + 1)
