"""A walk over the Push messages of a frame that writes a row for each, and makes no object.

The walk takes what is usual and stops before anything else. The session then reads that message
in its own way, and finds the error in it if there is one: there is one judge of the protocol.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from librt.strings import read_i64_le, write_i64_le
from mypy_extensions import i64

from zenlake.journal.ingest.names import KeyName, SeenId
from zenlake.journal.ingest.table import DELETED, RELIABLE, UNSTAMPED, RowTable, write_view
from zenlake.node.routes.forward import Fan, HeadRoute, Inbound, Lane, Relay
from zenlake.node.stamps import Timestamper
from zenlake.values.qos import QOS_DEFAULT
from zenlake.wire.cursor import Reader, Writer
from zenlake.wire.numbers import (
    DEL,
    DEL_EXT_ATTACHMENT,
    EXTENSION,
    ID,
    MORE,
    PUSH,
    PUSH_EXT_QOS,
    PUSH_FLAG_SENDER_MAPPING,
    PUSH_FLAG_SUFFIX,
    PUT,
    PUT_EXT_ATTACHMENT,
    PUT_EXT_SOURCE_INFO,
    PUT_FLAG_ENCODING,
    PUT_FLAG_TIMESTAMP,
)  # fmt: skip

if TYPE_CHECKING:
    from zenlake.journal.ingest.kernel import RowSink

#: How many names of keys a lane finds without making an object, and how many it knows at all.
SLOTS: Final = 1024
NAMES: Final = 1 << 14
#: Of one name, how many ways to say it are remembered: with which quality, with which fields.
ROUTES: Final = 16


class RowLane(Lane):
    """Walks over the messages of one neighbour."""

    def __init__(self, rows: RowSink, stamps: Timestamper | None, relay: Relay) -> None:
        """Into the table of `rows`, and on to others by `relay`; with times by `stamps`."""
        super().__init__()
        self.rows: RowSink = rows
        self.stamps: Timestamper | None = stamps
        self.relay: Relay = relay
        self.generation: int = rows.generation
        self.names: dict[bytes, KeyName] = {}
        #: Ways by what their names have in common with few others.
        self.slots: list[KeyName | None] = [None] * SLOTS
        self._stop: i64 = 0
        #: The clock, as `Hlc` has it in machine words.
        self._last: i64 = 0
        self._reading: i64 = 0
        self._limit: i64 = 0
        #: What the parts of a message were that only some have.
        self._encoding_id: i64 = 0
        self._schema_at: i64 = 0
        self._schema_size: i64 = 0
        self._attachment_at: i64 = -1
        self._attachment_size: i64 = 0
        self._source: i64 = -1
        self._eid: i64 = 0
        self._sn: i64 = 0

    def clear(self) -> None:
        """Forget all names."""
        self.names.clear()
        self.slots = [None] * SLOTS

    def learn(self, scope: int, mine: bool, suffix: str, inbound: Inbound, deletes: bool) -> None:
        """What a Push with this scope and suffix means."""
        rows = self.rows
        with rows.guard:
            if self.generation != rows.generation or len(self.names) >= NAMES:
                self.clear()
                self.generation = rows.generation
            number = rows.key_number(str(inbound.key_expr))
        tail = suffix.encode("utf-8")
        header = PUSH
        if tail:
            header |= PUSH_FLAG_SUFFIX
        if mine:
            header |= PUSH_FLAG_SENDER_MAPPING
        w = Writer()
        w.vle(scope, 0xFFFF)
        if tail:
            w.sized(tail, 0xFFFF)
        name = w.getvalue()
        key_name = KeyName(number, (scope << 8) | header, tail, inbound, deletes)
        self.names[bytes((header,)) + name] = key_name
        self.names[bytes((header | MORE,)) + name] = key_name  # with extensions

    def walk(self, r: Reader, reliable: bool) -> int:
        """Take what can be taken."""
        rows = self.rows
        rows.guard.acquire()
        try:
            if self.generation != rows.generation:
                self.clear()
                self.generation = rows.generation
            now = rows.wall()
            if not self.names or not rows.has_room() or not self._look_at_clock(now):
                return 0
            table = rows.table
            data = r.data
            weight = 0
            if table.chunk is not data:
                weight = len(data)
                table.chunk = data
                table.chunk_number = table.keep(data)
            count = self._walk(table, data, r.pos, r.end, RELIABLE if reliable else 0)
            if count:
                # No other thread has moved the clock: that takes the node's lock or ours.
                rows.hlc.move_to(self._last)
                rows.end_stretch(count, now, weight)
                r.pos = self._stop
            elif weight:
                table.forget()
            return count
        finally:
            rows.guard.release()

    def _look_at_clock(self, now: int) -> bool:
        """Read the clock for what is walked over now; False if it is about to end."""
        hlc = self.rows.hlc
        stamps = self.stamps
        reading = now if stamps is None else stamps.reading()
        if not hlc.may_tick(reading):
            return False
        self._last = hlc.last_word()
        self._reading = hlc.reading_word(reading)
        self._limit = hlc.limit_word(reading)
        return True

    def _route(self, name: KeyName, said: i64, head: bytes, qos: i64, reliable: bool) -> HeadRoute:
        """How a put goes on that begins with `head`."""
        route = name.routes.get(said)
        if route is None:
            if len(name.routes) >= ROUTES:
                name.routes.clear()
            route = HeadRoute(name.inbound, qos, head)
            name.routes[said] = route
        if route.version != name.inbound.version or route.reliable != reliable:
            self.relay.lay(route, reliable, self.stamps is not None)
        name.said = said
        name.route = route
        return route

    def _find(self, data: bytes, start: i64, at: i64, stop: i64, short: i64) -> KeyName | None:
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
        key_name = self.slots[slot]
        if key_name is not None and key_name.short == short:
            known = key_name.suffix
            if len(known) == size:
                i = 0
                if size >= 8:
                    while i + 8 <= size:
                        if read_i64_le(known, i) != read_i64_le(data, at + i):
                            break
                        i += 8
                    if i + 8 > size and read_i64_le(known, size - 8) == high:
                        return key_name
                else:
                    while i < size and known[i] == data[at + i]:
                        i += 1
                    if i == size:
                        return key_name
        # Not seen in this slot of late: an object is made to look for it.
        key_name = self.names.get(data[start:stop])
        if key_name is not None:
            self.slots[slot] = key_name
        return key_name

    def _zid(self, seen: SeenId, data: bytes, at: i64, size: i64) -> i64:
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

    # ------------------------------------------------------------------------------ the walk
    #
    # Parts that only some messages have are functions: each gives the place behind it, or -1 if it
    # is not usual, and leaves what it found in attributes. Everything that nearly every message
    # has is in the one loop, because a call for each would cost as much as the work.

    def _walk(self, table: RowTable, data: bytes, start: i64, end: i64, lane: i64) -> i64:
        """Write rows; `_stop` is then where the first message begins that was not taken."""
        rows = table.rows
        pos: i64 = start
        stop: i64 = start
        count: i64 = 0
        last: i64 = self._last
        stamps = self.stamps
        first: i64 = table.count
        chunk: i64 = table.chunk_number
        while pos + 4 <= end:
            header: i64 = data[pos]
            if header & ID != PUSH:
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
            if header & PUSH_FLAG_SUFFIX:
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
            key_name = self._find(data, stop, at, pos, (scope << 8) | (header & 0x7F))
            if key_name is None:
                break
            # -- how it is sent
            qos: i64 = QOS_DEFAULT
            if header & MORE:
                if pos + 4 > end or data[pos] != PUSH_EXT_QOS:
                    break
                qos = data[pos + 1]
                if qos >= 0x80:
                    break
                pos += 2
            flags: i64 = lane | qos
            # -- what it is, and who else hears it
            body: i64 = data[pos]
            pos += 1
            kind = body & ID
            if kind == DEL:
                if not key_name.deletes:
                    break
                flags |= DELETED
            elif kind != PUT:
                break
            fan: Fan | None = None
            route = key_name.route
            if key_name.forwarded:
                said = (header & MORE) << 9 | qos << 8 | body
                reliable = lane != 0
                if route is None or said != key_name.said or route.reliable != reliable:
                    route = self._route(key_name, said, data[stop:pos], qos, reliable)
                fan = route.fan
                if fan is None:
                    break
            body_at = pos
            # -- its time
            time: i64 = 0
            after: i64 = last
            number: i64 = 0
            if body & PUT_FLAG_TIMESTAMP:  # the same bit in both
                if pos + 11 > end:
                    break
                word = read_i64_le(data, pos)
                if not is_long(word):
                    break  # a time of the year 1970
                top: i64 = data[pos + 8]
                time = squeezed(word) + ((top - 0x80) << 56)
                size: i64 = data[pos + 9]
                pos += 10
                if size < 1 or size > 16 or pos + size > end or data[pos + size - 1] == 0:
                    break
                number = self._zid(key_name.stamp, data, pos, size)
                pos += size
                if stamps is not None:
                    if time > self._limit:
                        break
                    if time > after:
                        after = time
                    if self._reading > after:
                        after = self._reading
            else:
                if stamps is None or kind == DEL:
                    flags |= UNSTAMPED
                time = last + 1
                if time < self._reading:
                    time = self._reading
                after = time
            # -- what only some have
            schema: i64 = 0
            if kind == PUT and body & PUT_FLAG_ENCODING:
                pos = self._encoding(data, pos, end)
                if pos < 0:
                    break
                flags |= self._encoding_id << 16
                schema = self._schema_size
            if body & MORE:
                pos = self._extensions(key_name, data, pos, end, kind)
                if pos < 0:
                    break
            # -- its value
            value: i64 = 0
            if kind == PUT:
                if pos >= end:
                    break
                byte = data[pos]
                pos += 1
                value = byte & 0x7F
                shift: i64 = 7
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
            write_i64_le(rows, key_name.key | (number << 32))
            if schema:
                write_i64_le(table.schemas, first + count)
                write_view(table.schemas, data, self._schema_at, schema, chunk)
            if body & MORE:
                self._write_extensions(table, data, first + count, chunk)
            count += 1
            last = after
            inbound = key_name.inbound
            inbound.samples += 1
            inbound.size += value
            pos += value
            stop = pos
            # -- and on to others
            if fan is not None and route is not None:
                if stamps is None or body & PUT_FLAG_TIMESTAMP:
                    self.relay.add(route, fan, b"", b"", data[body_at:pos])
                else:
                    stamps.write(time)
                    self.relay.add(route, fan, stamps.first, stamps.rest, data[body_at:pos])
        table.count = first + count
        self._stop = stop
        self._last = last
        return count

    def _encoding(self, data: bytes, pos: i64, end: i64) -> i64:
        """Read an encoding: its number, and where its schema lies."""
        if pos + 3 > end:
            return -1
        encoding: i64 = data[pos]
        pos += 1
        if encoding >= 0x80:
            byte: i64 = data[pos]
            encoding = (encoding & 0x7F) | ((byte & 0x7F) << 7)
            pos += 1
            if byte >= 0x80:
                byte = data[pos]
                encoding |= byte << 14
                pos += 1
                if byte >= 0x80:
                    return -1
        self._encoding_id = (encoding >> 1) & 0xFFFF
        size: i64 = 0
        if encoding & 1:
            if pos >= end:
                return -1
            size = data[pos]
            pos += 1
            if size >= 0x80:
                return -1
        self._schema_at = pos
        self._schema_size = size
        pos += size
        return pos if pos <= end else -1

    def _extensions(self, name: KeyName, data: bytes, pos: i64, end: i64, kind: i64) -> i64:
        """Read the extensions of a value: which source it has, and where its attachment lies."""
        attachment: i64 = PUT_EXT_ATTACHMENT if kind == PUT else DEL_EXT_ATTACHMENT
        self._attachment_at = -1
        self._source = -1
        more = True
        while more and pos + 2 <= end:
            tag: i64 = data[pos]
            byte: i64 = data[pos + 1]
            pos += 2
            size = byte & 0x7F
            shift: i64 = 7
            while byte >= 0x80 and shift < 28 and pos < end:
                byte = data[pos]
                size |= (byte & 0x7F) << shift
                shift += 7
                pos += 1
            if byte >= 0x80 or pos + size > end:
                return -1
            if tag & EXTENSION == PUT_EXT_SOURCE_INFO:  # the same in both
                if not self._source_info(name, data, pos, size):
                    return -1
            elif tag & EXTENSION == attachment:
                self._attachment_at = pos
                self._attachment_size = size
            else:
                return -1
            pos += size
            more = tag >= MORE
        return -1 if more else pos

    def _source_info(self, name: KeyName, data: bytes, pos: i64, size: i64) -> bool:
        """Read which source a value has, and its number there."""
        if size < 4:
            return False
        packed: i64 = data[pos]
        width = (packed >> 4) + 1
        end = pos + size
        pos += 1 + width
        if pos + 2 > end or data[pos - 1] == 0:
            return False
        self._source = self._zid(name.source, data, pos - width, width)
        byte: i64 = data[pos]
        pos += 1
        value: i64 = byte & 0x7F
        shift: i64 = 7
        while byte >= 0x80 and shift < 42 and pos < end:
            byte = data[pos]
            value |= (byte & 0x7F) << shift
            shift += 7
            pos += 1
        if byte >= 0x80 or pos >= end:
            return False
        self._eid = value & 0xFFFF_FFFF
        byte = data[pos]
        pos += 1
        value = byte & 0x7F
        shift = 7
        while byte >= 0x80 and shift < 42 and pos < end:
            byte = data[pos]
            value |= (byte & 0x7F) << shift
            shift += 7
            pos += 1
        if byte >= 0x80 or pos != end:
            return False
        self._sn = value & 0xFFFF_FFFF
        return True

    def _write_extensions(self, table: RowTable, data: bytes, row: i64, chunk: i64) -> None:
        """Write what `_extensions` found."""
        if self._attachment_at >= 0:
            pieces = table.attachments
            write_i64_le(pieces, row)
            write_view(pieces, data, self._attachment_at, self._attachment_size, chunk)
        if self._source >= 0:
            pieces = table.sources
            write_i64_le(pieces, row)
            write_i64_le(pieces, self._source)
            write_i64_le(pieces, self._eid)
            write_i64_le(pieces, self._sn)


def is_long(word: i64) -> bool:
    """Whether each of eight bytes says that another follows: a number of nine bytes."""
    return word < 0 and word & 0x0080_8080_8080_8080 == 0x0080_8080_8080_8080


def squeezed(word: i64) -> i64:
    """The seven low bits of each of eight bytes, together.

    They are moved by twos, fours and eights. No constant has 63 bits, which compiled code would
    keep as an object.
    """
    word = (word & 0x007F_007F_007F_007F) | ((word >> 1) & 0x3F80_3F80_3F80_3F80)
    word = (word & 0x0000_3FFF_0000_3FFF) | ((word >> 2) & 0x0FFF_C000_0FFF_C000)
    return (word & 0x0FFF_FFFF) | ((word >> 4) & 0x00FF_FFFF_F000_0000)
