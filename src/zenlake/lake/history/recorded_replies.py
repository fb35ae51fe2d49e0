"""Recorded samples as replies, as they were published: the path of every row of an answer.

Most rows of an answer differ in key, time and value only. What else their puts say is written once
for each kind of them (`RowKind`), and their times come as bytes of the wire.
"""

from __future__ import annotations

from typing import Final, final

from zenlake.api.query import Query, check_waiting, wire_name
from zenlake.api.row_replies import reply_row
from zenlake.journal.reading.wire_times import TIME_BYTES
from zenlake.node.entities import ReplyHead
from zenlake.node.queries.replies import head_of, is_awaited
from zenlake.wire.codec_zenoh import SourceInfo, Timestamp, put_head
from zenlake.wire.cursor import Reader

__all__ = ["RecordedReplies", "RecordedRows", "RowKind"]

WHOLE: Final = b"whole"
"""Stands for the start of a put where there is none: a deletion."""


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
class RecordedRows:
    """Some rows of an answer, column by column."""

    __slots__ = ("attachments", "heads", "short", "sources", "times", "values")

    def __init__(
        self,
        heads: list[int],
        times: bytes,
        values: list[bytes],
        attachments: list[bytes | None] | None = None,
        sources: list[SourceInfo | None] | None = None,
        *,
        short: bool = False,
    ) -> None:
        """`heads`: of each row the number of its kind, times how many keys there are, and its key.

        `times`: of `wire_times`; `short`: some of them are not long. Without attachments and
        sources, no lists.
        """
        self.heads: list[int] = heads
        self.times: bytes = times
        self.values: list[bytes] = values
        self.attachments: list[bytes | None] | None = attachments
        self.sources: list[SourceInfo | None] | None = sources
        self.short: bool = short

    def has_more(self, n: int) -> bool:
        """Whether a row has more than key, time, encoding and value, or a time of fewer bytes."""
        attachments = self.attachments
        sources = self.sources
        return (
            self.short
            or (attachments is not None and attachments[n] is not None)
            or (sources is not None and sources[n] is not None)
        )


@final
class RecordedReplies:
    """The replies to one query, of keys and kinds that are known before."""

    __slots__ = ("keys", "kinds", "query", "starts")

    def __init__(self, query: Query, keys: list[str], kinds: list[RowKind]) -> None:
        """No reply yet."""
        self.query: Query = query
        self.keys: list[str] = keys
        self.kinds: list[RowKind] = kinds
        #: By head, all that stands before the time of a put; most kinds are of a few keys only.
        self.starts: dict[int, bytes] = {}

    def send(self, rows: RecordedRows) -> None:
        """Reply with every row; waits while the querier does not read."""
        query = self.query
        check_waiting(query)
        incoming = query.incoming
        head = head_of(incoming)
        outbox = head.outbox
        starts = self.starts
        heads = rows.heads
        times = rows.times
        values = rows.values
        behind = [kind.behind for kind in self.kinds]
        count = len(self.keys)
        plain = rows.attachments is None and rows.sources is None and not rows.short
        for n in range(len(heads)):
            at = heads[n]
            start = starts.get(at)
            if start is None:
                start = starts[at] = self._start(head, at)
            if outbox is None or start is WHOLE or (not plain and rows.has_more(n)):
                self._send_whole(rows, n)
                continue
            put = b"".join(
                (start, times[n * TIME_BYTES : (n + 1) * TIME_BYTES], behind[at // count])
            )
            if is_awaited(incoming):
                outbox.reply(put, values[n], head.priority, head.hold)

    def _start(self, head: ReplyHead, at: int) -> bytes:
        kind = self.kinds[at // len(self.keys)]
        name = wire_name(self.query, self.keys[at % len(self.keys)])
        return WHOLE if kind.deleted else b"".join((head.before, name, head.behind, kind.before))

    def _send_whole(self, rows: RecordedRows, n: int) -> None:
        """Reply with a row that has more, or whose asker is in this very node."""
        kind = self.kinds[rows.heads[n] // len(self.keys)]
        key = self.keys[rows.heads[n] % len(self.keys)]
        at = n * TIME_BYTES
        seconds, fraction = Reader(rows.times[at : at + TIME_BYTES]).ntp64()
        reply_row(
            self.query,
            key,
            wire_name(self.query, key),
            Timestamp(seconds=seconds, fraction=fraction, id=kind.id),
            None if kind.deleted else rows.values[n],
            kind.encoding,
            kind.schema,
            None if rows.attachments is None else rows.attachments[n],
            None if rows.sources is None else rows.sources[n],
        )
