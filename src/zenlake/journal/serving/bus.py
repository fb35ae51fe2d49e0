"""A journal read through Zenoh itself: nothing but a session is needed.

    with zenlake.open(config) as session:
        journal = RemoteJournal.open(session, "robots")
        for batch in journal.scan(keys="robot/*/pose"):
            ...

It is read like a `Journal`: the same queries, the same batches. Filters travel to where the
journal is, and only rows that pass them travel back.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from time import time_ns
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from zenlake.errors import DecodeError, JournalError, JournalGap, Timeout
from zenlake.journal.disk.segment import Segment
from zenlake.journal.disk.watermark import Watermark
from zenlake.journal.reading.readable import Keys, Offsets, Range, Readable
from zenlake.journal.reading.times import Times, bounds_of
from zenlake.journal.serving.documents import root_of
from zenlake.journal.serving.parts import batches_in
from zenlake.journal.serving.request import RowRequest
from zenlake.keys import KeyExpr
from zenlake.recorded.time_bounds import TimeBounds
from zenlake.values import ConsolidationMode

if TYPE_CHECKING:
    from zenlake.api.reply import Reply
    from zenlake.api.session import Session

__all__ = ["RemoteJournal"]

PATIENCE: Final = 10.0
"""How long a reply may take, in seconds."""


class RemoteJournal(Readable):
    """A journal somewhere in the network."""

    def __init__(self, session: Session, name: str, timeout: float = PATIENCE) -> None:
        """Ask for the journal of this name; `Timeout` if no recorder has it."""
        self._session = session
        self._root = root_of(name)
        self._timeout = timeout
        page = self._document("manifest")
        called = str(page["name"])
        super().__init__(called, str(page["id"]), called, int(page["partitions"]))

    @classmethod
    def open(cls, session: Session, name: str, timeout: float = PATIENCE) -> RemoteJournal:
        """The journal of this name, wherever it is recorded."""
        return cls(session, name, timeout)

    def __repr__(self) -> str:
        return f"<RemoteJournal {self.name} {self.id}>"

    # ---------------------------------------------------------------------------------- facts

    def watermark(self) -> Watermark:
        """How far the journal is durable now."""
        page = self._document("watermark")
        return Watermark(tuple(page["offsets"]), page["sources"], page["synced"])

    def _kept(self, partitions: Iterable[int]) -> dict[int, int]:
        kept = self._document("manifest")["earliest"]
        return {number: kept[number] for number in partitions}

    def segments(self, partition: int) -> list[Segment]:
        """What a partition consists of; paths are those of the machine where it lies."""
        segments = []
        for page in self._document("manifest")["segments"][partition]:
            sealed = page.pop("sealed")
            segment = Segment.from_page(page)
            segments.append(segment if sealed else _unsealed(segment))
        return segments

    def ledger(self) -> dict[str, Any]:
        """What came of each source, and what did not."""
        return self._document("ledger")

    def segment_bytes(self, partition: int, first: int) -> bytes:
        """A sealed segment as it lies on the disk over there."""
        pieces: dict[int, bytes] = {}
        for reply in self._ask(f"segments/{partition}/{first}/**", None):
            sample = reply.ok
            if sample is None:
                raise _refusal(reply)
            position = int(str(sample.key_expr).rpartition("/")[2])
            pieces[position] = sample.payload.to_bytes()
        return b"".join([pieces[position] for position in sorted(pieces)])

    # ----------------------------------------------------------------------------------- rows

    def scan(
        self,
        start: Offsets = None,
        end: Offsets = None,
        *,
        partition: int | None = None,
        keys: Keys = None,
        time: Times = None,
        columns: Sequence[str] | None = None,
    ) -> Iterator[pa.RecordBatch]:
        """The rows between two offsets, never past the durable watermark, as `Journal.scan`."""
        bounds = bounds_of(time, time_ns())
        return self._scan(self._ranges(start, end, partition), _texts(keys), bounds, columns)

    def follow(
        self,
        start: Offsets = None,
        *,
        partition: int | None = None,
        keys: Keys = None,
        time: Times = None,
        columns: Sequence[str] | None = None,
        poll: float = 0.1,
    ) -> Iterator[pa.RecordBatch]:
        """The rows from `start` on, and those to come, until `close`."""
        texts = _texts(keys)
        bounds = bounds_of(time, time_ns())

        def read(ranges: list[Range]) -> Iterator[pa.RecordBatch]:
            return self._scan(ranges, texts, bounds, columns)

        return self._woken(self._places(start, partition), read, poll)

    def _woken(
        self,
        places: dict[int, int | None],
        read: Callable[[list[Range]], Iterator[pa.RecordBatch]],
        poll: float,
    ) -> Iterator[pa.RecordBatch]:
        # The watermark is published as it moves: it wakes programs that wait for rows.
        moved = threading.Event()

        def pause() -> None:
            moved.wait(poll)
            moved.clear()

        with self._session.declare_subscriber(f"{self._root}/watermark", lambda _: moved.set()):
            yield from self._following(places, read, pause)

    def _scan(
        self,
        ranges: list[Range],
        keys: tuple[str, ...],
        time: TimeBounds,
        columns: Sequence[str] | None,
    ) -> Iterator[pa.RecordBatch]:
        named = None if columns is None else tuple(columns)
        kept = self.earliest() if any(first is None for _, first, _ in ranges) else ()
        for number, first, end in ranges:
            start = kept[number] if first is None else first
            while start < end and not self._closed.is_set():
                request = RowRequest(number, start, end, keys, time, named, self.id)
                before = start
                for rows, after in self._parts(request):
                    start = max(start, after)
                    yield from rows
                if start == before:
                    raise JournalError(
                        f"{self.name} gave nothing from offset {start} of partition {number} on; "
                        "ask again when its recorder is back"
                    )

    def _parts(self, request: RowRequest) -> Iterator[tuple[list[pa.RecordBatch], int]]:
        """The replies to one query: their batches, and how far each got."""
        for reply in self._ask(f"rows/{request.partition}/**", request.to_json()):
            sample = reply.ok
            if sample is None:
                raise _refusal(reply)
            attachment = sample.attachment
            if attachment is None:
                raise DecodeError(f"rows of {self.name} came without saying how far they reach")
            part = json.loads(attachment.to_bytes())
            batches = batches_in(sample.payload.to_bytes()) if part["rows"] else []
            yield batches, int(part["next"])

    # --------------------------------------------------------------------------------- asking

    def _ask(self, what: str, payload: str | None) -> Iterator[Reply]:
        return iter(
            self._session.get(
                f"{self._root}/{what}",
                consolidation=ConsolidationMode.NONE,
                payload=payload,
                timeout=self._timeout,
            )
        )

    def _document(self, name: str) -> dict[str, Any]:
        for reply in self._ask(name, None):
            sample = reply.ok
            if sample is None:
                raise _refusal(reply)
            page: dict[str, Any] = json.loads(sample.payload.to_bytes())
            return page
        raise Timeout(
            f"nobody answers for {self._root}: start `zenlake record --name "
            f"{self._root.partition('/')[2]}`, or connect to where it runs"
        )


def _texts(keys: Keys) -> tuple[str, ...]:
    if keys is None:
        return ()
    if isinstance(keys, str | KeyExpr):
        return (str(KeyExpr.of(keys)),)
    return tuple(str(KeyExpr.of(key)) for key in keys)


def _unsealed(segment: Segment) -> Segment:
    return replace(segment, sealed=False)


def _refusal(reply: Reply) -> JournalError:
    error = reply.err
    text = b"" if error is None else error.payload.to_bytes()
    try:
        refusal = json.loads(text)
        message = str(refusal["error"])
        if "earliest" in refusal:
            return JournalGap(message, int(refusal["partition"]), int(refusal["earliest"]))
        return JournalError(message)
    except (ValueError, KeyError, TypeError):
        return JournalError(f"the journal refused: {text[:200]!r}")
