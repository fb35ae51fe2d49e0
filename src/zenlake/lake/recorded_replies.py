"""Recorded samples as replies, as they were published: the path of every row of an answer."""

from __future__ import annotations

from zenlake.api.query import Query
from zenlake.node.queries.replies import reply_value
from zenlake.wire.codec_zenoh import Del, Put, SourceInfo, Timestamp, put_head
from zenlake.wire.codec_zenoh import Reply as WireReply

__all__ = ["RecordedReplies"]


class RecordedReplies:
    """Rows of an answer, column by column."""

    __slots__ = (
        "attachments", "deleted", "encodings", "fractions", "keys", "schemas", "seconds",
        "sources", "stamps", "values",
    )  # fmt: skip

    def __init__(
        self,
        keys: list[str],
        seconds: list[int],
        fractions: list[int],
        stamps: list[bytes],
        deleted: list[bool],
        encodings: list[int],
        schemas: list[bytes],
        values: list[bytes],
        attachments: list[bytes | None],
        sources: list[SourceInfo | None],
    ) -> None:
        """`seconds`, `fractions` and `stamps` are the timestamps."""
        self.keys: list[str] = keys
        self.seconds: list[int] = seconds
        self.fractions: list[int] = fractions
        self.stamps: list[bytes] = stamps
        self.deleted: list[bool] = deleted
        self.encodings: list[int] = encodings
        self.schemas: list[bytes] = schemas
        self.values: list[bytes] = values
        self.attachments: list[bytes | None] = attachments
        self.sources: list[SourceInfo | None] = sources

    def send(self, query: Query) -> None:
        """Reply with every row; waits while nobody reads."""
        incoming = query._incoming
        query._check()
        for n in range(len(self.keys)):
            key = self.keys[n]
            stamp = Timestamp(
                seconds=self.seconds[n], fraction=self.fractions[n], id=self.stamps[n]
            )
            source = self.sources[n]
            attachment = self.attachments[n]
            if self.deleted[n]:
                gone = Del(timestamp=stamp, source_info=source, attachment=attachment)
                query._send_reply(query._matching(key), WireReply(body=gone), None)
                continue
            encoding = self.encodings[n]
            schema = self.schemas[n]
            value = self.values[n]
            head = put_head(
                timestamp=stamp,
                encoding=encoding,
                schema=schema,
                source_info=source,
                attachment=attachment,
            )
            if not reply_value(incoming, query._name(key), value, head):
                body = Put(
                    timestamp=stamp,
                    encoding=encoding,
                    schema=schema,
                    source_info=source,
                    attachment=attachment,
                    payload=value,
                )
                query._send_reply(query._matching(key), WireReply(body=body), None)
