"""Recorded samples as replies, as they were published: the path of every row of an answer.

Most rows of an answer differ in key, time and value only. What else their puts say is written once
for each kind of them (`RowKind`), and their times come as bytes of the wire.
"""

from __future__ import annotations

from typing import final

from zenlake.api.query import Query
from zenlake.api.row_replies import reply_row
from zenlake.journal.reading.wire_times import TIME_BYTES
from zenlake.node.queries.replies import head_of, is_awaited
from zenlake.wire.codec_zenoh import SourceInfo, Timestamp, put_head
from zenlake.wire.cursor import Reader

__all__ = ["RecordedReplies", "RowKind"]


@final
class RowKind:
    """What rows of an answer have in common: put or deleted, by whose clock, of which encoding."""

    __slots__ = ("before", "behind", "deleted", "encoding", "id", "schema")

    def __init__(self, deleted: bool, id: bytes, encoding: int, schema: bytes) -> None:
        """`id`: of the clock."""
        self.deleted: bool = deleted
        self.id: bytes = id
        self.encoding: int = encoding
        self.schema: bytes = schema
        stamp = Timestamp(seconds=1 << 24, fraction=0, id=id)
        head = put_head(timestamp=stamp, encoding=encoding, schema=schema)
        #: The head of a put, before its time and behind it.
        self.before: bytes = head[:1]
        self.behind: bytes = head[1 + TIME_BYTES :]


@final
class RecordedReplies:
    """Rows of an answer, column by column."""

    __slots__ = ("attachments", "keys", "kinds", "short", "sources", "times", "values", "which")

    def __init__(
        self,
        keys: list[str],
        times: bytes,
        kinds: list[RowKind],
        which: list[int],
        values: list[bytes],
        attachments: list[bytes | None] | None = None,
        sources: list[SourceInfo | None] | None = None,
        *,
        short: bool = False,
    ) -> None:
        """`times`: of `wire_times`; `which`: the kind of each row; without attachments, no lists.

        `short`: some times are not long.
        """
        self.keys: list[str] = keys
        self.times: bytes = times
        self.kinds: list[RowKind] = kinds
        self.which: list[int] = which
        self.values: list[bytes] = values
        self.attachments: list[bytes | None] | None = attachments
        self.sources: list[SourceInfo | None] | None = sources
        self.short: bool = short

    def send(self, query: Query) -> None:
        """Reply with every row; waits while the querier does not read."""
        query._check()
        incoming = query._incoming
        head = head_of(incoming)
        outbox = head.outbox
        times = self.times
        values = self.values
        #: For each kind, all that stands before the time of a put on a key.
        starts: list[dict[str, bytes]] = [{} for _ in self.kinds]
        for n in range(len(self.keys)):
            number = self.which[n]
            kind = self.kinds[number]
            key = self.keys[n]
            if outbox is None or kind.deleted or self._has_more(n):
                self._send_whole(query, n, kind, query._name(key))
                continue
            start = starts[number].get(key)
            if start is None:
                start = b"".join((head.before, query._name(key), head.behind, kind.before))
                starts[number][key] = start
            at = n * TIME_BYTES
            put = b"".join((start, times[at : at + TIME_BYTES], kind.behind))
            if is_awaited(incoming):
                outbox.reply(put, values[n], head.priority, head.hold)

    def _has_more(self, n: int) -> bool:
        """Whether a row has more than key, time, encoding and value, or a time of fewer bytes."""
        attachments = self.attachments
        sources = self.sources
        return (
            self.short
            or (attachments is not None and attachments[n] is not None)
            or (sources is not None and sources[n] is not None)
        )

    def _send_whole(self, query: Query, n: int, kind: RowKind, name: bytes) -> None:
        """Reply with a row that has more, or whose asker is in this very node."""
        at = n * TIME_BYTES
        seconds, fraction = Reader(self.times[at : at + TIME_BYTES]).ntp64()
        reply_row(
            query,
            self.keys[n],
            name,
            Timestamp(seconds=seconds, fraction=fraction, id=kind.id),
            None if kind.deleted else self.values[n],
            kind.encoding,
            kind.schema,
            None if self.attachments is None else self.attachments[n],
            None if self.sources is None else self.sources[n],
        )
