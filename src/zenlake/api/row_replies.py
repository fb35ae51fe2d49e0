"""A sample as a reply, as it was published: the path of every row of a storage or a lake."""

from __future__ import annotations

from zenlake.api.query import Query, send_reply
from zenlake.node.queries.replies import put_of, reply_value
from zenlake.wire.codec_zenoh import Del, SourceInfo, Timestamp, put_head
from zenlake.wire.codec_zenoh import Reply as WireReply

__all__ = ["reply_row"]


def reply_row(
    query: Query,
    key: str,
    name: bytes,
    stamp: Timestamp,
    value: bytes | None,
    encoding: int,
    schema: bytes,
    attachment: bytes | None,
    source_info: SourceInfo | None,
) -> None:
    """Reply with a sample; waits while the querier does not read.

    `name` is the key behind its length, as on the wire; that the query's key expression stands for
    it is not checked. Without a `value` it is a deletion.
    """
    if value is None:
        gone = Del(timestamp=stamp, source_info=source_info, attachment=attachment)
        send_reply(query, key, WireReply(body=gone))
        return
    head = put_head(
        timestamp=stamp,
        encoding=encoding,
        schema=schema,
        source_info=source_info,
        attachment=attachment,
    )
    if not reply_value(query.incoming, name, value, head):
        send_reply(query, key, WireReply(body=put_of(head, value)))
