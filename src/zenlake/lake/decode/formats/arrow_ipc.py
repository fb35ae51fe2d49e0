"""Arrow IPC: a sample is a table already, of one row or of many.

Both forms are read, streams and files. A table of the lake that says
`encoding: "application/vnd.apache.arrow.stream"` takes all rows of each sample, column by column;
where samples of several encodings meet in one table, a sample of Arrow has one row.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa

from zenlake.journal.schema import INSTANT
from zenlake.lake.decode.formats.bounded import fields_of
from zenlake.lake.model.decoder import DecodedRows, Fields, PayloadBatch, Undecodable

__all__ = ["ArrowIpc"]

MOST_ROWS: Final = 1_000_000
"""Of one sample."""
MOST_CELLS: Final = 10_000_000
MAGIC: Final = b"ARROW1\0\0"
"""What a file has before the stream in it."""

_NEXT: Final = {
    pa.uint8(): pa.int16(),
    pa.uint16(): pa.int32(),
    pa.uint32(): pa.int64(),
    pa.uint64(): pa.decimal128(20, 0),
    pa.float16(): pa.float32(),
    pa.date64(): pa.date32(),
    pa.large_string(): pa.string(),
    pa.string_view(): pa.string(),
    pa.large_binary(): pa.binary(),
    pa.binary_view(): pa.binary(),
}
"""Types that tables have not, and those that hold their values."""


class ArrowIpc:
    """Reads streams and files of Arrow, without compression."""

    encodings = ("application/vnd.apache.arrow.stream", "application/vnd.apache.arrow.file")

    def decode(self, payload: bytes, schema: str, type: object) -> Fields:
        """The columns of the one row."""
        rows = _read(payload)
        if rows.num_rows != 1:
            raise Undecodable(
                f"{rows.num_rows} rows in one sample; a table that says "
                f"`encoding: '{self.encodings[0]}'` takes them"
            )
        return fields_of(rows.to_pylist()[0])

    def decode_batch(self, batch: PayloadBatch) -> Sequence[DecodedRows]:
        """All rows of all samples, those with the same columns together."""
        refused: dict[int, Undecodable] = {}
        alike: dict[str, list[tuple[int, pa.Table]]] = {}
        for n, payload in enumerate(batch.payloads):
            try:
                rows = _read(payload)
            except Undecodable as error:
                refused[n] = error
                continue
            alike.setdefault(str(rows.schema), []).append((n, rows))
        decoded = [DecodedRows({}, np.empty(0, np.int64), refused)]
        for held in alike.values():
            table = pa.concat_tables([rows for _, rows in held]).combine_chunks()
            places = np.repeat([n for n, _ in held], [rows.num_rows for _, rows in held])
            columns = {name: table[name].combine_chunks() for name in table.column_names}
            decoded.append(DecodedRows(columns, places.astype(np.int64)))
        return decoded


def _read(payload: bytes) -> pa.Table:
    data = payload.removeprefix(MAGIC)
    try:
        _demand_plain(data)
        rows = pa.ipc.open_stream(pa.py_buffer(data)).read_all()
        # Offsets that a stranger wrote may point anywhere.
        rows.validate(full=True)
        names = rows.column_names
        for field in rows.schema:
            _demand_text(field)
    except Undecodable:
        raise
    except Exception as error:  # of Arrow, of struct, of names that are no text
        raise Undecodable(f"not Arrow: {error}") from error
    if rows.num_rows > MOST_ROWS or rows.num_rows * rows.num_columns > MOST_CELLS:
        raise Undecodable(f"{rows.num_rows:,} rows; a sample has {MOST_ROWS:,} at most")
    if len({name.lower() for name in names}) < len(names):
        raise Undecodable("two columns have one name")
    try:
        return pa.table({name: _plain(rows[name]) for name in names if name})
    except pa.ArrowException as error:
        raise Undecodable(f"values that no column holds: {error}") from error


def _demand_text(field: pa.Field) -> None:
    """Names inside of a column are text, too; raises `UnicodeDecodeError` for others."""
    assert isinstance(field.name, str)
    for n in range(field.type.num_fields):
        _demand_text(field.type.field(n))


def _plain(values: Any) -> Any:
    """The values in a type that tables have; others are left, and refused by the table."""
    kind = values.type
    if pa.types.is_dictionary(kind):
        return _plain(values.cast(kind.value_type))
    if pa.types.is_timestamp(kind):
        return values.cast(INSTANT, safe=False)
    if pa.types.is_fixed_size_list(kind) or pa.types.is_large_list(kind):
        return _plain(values.cast(pa.list_(kind.value_type)))
    if pa.types.is_list(kind) and kind.value_type in _NEXT:
        return values.cast(pa.list_(_NEXT[kind.value_type]))
    if pa.types.is_fixed_size_binary(kind):
        return values.cast(pa.binary())
    return values.cast(_NEXT[kind]) if kind in _NEXT else values


# --- whether it is compressed -------------------------------------------------------------------
# A few bytes that are compressed may become any number. What says so is a flatbuffer, of which
# three fields are looked at: Message.header, DictionaryBatch.data, RecordBatch.compression.


def _demand_plain(data: bytes) -> None:
    messages = pa.ipc.MessageReader.open_stream(pa.py_buffer(data))
    while True:
        try:
            message = messages.read_next_message()
        except StopIteration:
            return
        if message.type == "schema":
            continue
        page = message.metadata.to_pybytes()
        header = _inner(page, struct.unpack_from("<I", page)[0], 2)
        if message.type == "dictionary" and header is not None:
            header = _inner(page, header, 1)
        if header is None or _inner(page, header, 3) is not None:
            raise Undecodable("compressed Arrow is not read; send it without compression")


def _inner(page: bytes, table: int, slot: int) -> int | None:
    """Where the table in a field of a table lies, or None if it has no such field."""
    names = table - struct.unpack_from("<i", page, table)[0]
    (size,) = struct.unpack_from("<H", page, names)
    if 4 + 2 * slot >= size:
        return None
    (at,) = struct.unpack_from("<H", page, names + 4 + 2 * slot)
    if not at:
        return None
    return int(table + at + struct.unpack_from("<I", page, table + at)[0])
