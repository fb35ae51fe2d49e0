"""From the bytes of a batch to the rows of a table, with no object a sample.

A `RowLane` walks over the Push messages of a frame and writes five machine words for each:

    the value, as Arrow's "view"     two words: length, and the bytes themselves if they are few,
                                     or else which of the chunks that are kept, and where in it
    time                             of its timestamp, shifted as `hlc` is; or which of those
                                     without a timestamp it is
    flags                            QoS, kind, reliability, whether it has a timestamp, encoding
    numbers                          of its key, and of the id in its timestamp

What few messages have (source information, attachments, encoding schemas) goes into lists of
their own. `zenlake.journal.columns` makes columns of all that, many rows at a time.

The walk takes what is usual and stops before anything else. The session then reads that message
in its own way, and finds the error in it if there is one: there is one judge of the protocol.
"""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock
from typing import Final

from librt.strings import BytesWriter, read_i32_le, read_i64_le, write_i32_le, write_i64_le
from mypy_extensions import i32, i64

from zenlake.clock.hlc import Hlc
from zenlake.engine.channel import Channel
from zenlake.node.forward import Inbound
from zenlake.node.sample import Sample
from zenlake.node.sink import FrameSink, Lane
from zenlake.wire.cursor import Reader, Writer

#: The longest value that a view holds itself.
INLINE: Final = 12
#: Bytes of a row in the table.
ROW: Final = 40
#: Bits of a row's flags; the QoS byte is below them, the encoding above.
DELETED: Final = 0x100
RELIABLE: Final = 0x200
UNSTAMPED: Final = 0x400
#: How many keys and ids are numbered before numbering begins anew.
NUMBERED: Final = 1 << 16
#: How many names of keys a lane finds without making an object, and how many it knows at all.
SLOTS: Final = 1024
NAMES: Final = 1 << 14
#: What a chunk costs beside its bytes; also, a channel does not weigh what is lighter.
OVERHEAD: Final = 1100
#: How many bytes wait at the most while nobody may be paused for them, and how many rows.
MOST_BYTES: Final = 256 << 20
MOST_ROWS: Final = 1 << 22


class Seen:
    """The id that was seen last somewhere, to be known again without making an object."""

    __slots__ = ("high", "low", "number", "size")

    def __init__(self) -> None:
        """None yet."""
        self.size: i64 = 0
        self.low: i64 = 0
        self.high: i64 = 0
        self.number: i64 = 0


class Name:
    """A key as one neighbour names it; it rarely has more than one publisher."""

    __slots__ = ("inbound", "key", "short", "source", "stamp", "suffix")

    def __init__(self, key: i64, short: i64, suffix: bytes, inbound: Inbound) -> None:
        """`key`: its number; `short`: header and scope of the messages that name it."""
        self.inbound: Inbound = inbound
        self.key: i64 = key
        self.short: i64 = short
        self.suffix: bytes = suffix
        self.stamp: Seen = Seen()
        self.source: Seen = Seen()


class Table:
    """Rows under construction, or handed over."""

    __slots__ = (
        "attachments", "chunk", "chunk_number", "chunks", "count", "frames", "held", "ids", "keys",
        "rows", "schemas", "sources",
    )  # fmt: skip

    def __init__(self, keys: list[str], ids: list[bytes]) -> None:
        """The numbers of keys and ids count in these lists, which grow."""
        self.keys: list[str] = keys
        self.ids: list[bytes] = ids
        self.chunks: list[bytes] = []
        #: The bytes of all chunks.
        self.held: int = 0
        #: The chunk that lanes walk on, and its number.
        self.chunk: bytes = b""
        self.chunk_number: i64 = -1
        self.count: i64 = 0
        self.rows: BytesWriter = BytesWriter()
        #: Of each stretch of rows: how many, when they were received in µs, their first stamp.
        self.frames: BytesWriter = BytesWriter()
        #: Row, number of the id, entity, sequence number.
        self.sources: BytesWriter = BytesWriter()
        #: Row, and the two words of a view.
        self.attachments: BytesWriter = BytesWriter()
        self.schemas: BytesWriter = BytesWriter()

    def keep(self, data: bytes) -> i64:
        """Keep a chunk; its number."""
        chunks = self.chunks
        chunks.append(data)
        self.held += len(data)
        return len(chunks) - 1

    def forget(self) -> None:
        """The chunk that was kept last is not needed."""
        self.held -= len(self.chunks.pop())
        self.chunk = b""

    def view(self, out: BytesWriter, data: bytes) -> None:
        """Write the view of some bytes that are a chunk of their own."""
        size: i64 = len(data)
        if size > INLINE:
            write_i64_le(out, size)
            write_i64_le(out, self.keep(data))
        else:
            write_view(out, data, 0, size, 0)


def write_view(out: BytesWriter, data: bytes, at: i64, size: i64, chunk: i64) -> None:
    """Write the view of `data[at : at + size]`, where `data` is the chunk of that number."""
    if size > INLINE:
        write_i64_le(out, size)
        write_i64_le(out, chunk | (at << 32))
    elif at + INLINE <= len(data):
        # What follows the value is never looked at.
        write_i32_le(out, i32(size))
        write_i32_le(out, read_i32_le(data, at))
        write_i64_le(out, read_i64_le(data, at + 4))
    else:
        write_i32_le(out, i32(size))
        for i in range(INLINE):
            out.append(data[at + i] if i < size else 0)


class Rows(FrameSink):
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
        self.table: Table = Table([], [])
        self.received: int = 0
        self.dropped: int = 0
        self._renumber()

    def _renumber(self) -> None:
        self.generation += 1
        self.key_numbers = {}
        self.id_numbers = {self.own: 0}
        self.table = Table([], [self.own])

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

    def lane(self) -> Lane:
        """A lane for one more neighbour."""
        return RowLane(self)

    def swap(self) -> Table:
        """All rows so far; new ones go to a new table."""
        with self.guard:
            table = self.table
            if len(table.keys) > NUMBERED or len(table.ids) > NUMBERED:
                self._renumber()
            else:
                self.table = Table(table.keys, table.ids)
        return table

    def has_room(self) -> bool:
        """Whether rows are taken in, or dropped because those who bring them cannot be paused."""
        table = self.table
        return table.held < MOST_BYTES and table.count < MOST_ROWS and not self.channel.ended

    def end_stretch(self, count: int, unstamped: int, now: int, weight: int) -> None:
        """Rows were written that came together; the guard is held."""
        table = self.table
        stamp: i64 = 0
        if unstamped:
            first = self.hlc.reserve(unstamped, now)
            seconds: i64 = first.seconds
            fraction: i64 = first.fraction
            stamp = ((seconds - 0x8000_0000) << 32) + fraction
        frames = table.frames
        write_i64_le(frames, count)
        write_i64_le(frames, now // 1000)
        write_i64_le(frames, stamp)
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
        payload = sample._payload
        weight = len(payload)
        schema = sample._schema
        if schema:
            write_i64_le(table.schemas, row)
            table.view(table.schemas, schema)
        push = sample._push
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
        flags: i64 = sample._qos
        if not sample._put:
            flags |= DELETED
        if sample._reliable:
            flags |= RELIABLE
        time: i64 = 0
        number: i64 = 0
        unstamped = 0
        if sample._stamp_id:
            seconds: i64 = sample._seconds
            fraction: i64 = sample._fraction
            time = ((seconds - 0x8000_0000) << 32) + fraction
            number = self.id_number(sample._stamp_id)
        else:
            flags |= UNSTAMPED
            unstamped = 1
        encoding: i64 = sample._encoding
        flags |= encoding << 16
        key: i64 = self.key_number(str(sample._key_expr))
        rows = table.rows
        table.view(rows, payload)
        write_i64_le(rows, time)
        write_i64_le(rows, flags)
        write_i64_le(rows, key | (number << 32))
        table.count = row + 1
        self.end_stretch(1, unstamped, now, weight)

    def commit(self) -> None:
        """Samples of this very node were pushed: wake who takes; wait a while if it is behind."""
        channel = self.channel
        channel.commit()
        if channel.is_full():
            channel.wait_for_room()

    def end(self) -> None:
        """There will be no more."""
        self.channel.end()


class RowLane(Lane):
    """Walks over the messages of one neighbour."""

    def __init__(self, rows: Rows) -> None:
        """Into the table of `rows`."""
        super().__init__()
        self.rows: Rows = rows
        self.generation: int = rows.generation
        self.names: dict[bytes, Name] = {}
        #: Ways by what their names have in common with few others.
        self.slots: list[Name | None] = [None] * SLOTS
        self._stop: i64 = 0
        self._unstamped: i64 = 0

    def clear(self) -> None:
        """Forget all names."""
        self.names.clear()
        self.slots = [None] * SLOTS

    def learn(self, scope: int, mine: bool, suffix: str, inbound: Inbound) -> None:
        """What a Push with this scope and suffix means."""
        rows = self.rows
        with rows.guard:
            if self.generation != rows.generation or len(self.names) >= NAMES:
                self.clear()
                self.generation = rows.generation
            number = rows.key_number(str(inbound.key_expr))
        tail = suffix.encode("utf-8")
        header = 0x1D | (0x20 if tail else 0) | (0x40 if mine else 0)
        w = Writer()
        w.vle(scope, 0xFFFF)
        if tail:
            w.sized(tail, 0xFFFF)
        name = w.getvalue()
        found = Name(number, (scope << 8) | header, tail, inbound)
        self.names[bytes((header,)) + name] = found
        self.names[bytes((header | 0x80,)) + name] = found  # with extensions

    def walk(self, r: Reader, reliable: bool) -> int:
        """Take what can be taken."""
        rows = self.rows
        rows.guard.acquire()
        try:
            if self.generation != rows.generation:
                self.clear()
                self.generation = rows.generation
            if not self.names or not rows.has_room():
                return 0
            now = rows.wall()
            table = rows.table
            data = r.data
            weight = 0
            if table.chunk is not data:
                weight = len(data)
                table.chunk = data
                table.chunk_number = table.keep(data)
            count = self._walk(table, data, r.pos, r.end, RELIABLE if reliable else 0)
            if count:
                rows.end_stretch(count, self._unstamped, now, weight)
                r.pos = self._stop
            elif weight:
                table.forget()
            return count
        finally:
            rows.guard.release()

    def _find(self, data: bytes, start: i64, at: i64, stop: i64, short: i64) -> Name | None:
        """The name that `data[start:stop]` names; its suffix begins `at`."""
        size = stop - at
        low: i64 = 0
        high: i64 = 0
        slot: i64 = short ^ (short >> 6)
        if size >= 8:
            low = read_i64_le(data, at)
            high = read_i64_le(data, stop - 8)
            mixed = low ^ (low >> 23) ^ (low >> 41)
            mixed ^= high ^ (high >> 19) ^ (high >> 37) ^ (high >> 54)
            slot ^= mixed ^ size
        elif size > 0:
            i = at
            while i < stop:
                slot = (slot << 3) ^ data[i]
                i += 1
        slot &= SLOTS - 1
        found = self.slots[slot]
        if found is not None and found.short == short:
            known = found.suffix
            if len(known) == size:
                i = 0
                if size >= 8:
                    while i + 8 <= size:
                        if read_i64_le(known, i) != read_i64_le(data, at + i):
                            break
                        i += 8
                    if i + 8 > size and read_i64_le(known, size - 8) == high:
                        return found
                else:
                    while i < size and known[i] == data[at + i]:
                        i += 1
                    if i == size:
                        return found
        # Not seen in this slot of late: an object is made to look for it.
        found = self.names.get(data[start:stop])
        if found is not None:
            self.slots[slot] = found
        return found

    def _zid(self, seen: Seen, data: bytes, at: i64, size: i64) -> i64:
        """The number of the id at `at`."""
        if size < 8:
            return self.rows.id_number(data[at : at + size])
        low = read_i64_le(data, at)
        high = read_i64_le(data, at + size - 8)
        if low != seen.low or high != seen.high or size != seen.size:
            seen.number = self.rows.id_number(data[at : at + size])
            seen.low = low
            seen.high = high
            seen.size = size
        return seen.number

    def _walk(self, table: Table, data: bytes, start: i64, end: i64, lane: i64) -> i64:
        """Write rows; `_stop` is then where the first message begins that was not taken."""
        rows = table.rows
        pos: i64 = start
        stop: i64 = start
        count: i64 = 0
        unstamped: i64 = 0
        first: i64 = table.count
        chunk: i64 = table.chunk_number
        while pos + 4 <= end:
            header: i64 = data[pos]
            if header & 0x1F != 0x1D:
                break
            # -- the key
            scope: i64 = data[pos + 1]
            pos += 2
            if scope >= 0x80:
                byte: i64 = data[pos]
                scope = (scope & 0x7F) | (byte << 7)
                pos += 1
                if byte >= 0x80:
                    break
            at = pos
            if header & 0x20:
                length: i64 = data[pos]
                pos += 1
                if length >= 0x80:
                    if pos >= end:
                        break
                    byte = data[pos]
                    length = (length & 0x7F) | (byte << 7)
                    pos += 1
                    if byte >= 0x80:
                        break
                at = pos
                pos += length
            if pos + 2 > end:
                break
            found = self._find(data, stop, at, pos, (scope << 8) | (header & 0x7F))
            if found is None:
                break
            flags: i64 = lane | 5
            if header & 0x80:
                if pos + 4 > end or data[pos] != 0x21:
                    break
                byte = data[pos + 1]
                if byte >= 0x80:
                    break
                flags = lane | byte
                pos += 2
            # -- the body
            body: i64 = data[pos]
            pos += 1
            kind = body & 0x1F
            if kind == 2:
                flags |= DELETED
            elif kind != 1:
                break
            time: i64 = 0
            number: i64 = 0
            if body & 0x20:
                if pos + 11 > end:
                    break
                word = read_i64_le(data, pos)
                # Nine bytes, all but the last with more to come: eight times seven bits are moved
                # together. No constant has 63 bits, which compiled code would keep as an object.
                if word >= 0 or word & 0x0080_8080_8080_8080 != 0x0080_8080_8080_8080:
                    break  # a time of the year 1970
                word = (word & 0x007F_007F_007F_007F) | ((word >> 1) & 0x3F80_3F80_3F80_3F80)
                word = (word & 0x0000_3FFF_0000_3FFF) | ((word >> 2) & 0x0FFF_C000_0FFF_C000)
                word = (word & 0x0FFF_FFFF) | ((word >> 4) & 0x00FF_FFFF_F000_0000)
                top: i64 = data[pos + 8]
                time = word + ((top - 0x80) << 56)
                size: i64 = data[pos + 9]
                pos += 10
                if size < 1 or size > 16 or pos + size > end or data[pos + size - 1] == 0:
                    break
                number = self._zid(found.stamp, data, pos, size)
                pos += size
            else:
                flags |= UNSTAMPED
                time = unstamped
            schema_at: i64 = 0
            schema_size: i64 = 0
            if kind == 1 and body & 0x40:
                if pos + 3 > end:
                    break
                encoding: i64 = data[pos]
                pos += 1
                if encoding >= 0x80:
                    byte = data[pos]
                    encoding = (encoding & 0x7F) | ((byte & 0x7F) << 7)
                    pos += 1
                    if byte >= 0x80:
                        byte = data[pos]
                        encoding |= byte << 14
                        pos += 1
                        if byte >= 0x80:
                            break
                flags |= ((encoding >> 1) & 0xFFFF) << 16
                if encoding & 1:
                    if pos >= end:
                        break
                    schema_size = data[pos]
                    pos += 1
                    if schema_size >= 0x80:
                        break
                    schema_at = pos
                    pos += schema_size
                if pos > end:
                    break
            attachment_at: i64 = -1
            attachment_size: i64 = 0
            source: i64 = -1
            eid: i64 = 0
            sn: i64 = 0
            if body & 0x80:
                more = True
                while more and pos + 2 <= end:
                    tag: i64 = data[pos]
                    byte = data[pos + 1]
                    pos += 2
                    size = byte & 0x7F
                    shift: i64 = 7
                    while byte >= 0x80 and shift < 28 and pos < end:
                        byte = data[pos]
                        size |= (byte & 0x7F) << shift
                        shift += 7
                        pos += 1
                    if byte >= 0x80 or pos + size > end:
                        break
                    if tag & 0x7F == 0x41:
                        if size < 4:
                            break
                        packed: i64 = data[pos]
                        width = (packed >> 4) + 1
                        inner = pos + 1 + width
                        pos += size
                        if inner + 2 > pos or data[inner - 1] == 0:
                            break
                        source = self._zid(found.source, data, inner - width, width)
                        byte = data[inner]
                        inner += 1
                        eid = byte & 0x7F
                        shift = 7
                        while byte >= 0x80 and shift < 42 and inner < pos:
                            byte = data[inner]
                            eid |= (byte & 0x7F) << shift
                            shift += 7
                            inner += 1
                        if byte >= 0x80 or inner >= pos:
                            break
                        byte = data[inner]
                        inner += 1
                        sn = byte & 0x7F
                        shift = 7
                        while byte >= 0x80 and shift < 42 and inner < pos:
                            byte = data[inner]
                            sn |= (byte & 0x7F) << shift
                            shift += 7
                            inner += 1
                        if byte >= 0x80 or inner != pos:
                            break
                    elif tag & 0x7F == 0x44 - kind:
                        attachment_at = pos
                        attachment_size = size
                        pos += size
                    else:
                        break
                    more = tag >= 0x80
                if more:
                    break
            value: i64 = 0
            if kind == 1:
                if pos >= end:
                    break
                byte = data[pos]
                pos += 1
                value = byte & 0x7F
                shift = 7
                while byte >= 0x80 and shift < 28 and pos < end:
                    byte = data[pos]
                    value |= (byte & 0x7F) << shift
                    shift += 7
                    pos += 1
                if byte >= 0x80 or pos + value > end:
                    break
            # -- the row
            write_view(rows, data, pos, value, chunk)
            write_i64_le(rows, time)
            write_i64_le(rows, flags)
            write_i64_le(rows, found.key | (number << 32))
            if schema_size:
                pieces = table.schemas
                write_i64_le(pieces, first + count)
                write_view(pieces, data, schema_at, schema_size, chunk)
            if attachment_at >= 0:
                pieces = table.attachments
                write_i64_le(pieces, first + count)
                write_view(pieces, data, attachment_at, attachment_size, chunk)
            if source >= 0:
                pieces = table.sources
                write_i64_le(pieces, first + count)
                write_i64_le(pieces, source)
                write_i64_le(pieces, eid & 0xFFFF_FFFF)
                write_i64_le(pieces, sn & 0xFFFF_FFFF)
            if flags & UNSTAMPED:
                unstamped += 1
            count += 1
            inbound = found.inbound
            inbound.samples += 1
            inbound.size += value
            pos += value
            stop = pos
        table.count = first + count
        self._stop = stop
        self._unstamped = unstamped
        return count
