"""Stored values as replies: the path that every value of an answer takes."""

from __future__ import annotations

from typing import Final

from zenlake.api.query import Query, check_waiting
from zenlake.api.row_replies import reply_row
from zenlake.newest.value import Entry
from zenlake.transport.framing import vle
from zenlake.wire.codec_zenoh import Timestamp

__all__ = ["reply_entries"]

_FRACTION: Final = 0xFFFF_FFFF


def reply_entries(query: Query, entries: list[Entry]) -> None:
    """Reply with values, or with deletions where there are none; waits for a slow reader.

    The query's key expression must stand for the keys: that is not checked again.
    """
    check_waiting(query)
    for entry in entries:
        value = entry.value
        stamp = Timestamp(seconds=entry.time >> 32, fraction=entry.time & _FRACTION, id=entry.id)
        key = entry.key.encode("utf-8")
        name = vle(len(key)) + key
        if value is None:
            reply_row(query, entry.key, name, stamp, None, 0, b"", None, None)
            continue
        payload = value.payload
        reply_row(
            query,
            entry.key,
            name,
            stamp,
            b"" if payload is None else payload,
            value.encoding_id,
            value.schema,
            value.attachment,
            None,
        )
