"""Rows of a journal by offset, and sealed segments byte by byte, for readers elsewhere.

@journal/<name>/rows/**?partition=0;start=10;end=20
@journal/<name>/segments/<partition>/<first>/**
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from zenlake.errors import LocalError
from zenlake.journal.serving.documents import sealed_segment
from zenlake.journal.serving.parts import ARROW, chunks, stream_of
from zenlake.journal.serving.readers import readable_rows
from zenlake.journal.serving.request import RowRequest
from zenlake.keys.readable import ReadableKeys

if TYPE_CHECKING:
    from zenlake.api.query import Query
    from zenlake.journal.reading.reader import Journal

__all__ = ["OffsetReplies"]

MOST_REPLIED: Final = 64 << 20
"""How many bytes of rows one query is given; a reader that wants more asks again."""

REPLY_BYTES: Final = 4 << 20
"""How many bytes one reply carries, as far as rows can be cut."""


class OffsetReplies:
    """Replies with rows and segments, one query at a time in each thread that calls it."""

    def __init__(self, journal: Journal, root: str) -> None:
        """`root`: the key that those of the journal begin with."""
        self._journal = journal
        self._root = root
        self._closed = False

    def close(self) -> None:
        """End the replies that are under way."""
        self._closed = True

    def rows(self, query: Query) -> None:
        """Rows from an offset on, as Arrow IPC streams; the last one says how far was looked."""
        payload = query.payload
        request = RowRequest.parse(
            query.parameters, None if payload is None else payload.to_bytes()
        )
        if request.journal not in (None, self._journal.id):
            return
        durable = self._journal.watermark().offsets
        if not 0 <= request.partition < len(durable):
            raise LocalError(
                f"there is no partition {request.partition}: it has 0 to {len(durable) - 1}"
            )
        start = request.start
        if start is None:
            start = self._journal.earliest()[request.partition]
        end = durable[request.partition]
        if request.end is not None:
            end = min(end, request.end)
        columns = request.columns
        readable = ReadableKeys.in_parameters(query.parameters)
        key = [] if readable.unrestricted else ["key"]
        read = None if columns is None else list(dict.fromkeys(["offset", *key, *columns]))
        left = MOST_REPLIED
        for batch in self._journal.scan(
            {request.partition: start},
            {request.partition: end},
            partition=request.partition,
            keys=list(request.keys) or None,
            time=request.time,
            columns=read,
        ):
            for part in chunks(readable_rows(batch, readable), REPLY_BYTES):
                if self._closed:
                    return
                start = part.column("offset")[part.num_rows - 1].as_py() + 1
                left -= self._reply_part(query, request, part, start)
            if left <= 0:
                return
        # The last word says how far was looked, whether or not there was anything.
        empty = pa.RecordBatch.from_pylist([], schema=pa.schema([("offset", pa.int64())]))
        self._reply_part(query, request, empty, max(start, end))

    def _reply_part(self, query: Query, request: RowRequest, part: Any, after: int) -> int:
        columns = request.columns
        rows = part.num_rows
        first = part.column("offset")[0].as_py() if rows else after
        if columns is not None and rows:
            part = part.select(list(columns))
        data = stream_of(part)
        query.reply(
            f"{self._root}/rows/{request.partition}/{first}{'' if rows else '/end'}",
            data,
            encoding=ARROW,
            attachment=json.dumps({"next": after, "rows": rows}),
        )
        return len(data)

    def segment(self, query: Query) -> None:
        """The bytes of a sealed segment, in pieces named by where they begin."""
        place = str(query.key_expr).removeprefix(f"{self._root}/segments/").split("/")
        partition, segment = sealed_segment(self._journal, place)
        first = segment.first
        key = f"{self._root}/segments/{partition}/{first}"
        with self._journal.open_segment(segment) as file:
            if len(place) == 2:
                if segment.bytes > MOST_REPLIED:
                    raise LocalError(
                        f"{segment.bytes} bytes are too many for one reply; ask for {key}/**"
                    )
                query.reply(key, file.read())
                return
            for position in range(0, segment.bytes, REPLY_BYTES):
                if self._closed:
                    return
                file.seek(position)
                query.reply(f"{key}/{position}", file.read(REPLY_BYTES))
