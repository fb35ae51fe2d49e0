"""Stored values as replies: the path that every value of an answer takes."""

from __future__ import annotations

from typing import Final

from zenlake.api.query import Query
from zenlake.clock.timestamp import Timestamp
from zenlake.node.queries.replies import reply_value
from zenlake.storage.value import Entry
from zenlake.transport.framing import vle
from zenlake.values.encoding import Encoding
from zenlake.wire.codec_zenoh import Timestamp as WireTimestamp
from zenlake.wire.codec_zenoh import put_head

__all__ = ["reply_entries"]

_FRACTION: Final = 0xFFFF_FFFF


def reply_entries(query: Query, entries: list[Entry]) -> None:
    """Reply with values, or with deletions where there are none; waits while nobody reads.

    The query's key expression must stand for the keys: that is not checked again.
    """
    incoming = query._incoming
    query._check()
    for entry in entries:
        value = entry.value
        seconds = entry.time >> 32
        fraction = entry.time & _FRACTION
        if value is None:
            query.reply_del(entry.key, timestamp=Timestamp(seconds, entry.id, fraction))
            continue
        payload = value.payload
        if payload is None:
            payload = b""
        name = entry.key.encode("utf-8")
        put = put_head(
            timestamp=WireTimestamp(seconds=seconds, fraction=fraction, id=entry.id),
            encoding=value.encoding_id,
            schema=value.schema,
            attachment=value.attachment,
        )
        if not reply_value(incoming, vle(len(name)) + name, payload, put):
            query.reply(
                entry.key,
                payload,
                encoding=Encoding.from_wire(value.encoding_id, value.schema or None),
                attachment=value.attachment,
                timestamp=Timestamp(seconds, entry.id, fraction),
            )
