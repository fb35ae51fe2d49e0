"""The latest values on disk: so that who starts reads what is new, and not the whole journal.

    DIR/latest.arrow      what was known after the rows whose offsets it names

    | "ZLLATES1" | length u32 | JSON | Arrow IPC stream | crc u32 | "ZLLATES1" |

It is only ever a shortcut. It is replaced whole; it is written when all rows that are in it are
durable; and it counts for nothing if it is damaged, is of another journal, knows of rows that the
journal lost, or ends before rows that retention let go.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final

import pyarrow as pa
from pyarrow import ipc

from zenlake.errors import JournalCorrupt
from zenlake.journal.disk.files import File, JournalFiles, Shelf
from zenlake.journal.disk.frame import crc32
from zenlake.journal.disk.layout import LATEST, TEMPORARY, parse
from zenlake.journal.reading.reader import Journal
from zenlake.journal.serving.latest import KnownKey, Latest, LatestValue, ValueSources, What

__all__ = ["LATEST", "Recalled", "read", "write"]

MAGIC: Final = b"ZLLATES1"
_LENGTH: Final = struct.Struct("<I")
_START: Final = len(MAGIC) + _LENGTH.size
_END: Final = _LENGTH.size + len(MAGIC)
_AT_ONCE: Final = 1 << 20

_SCHEMA: Final = pa.schema(
    [
        ("what", pa.int8()),
        ("key", pa.string()),
        ("hlc", pa.int64()),
        ("stamp_id", pa.binary()),
        ("base_hlc", pa.int64()),
        ("base_id", pa.binary()),
        ("value", pa.large_binary()),
        ("encoding_id", pa.int32()),
        ("encoding_schema", pa.string()),
        ("attachment", pa.large_binary()),
        ("partition", pa.int32()),
        ("offset", pa.int64()),
        # Files of earlier versions end here.
        ("source_zid", pa.binary()),
        ("source_eid", pa.int64()),
        ("source_sn", pa.int64()),
    ]
)

_PLAIN: Final = 6
"""Columns of a value without its source."""


# ------------------------------------------------------------------------------------ writing


class _Sum:
    """Writes to a file a good deal at a time, and sums what it writes."""

    def __init__(self, file: File) -> None:
        self._file = file
        self._parts: list[bytes] = []
        self._size = 0
        self.crc = 0
        self.closed = False

    def write(self, data: bytes) -> int:
        self.crc = crc32(data, self.crc)
        self._parts.append(data)
        self._size += len(data)
        if self._size >= _AT_ONCE:
            self.flush()
        return len(data)

    def flush(self) -> None:
        self._file.write(self._parts)
        self._parts, self._size = [], 0

    def close(self) -> None:
        self.closed = True


def write(
    files: JournalFiles,
    journal: str,
    offsets: Sequence[int],
    latest: Latest,
    durable: Callable[[], bool] = lambda: True,
) -> bool:
    """Put what is known aside, whole or not at all; tells whether it was.

    All rows below `offsets` must be entered in `latest`, others may be: `durable` is asked at the
    end, and returns when those are durable too, or False if they will not be.
    """
    temporary = LATEST + TEMPORARY
    file = files.create(temporary)
    try:
        try:
            sink = _Sum(file)
            head = json.dumps({"journal": journal, "offsets": list(offsets)}).encode()
            sink.write(MAGIC + _LENGTH.pack(len(head)) + head)
            with ipc.new_stream(pa.PythonFile(sink, "w"), _SCHEMA) as out:
                for known in latest.known():
                    out.write_batch(_batch(known))
            sink.write(_LENGTH.pack(sink.crc) + MAGIC)
            sink.flush()
            file.fsync()
        finally:
            file.close()
        if not durable():
            files.remove(temporary)
            return False
        files.rename(temporary, LATEST)
        files.sync("")
    except OSError:
        if temporary in files.list(""):
            files.remove(temporary)
        raise
    return True


def _batch(known: list[KnownKey]) -> pa.RecordBatch:
    absent = LatestValue(b"", 0, None, None)
    values = [absent if one.value is None else one.value for one in known]
    columns: list[list[Any]] = [
        [int(one.what) for one in known],
        [one.key for one in known],
        [one.hlc for one in known],
        [one.id for one in known],
        [one.base_hlc for one in known],
        [one.base_id for one in known],
        [value.payload for value in values],
        [value.encoding_id for value in values],
        [value.encoding_schema for value in values],
        [value.attachment for value in values],
        [value.partition for value in values],
        [value.offset for value in values],
        [None if value.source is None else value.source.zid for value in values],
        [None if value.source is None else value.source.eid for value in values],
        [None if value.source is None else value.sn for value in values],
    ]
    arrays = [pa.array(column, field.type) for column, field in zip(columns, _SCHEMA, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=_SCHEMA)


# ------------------------------------------------------------------------------------ reading


class Recalled:
    """What was put aside: known after the rows below `offsets`."""

    def __init__(self, offsets: list[int], stream: pa.Buffer, earliest: Sequence[int]) -> None:
        self.offsets = offsets
        #: The first offset of each partition that is kept.
        self.earliest = earliest
        #: Keys that `known` left out: older rows of them may be kept still, below `offsets`.
        self.left_out: set[str] = set()
        self._stream = stream

    def known(self) -> Iterator[list[KnownKey]]:
        """All of it, in pieces; without values whose rows are no longer kept."""
        for batch in ipc.open_stream(self._stream):
            columns = [column.to_pylist() for column in batch.columns]
            yield list(self._kept(zip(*columns, strict=True)))

    def _kept(self, rows: Iterable[tuple[Any, ...]]) -> Iterator[KnownKey]:
        earliest, sources = self.earliest, ValueSources()
        for what, key, hlc, id, base_hlc, base_id, *rest in rows:
            value = None
            if what in (What.VALUE, What.PUT_OF_MANY):
                plain, said = rest[:_PLAIN], rest[_PLAIN:]
                value = LatestValue(*plain, *(sources.of(*said) if said else ()))
                if value.offset < earliest[value.partition]:
                    self.left_out.add(key)
                    continue
            yield KnownKey(What(what), key, hlc, id, base_hlc, base_id, value)


def read(shelf: Shelf, journal: Journal) -> Recalled | None:
    """What was put aside for a journal, if there is something; raises `JournalCorrupt`.

    None also if retention was faster: then rows are gone which nobody had entered.
    """
    try:
        file = shelf.open(LATEST)
    except FileNotFoundError:
        return None
    data = file.read_buffer()
    size = data.size
    if size < _START + _END or bytes(data[: len(MAGIC)]) != MAGIC:
        raise JournalCorrupt(f"{LATEST} is not whole")
    body = data[: size - _END]
    if bytes(data[size - _END :]) != _LENGTH.pack(crc32(body)) + MAGIC:
        raise JournalCorrupt(f"{LATEST} does not match its checksum")
    (length,) = _LENGTH.unpack(bytes(data[len(MAGIC) : _START]))
    page = parse(bytes(data[_START : _START + length]), LATEST)
    offsets = [int(offset) for offset in page["offsets"]]
    durable = journal.watermark().offsets
    if page["journal"] != journal.id or len(offsets) != len(durable):
        raise JournalCorrupt(f"{LATEST} is of another journal")
    if any(known > end for known, end in zip(offsets, durable, strict=True)):
        raise JournalCorrupt(f"{LATEST} knows of rows that the journal does not have")
    earliest = journal.earliest()
    if any(known < first for known, first in zip(offsets, earliest, strict=True)):
        return None
    return Recalled(offsets, body[_START + length :], earliest)
