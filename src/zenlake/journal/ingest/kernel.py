"""From the bytes of a batch to the rows of a table, with no object a sample.

Lanes, one a neighbour, write what they walk over into one table of words (`table`, `walk`); the
thread that makes columns of it takes the whole table, and the next one begins.
"""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock
from typing import Final

from librt.strings import write_i64_le
from mypy_extensions import i64

from zenlake.clock.hlc import Hlc, word_of
from zenlake.engine.channel import Channel
from zenlake.journal.ingest.table import DELETED, RELIABLE, ROW, UNSTAMPED, RowTable
from zenlake.journal.ingest.walk import RowLane
from zenlake.node.routes.forward import FrameSink, Lane, Relay
from zenlake.node.sample import Sample
from zenlake.node.stamps import Timestamper

#: How many keys and ids are numbered before numbering begins anew.
NUMBERED: Final = 1 << 16
#: What a chunk costs beside its bytes; also, a channel does not weigh what is lighter.
OVERHEAD: Final = 1100
#: How many bytes wait at the most while nobody may be paused for them, and how many rows.
MOST_BYTES: Final = 256 << 20
MOST_ROWS: Final = 1 << 22


class RowSink(FrameSink):
    """A subscriber that turns what it hears into rows; taken by another thread."""

    def __init__(self, channel: Channel, hlc: Hlc, wall: Callable[[], int]) -> None:
        """`channel`: wakes who takes, and holds up links; `wall`: nanoseconds since 1970."""
        self.channel: Channel = channel
        self.hlc: Hlc = hlc
        self.wall: Callable[[], int] = wall
        self.guard: Lock = Lock()
        self.own: bytes = bytes(hlc.id)
        #: Counts how often numbering began anew.
        self.generation: int = 0
        self.key_numbers: dict[str, int] = {}
        self.id_numbers: dict[bytes, int] = {}
        self.table: RowTable = RowTable([], [])
        self.received: int = 0
        self.dropped: int = 0
        self._renumber()

    def _renumber(self) -> None:
        self.generation += 1
        self.key_numbers = {}
        self.id_numbers = {self.own: 0}
        self.table = RowTable([], [self.own])

    def key_number(self, key: str) -> int:
        """The number of a key; the guard is held."""
        number = self.key_numbers.get(key)
        if number is None:
            keys = self.table.keys
            number = len(keys)
            keys.append(key)
            self.key_numbers[key] = number
        return number

    def id_number(self, zid: bytes) -> int:
        """The number of an id; the guard is held."""
        number = self.id_numbers.get(zid)
        if number is None:
            ids = self.table.ids
            number = len(ids)
            ids.append(zid)
            self.id_numbers[zid] = number
        return number

    def lane(self, stamps: Timestamper | None, relay: Relay) -> Lane:
        """A lane for one more neighbour."""
        return RowLane(self, stamps, relay)

    def swap(self) -> RowTable:
        """All rows so far; new ones go to a new table."""
        with self.guard:
            table = self.table
            if len(table.keys) > NUMBERED or len(table.ids) > NUMBERED:
                self._renumber()
            else:
                self.table = RowTable(table.keys, table.ids)
        return table

    def has_room(self) -> bool:
        """Whether rows are taken in, or dropped because their links cannot be paused."""
        table = self.table
        return table.held < MOST_BYTES and table.count < MOST_ROWS and not self.channel.ended

    def end_stretch(self, count: int, now: int, weight: int) -> None:
        """Rows were written that came together; the guard is held."""
        frames = self.table.frames
        write_i64_le(frames, count)
        write_i64_le(frames, now // 1000)
        self.received += count
        self.channel.push(True, weight + count * ROW + OVERHEAD)

    # ---------------------------------------------------------------------- one row at a time

    def push(self, sample: Sample) -> None:
        """One sample that no lane took."""
        with self.guard:
            if self.has_room():
                self._append(sample)
            else:
                self.dropped += 1

    def _append(self, sample: Sample) -> None:
        now = self.wall()
        table = self.table
        row: i64 = table.count
        payload = sample.content()
        weight = len(payload)
        schema = sample.schema
        if schema:
            write_i64_le(table.schemas, row)
            table.view(table.schemas, schema)
        push = sample.push
        if push is not None:
            attachment = push.body.attachment
            if attachment is not None:
                write_i64_le(table.attachments, row)
                table.view(table.attachments, attachment)
                weight += len(attachment)
            source = push.body.source_info
            if source is not None:
                sources = table.sources
                write_i64_le(sources, row)
                write_i64_le(sources, self.id_number(source.zid))
                write_i64_le(sources, source.eid)
                write_i64_le(sources, source.sn)
        flags: i64 = sample.qos_byte
        if not sample.is_put:
            flags |= DELETED
        if sample.is_reliable:
            flags |= RELIABLE
        time: i64 = 0
        number: i64 = 0
        if sample.stamp_id:
            time = word_of(sample.stamp_seconds, sample.stamp_fraction)
            number = self.id_number(sample.stamp_id)
        else:
            flags |= UNSTAMPED
            seconds, fraction = self.hlc.tick(now)
            time = word_of(seconds, fraction)
        encoding: i64 = sample.encoding_id
        flags |= encoding << 16
        key: i64 = self.key_number(str(sample.key))
        rows = table.rows
        table.view(rows, payload)
        write_i64_le(rows, time)
        write_i64_le(rows, flags)
        write_i64_le(rows, key | (number << 32))
        table.count = row + 1
        self.end_stretch(1, now, weight)

    def commit(self) -> None:
        """Samples of this very node were pushed: wake who takes; wait a while if it is behind."""
        channel = self.channel
        channel.commit()
        if channel.is_full():
            channel.wait_for_room()

    def end(self) -> None:
        """There will be no more."""
        self.channel.end()
