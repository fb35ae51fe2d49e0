"""What a recorder subscribes with: samples come as Arrow record batches.

    sink = ColumnSink(partitions=4)
    with declare_columns(session, "robot/**", sink):
        while sink.wait():
            for partition, batch in sink.take():
                ...

The thread of the node writes words (`zenlake.journal.ingest.table`); the thread that takes makes
columns of them, all rows at once. Between the two is a channel, as any subscriber has one: when
bytes pile up, the links that bring them are read no more until they are taken.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from zenlake.api.core import open_runtime
from zenlake.clock import Hlc
from zenlake.engine.channel import END, Channel, live
from zenlake.errors import ZError
from zenlake.journal.disk.layout import partition_of
from zenlake.journal.ingest.kernel import RowSink
from zenlake.journal.ingest.rows import hlc_nanos
from zenlake.journal.ingest.table import DELETED, RELIABLE, UNSTAMPED, RowTable
from zenlake.journal.schema import HEARD, INSTANT, UNNUMBERED
from zenlake.keys import KeyExpr
from zenlake.node.entities import ANY, LocalSubscriber
from zenlake.recorded.columns import schema_words
from zenlake.values import QoS
from zenlake.values.qos import QOS_EXPRESS

if TYPE_CHECKING:
    from typing import Self

    from zenlake.api.session import Session
    from zenlake.engine.runtime import Runtime

__all__ = ["ColumnSink", "ColumnSubscriber", "declare_columns"]

#: How long rows may wait for company, in seconds: one batch of many costs less than many of few.
LINGER: Final = 0.02
#: This many bytes are company enough.
ENOUGH: Final = 1 << 20

#: About how many bytes of values a batch has at the most. Larger ones need memory that the system
#: has to find and clear anew each time, which costs more than to copy the values does.
PIECE_BYTES: Final = 8 << 20
#: Where they have so many rows, they end at a multiple of this, as the bytes of bitmaps do.
PIECE_ROWS: Final = 64

#: The word of a row, as `kernel` writes them.
ROW: Final = np.dtype(
    [
        ("view", "<i8", 2),
        ("time", "<i8"),
        ("flags", "<i8"),
        ("key", "<i4"),
        ("id", "<i4"),
    ]
)
FRAME: Final = np.dtype([("count", "<i8"), ("received", "<i8")])
PIECE: Final = np.dtype([("row", "<i8"), ("view", "<i8", 2)])
SOURCE: Final = np.dtype([("row", "<i8"), ("id", "<i8"), ("eid", "<i8"), ("sn", "<i8")])

Numbers = npt.NDArray[Any]


class ColumnSink:
    """Takes in samples, and gives record batches; declared once, by `declare_columns`."""

    def __init__(self, partitions: int = 1, *, origin: int = HEARD, linger: float = LINGER) -> None:
        """`origin`: what the rows say of where they come from; `linger`: see `wait`."""
        if partitions < 1:
            raise ZError(f"{partitions} partitions hold no rows: give 1 or more")
        self.partitions = partitions
        self.origin = origin
        self.linger = linger
        self.channel = Channel()
        self._rows: RowSink | None = None
        #: The partition of each numbered key, of one numbering.
        self._keys: list[str] = []
        self._partition_of: Numbers = np.zeros(0, np.int32)

    def open(self, hlc: Hlc, wall: Callable[[], int] = time.time_ns) -> RowSink:
        """The end that the node feeds; `hlc` gives times to samples that have none."""
        if self._rows is not None:
            raise ZError("this ColumnSink is declared already: make one for each declaration")
        self._rows = RowSink(self.channel, hlc, wall)
        return self._rows

    @property
    def received(self) -> int:
        """How many rows came."""
        return 0 if self._rows is None else self._rows.received

    @property
    def dropped(self) -> int:
        """How many samples were dropped: none were taken, and no link could be paused."""
        return 0 if self._rows is None else self._rows.dropped

    def wait(self) -> bool:
        """Wait until there is something to take; False when there will be no more.

        A little longer than that, if little came: rows are cheaper in company.
        """
        channel = self.channel
        if channel.take() is END:
            return False
        if self.linger and channel.queue.held < ENOUGH and not channel.ended:
            time.sleep(self.linger)
        return True

    def take(self) -> list[tuple[int, pa.RecordBatch]]:
        """All rows that came, by partition; empty when there are none. Never waits."""
        rows = self._rows
        if rows is None:
            return []
        # Tokens first: rows of a token that comes meanwhile are taken too, and it will only wake
        # for nothing; the other way round it would be lost, and nobody woken for its rows.
        channel = self.channel
        for _ in range(len(channel.queue.items)):
            channel.take(False)
        table = rows.swap()
        if not table.count:
            return []
        return self._batches(table)

    def close(self) -> None:
        """Take in no more; what came can still be taken."""
        self.channel.end()

    # ------------------------------------------------------------------------------- columns

    def _batches(self, table: RowTable) -> list[tuple[int, pa.RecordBatch]]:
        columns = FrameColumns(table, self.origin)
        if self.partitions == 1:
            return [(0, batch) for batch in columns.batches(None)]
        parts = self._partitions(table.keys)[columns.rows["key"]]
        batches: list[tuple[int, pa.RecordBatch]] = []
        for partition in np.flatnonzero(np.bincount(parts, minlength=self.partitions)).tolist():
            chosen = np.flatnonzero(parts == partition)
            batches += [(partition, batch) for batch in columns.batches(chosen)]
        return batches

    def _partitions(self, keys: list[str]) -> Numbers:
        """The partition of each key, worked out once a key."""
        if self._keys is not keys:
            self._keys = keys
            self._partition_of = np.zeros(0, np.int32)
        known = len(self._partition_of)
        if known < len(keys):
            more = [partition_of(key, self.partitions) for key in keys[known : len(keys)]]
            self._partition_of = np.concatenate([self._partition_of, np.array(more, np.int32)])
        return self._partition_of


class FrameColumns:
    """The columns of a table; rows can be chosen from them."""

    def __init__(self, table: RowTable, origin: int) -> None:
        """Everything that concerns all rows is worked out once."""
        self.table = table
        self.origin = origin
        self.rows = np.frombuffer(table.rows.getvalue(), ROW)
        count = len(self.rows)
        frames = np.frombuffer(table.frames.getvalue(), FRAME)
        self.received = np.repeat(frames["received"], frames["count"])
        flags = self.rows["flags"]
        self.flags = flags
        self.unstamped = (flags & UNSTAMPED) != 0
        self.hlc = np.ascontiguousarray(self.rows["time"])
        self.chunks = [pa.py_buffer(chunk) for chunk in table.chunks]
        self.sources = np.frombuffer(table.sources.getvalue(), SOURCE)
        self.count = count

    def batches(self, chosen: Numbers | None) -> list[pa.RecordBatch]:
        """The rows with these numbers, in their order; None: all."""
        rows = self.rows if chosen is None else self.rows[chosen]
        hlc = self.hlc if chosen is None else self.hlc[chosen]
        received = self.received if chosen is None else self.received[chosen]
        unstamped = self.unstamped if chosen is None else self.unstamped[chosen]
        count = len(rows)
        flags = rows["flags"]
        if (flags == flags[0]).all():
            flags = flags[:1]  # as when there is one publisher: worked out once, for all
        qos = flags & 0xFF
        eid, sn, zid = self._sources(chosen, count)
        views = np.ascontiguousarray(rows["view"])
        arrays = [
            self._keys(rows["key"]),
            self._views(views, count, None),
            numbers(spread(((flags & DELETED) != 0).view(np.int8), count), pa.int8()),
            numbers(spread(((flags >> 16) & 0xFFFF).astype(np.int32), count), pa.int32()),
            self._schemas(chosen, count),
            numbers(hlc, pa.int64()),
            numbers(micros(hlc), INSTANT),
            self._ids(rows["id"]),
            bits(unstamped, count),
            self._pieces(self.table.attachments.getvalue(), chosen, count),
            zid,
            eid,
            sn,
            numbers(spread(PRIORITY[qos], count), pa.int8()),
            numbers(spread(CONGESTION[qos], count), pa.int8()),
            bits((flags & QOS_EXPRESS) != 0, count),
            bits((flags & RELIABLE) != 0, count),
            numbers(received, INSTANT),
            numbers(np.full(count, self.origin, np.int8), pa.int8()),
        ]
        batches = []
        for start, stop in cuts(views.view(np.int32)[:, 0]):
            size = stop - start
            columns = arrays if size == count else [array.slice(start, size) for array in arrays]
            columns[VALUE] = columns[VALUE].cast(pa.binary())
            batches.append(pa.RecordBatch.from_arrays(columns, schema=UNNUMBERED))
        return batches

    def _ids(self, numbered: Numbers) -> pa.Array:
        """The ids in timestamps."""
        ids = self.table.ids
        count = len(numbered)
        first = ids[int(numbered[0])]
        if (numbered == numbered[0]).all() and count * len(first) < 1 << 30:
            ends = np.arange(count + 1, dtype=np.int32) * np.int32(len(first))
            buffers = [None, pa.py_buffer(ends), pa.py_buffer(first * count)]
            return pa.Array.from_buffers(pa.binary(), count, buffers)
        return pa.array(ids, pa.binary()).take(numbers(np.ascontiguousarray(numbered), pa.int32()))

    def _keys(self, numbered: Numbers) -> pa.Array:
        """Keys as a dictionary of those that occur."""
        keys = self.table.keys
        if len(keys) == 1:
            indices = np.zeros(len(numbered), np.int32)
            names = [keys[0]]
        else:
            present = np.zeros(int(numbered.max()) + 1, bool)
            present[numbered] = True
            indices = (np.cumsum(present, dtype=np.int32) - np.int32(1))[numbered]
            names = [keys[number] for number in np.flatnonzero(present).tolist()]
        return pa.DictionaryArray.from_arrays(
            numbers(indices, pa.int32()), pa.array(names, pa.string())
        )

    def _views(self, views: Numbers, count: int, valid: Numbers | None) -> pa.Array:
        """Bytes that lie in the chunks."""
        present = None if valid is None else pa.py_buffer(np.packbits(valid, bitorder="little"))
        buffers = [present, pa.py_buffer(views), *self.chunks]
        return pa.Array.from_buffers(pa.binary_view(), count, buffers)

    def _place(self, rows: Numbers, chosen: Numbers | None) -> tuple[Numbers, Numbers]:
        """Of rows that have something: which of them are chosen, and where they are then."""
        if chosen is None:
            return np.arange(len(rows)), rows
        at = np.searchsorted(chosen, rows)
        inside = at < len(chosen)
        inside[inside] = chosen[at[inside]] == rows[inside]
        return np.flatnonzero(inside), at[inside]

    def _pieces(self, data: bytes, chosen: Numbers | None, count: int) -> pa.Array:
        """Bytes that only some rows have."""
        pieces = np.frombuffer(data, PIECE)
        which, at = self._place(pieces["row"], chosen)
        if not len(which):
            return pa.nulls(count, pa.binary())
        views = np.zeros((count, 2), np.int64)
        views[at] = pieces["view"][which]
        valid = np.zeros(count, bool)
        valid[at] = True
        return self._views(views, count, valid).cast(pa.binary())

    def _schemas(self, chosen: Numbers | None, count: int) -> pa.Array:
        schemas = self._pieces(self.table.schemas.getvalue(), chosen, count)
        if schemas.null_count == count:
            return pa.nulls(count, pa.string())
        return schema_words(schemas)

    def _sources(self, chosen: Numbers | None, count: int) -> tuple[pa.Array, pa.Array, pa.Array]:
        """Entity, sequence number and id of the source."""
        sources = self.sources
        which, at = self._place(sources["row"], chosen)
        if not len(which):
            absent = pa.nulls(count, pa.int64())
            return absent, absent, pa.nulls(count, pa.binary())
        valid = np.zeros(count, bool)
        valid[at] = True
        present = pa.py_buffer(np.packbits(valid, bitorder="little"))
        columns: list[pa.Array] = []
        for name in ("eid", "sn", "id"):
            column = np.zeros(count, np.int64)
            column[at] = sources[name][which]
            columns.append(
                pa.Array.from_buffers(pa.int64(), count, [present, pa.py_buffer(column)])
            )
        eid, sn, number = columns
        return eid, sn, pa.array(self.table.ids, pa.binary()).take(number)


VALUE: Final = UNNUMBERED.get_field_index("value")
#: By QoS byte.
PRIORITY: Final = np.array([int(QoS.from_byte(byte).priority) for byte in range(256)], np.int8)
CONGESTION: Final = np.array(
    [QoS.from_byte(byte).congestion_control.value for byte in range(256)], np.int8
)


def numbers(values: Numbers, kind: pa.DataType) -> pa.Array:
    """A column of numbers, where they are."""
    return pa.Array.from_buffers(kind, len(values), [None, pa.py_buffer(values)])


def spread(values: Numbers, count: int) -> Numbers:
    """A value for each of the rows; one alone is that of all."""
    return values if len(values) == count else np.full(count, values[0], values.dtype)


def bits(values: Numbers, count: int) -> pa.Array:
    """A column of truth values; one alone is that of all rows."""
    if len(values) == count:
        packed = np.packbits(values, bitorder="little")
    else:
        packed = np.full((count + 7) // 8, 0xFF if values[0] else 0, np.uint8)
    return pa.Array.from_buffers(pa.bool_(), count, [None, pa.py_buffer(packed)])


def cuts(sizes: Numbers) -> list[tuple[int, int]]:
    """Where to cut rows whose values have these sizes: from and to, in their order."""
    ends = np.cumsum(sizes, dtype=np.int64)
    count = len(sizes)
    if ends[-1] <= PIECE_BYTES:
        return [(0, count)]
    cuts = []
    start = 0
    while start < count:
        before = int(ends[start - 1]) if start else 0
        stop = int(np.searchsorted(ends, before + PIECE_BYTES, "right"))
        if stop < count and stop - stop % PIECE_ROWS > start:
            stop -= stop % PIECE_ROWS
        stop = max(stop, start + 1)
        cuts.append((start, stop))
        start = stop
    return cuts


def micros(hlc: Numbers) -> Numbers:
    """Microseconds since 1970."""
    micros: Numbers = (hlc_nanos(hlc) // np.uint64(1000)).view(np.int64)
    return micros


# ---------------------------------------------------------------------------------- declaring


class ColumnSubscriber:
    """A `ColumnSink` that a session feeds, until it is undeclared or the session closes."""

    def __init__(self, runtime: Runtime, entity: LocalSubscriber) -> None:
        """Made by `declare_columns`."""
        self._runtime = runtime
        self._entity: LocalSubscriber | None = entity

    @property
    def key_expr(self) -> KeyExpr:
        """What it subscribes to."""
        if self._entity is None:
            raise ZError("Undeclared subscriber: it was undeclared before; declare another")
        return KeyExpr.trusted(self._entity.key)

    def undeclare(self) -> None:
        """Hear no more; what came can still be taken."""
        entity = self._entity
        self._entity = None
        if entity is None or self._runtime.closed:
            return
        with self._runtime.locked() as node:
            node.local.unsubscribe(entity)

    def __enter__(self) -> Self:
        """Itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Undeclare it."""
        self.undeclare()


def declare_columns(
    session: Session, key_expr: KeyExpr | str, sink: ColumnSink, allowed_origin: int = ANY
) -> ColumnSubscriber:
    """Subscribe to a key expression, into columns."""
    key = KeyExpr.of(key_expr)
    runtime = open_runtime(session)
    channel = sink.channel
    rows = sink.open(runtime.hlc)
    channel.mark = runtime.mark
    channel.on_loop = runtime.on_loop
    live(channel)
    with runtime.locked() as node:
        return ColumnSubscriber(runtime, node.local.subscribe(str(key), rows, allowed_origin))
