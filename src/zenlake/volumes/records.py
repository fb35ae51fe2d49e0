"""Entries, samples and updates with wildcards as bytes, for volumes that keep keys and bytes.

    value     flags, encoding, lengths, schema, attachment, payload
    entry     time, base time, lengths of their ids, the ids, value

All numbers are big-endian, so that records of a later version can be told by the first byte.
"""

from __future__ import annotations

import struct
from typing import Final

from zenlake.newest import Entry, Value, WideUpdate
from zenlake.volumes.contract import VolumeError

__all__ = [
    "MOMENT_SIZE",
    "moment",
    "pack_entry",
    "pack_moment",
    "pack_wide",
    "unpack_entry",
    "unpack_wide",
]

_VERSION: Final = 1
_DELETED: Final = 1
_ATTACHED: Final = 2
_PAYLOAD: Final = 4

_ENTRY: Final = struct.Struct(">BQQBB")
_VALUE: Final = struct.Struct(">BIII")
_MOMENT: Final = struct.Struct(">Q16sB")

#: How many bytes `pack_moment` gives.
MOMENT_SIZE: Final = _MOMENT.size


def pack_entry(entry: Entry, payload: bool) -> bytes:
    """An entry without its key, with its payload or without."""
    head = _ENTRY.pack(_VERSION, entry.time, entry.base_time, len(entry.id), len(entry.base_id))
    return b"".join((head, entry.id, entry.base_id, _pack_value(entry.value, payload)))


def unpack_entry(key: str, data: bytes, payload: bytes | None = None) -> Entry:
    """The entry of a key; `payload` stands in for one that lies elsewhere."""
    try:
        version, time, base_time, id_size, base_size = _ENTRY.unpack_from(data)
        if version != _VERSION:
            raise VolumeError(
                f"the record of '{key}' was written by a newer zenlake (version {version}, "
                f"{_VERSION} is known here): update zenlake"
            )
        at = _ENTRY.size
        id = data[at : at + id_size]
        base_id = data[at + id_size : at + id_size + base_size]
        value = _unpack_value(data, at + id_size + base_size, payload)
    except struct.error as error:
        raise VolumeError(f"the record of '{key}' is damaged: {error}") from error
    return Entry(key, time, id, base_time, base_id, value)


def pack_wide(update: WideUpdate) -> bytes:
    """An update with wildcards without its expression."""
    put = Entry("", update.put_time, update.put_id, update.deleted_time, update.deleted_id, None)
    return pack_entry(put._replace(value=update.value), True)


def unpack_wide(expr: str, data: bytes) -> WideUpdate:
    """The update of an expression."""
    put = unpack_entry(expr, data)
    return WideUpdate(expr, put.time, put.id, put.value, put.base_time, put.base_id)


def pack_moment(time: int, id: bytes) -> bytes:
    """A timestamp as bytes of one size that are in the order of timestamps."""
    return _MOMENT.pack(time, id, len(id))


def moment(data: bytes) -> tuple[int, bytes]:
    """The timestamp that `pack_moment` packed."""
    time, id, size = _MOMENT.unpack_from(data)
    return time, id[:size]


def _pack_value(value: Value | None, payload: bool) -> bytes:
    if value is None:
        return _VALUE.pack(_DELETED, 0, 0, 0)
    attachment = value.attachment
    content = value.payload if payload else None
    flags = (0 if attachment is None else _ATTACHED) | (0 if content is None else _PAYLOAD)
    return b"".join(
        (
            _VALUE.pack(flags, value.encoding_id, len(value.schema), len(attachment or b"")),
            value.schema,
            attachment or b"",
            content or b"",
        )
    )


def _unpack_value(data: bytes, at: int, payload: bytes | None) -> Value | None:
    flags, encoding, schema_size, attachment_size = _VALUE.unpack_from(data, at)
    if flags & _DELETED:
        return None
    schema_at = at + _VALUE.size
    attachment_at = schema_at + schema_size
    payload_at = attachment_at + attachment_size
    return Value(
        data[payload_at:] if flags & _PAYLOAD else payload,
        encoding,
        data[schema_at:attachment_at],
        data[attachment_at:payload_at] if flags & _ATTACHED else None,
    )
