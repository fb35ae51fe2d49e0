"""Arrow IPC: a sample is a table already, of one row or of many.

Both forms are read, streams and files. A table of the lake that says
`encoding: "application/vnd.apache.arrow.stream"` takes all rows of each sample, column by column;
where samples of several encodings meet in one table, a sample of Arrow has one row.

Every value is in its column as it was sent, or its sample is refused: casts are checked.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from datetime import date
from decimal import Decimal
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from zenlake.journal.schema import INSTANT
from zenlake.lake.decode.formats.bounded import fields_of
from zenlake.lake.model.decoder import DecodedRows, Fields, PayloadBatch, Reason, Undecodable
from zenlake.lake.model.value_types import name_key

__all__ = ["ArrowIpc"]

MOST_ROWS: Final = 1_000_000
"""Of one sample."""
MOST_CELLS: Final = 10_000_000
MAGIC: Final = b"ARROW1\0\0"
"""What a file has before the stream in it."""

_DAY: Final = 86_400_000_000
"""Microseconds."""
_FIRST_DAY: Final = (date.min - date(1970, 1, 1)).days
_NEXT_DAY: Final = (date.max - date(1970, 1, 1)).days + 1

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
        return fields_of(rows.to_pylist()[0], _as_number)

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
    if len({name_key(name) for name in names}) < len(names):
        raise Undecodable("two columns have one name", Reason.NAME)
    columns: dict[str, Any] = {}
    for name in names:
        if not name:
            continue
        try:
            columns |= _plain(name, rows[name])
        except Undecodable as error:
            error.field = name
            raise
        except pa.ArrowNotImplementedError as error:
            raise Undecodable(f"no column holds it: {error}", Reason.TYPE, name) from error
        except pa.ArrowException as error:
            raise Undecodable(f"a value no column holds: {error}", Reason.RANGE, name) from error
        beside = f"{name}_ns"
        if beside in columns and any(name_key(other) == name_key(beside) for other in names):
            words = f"the nanoseconds of '{name}' need the column '{beside}'"
            raise Undecodable(words, Reason.NAME, beside)
    return pa.table(columns)


def _demand_text(field: pa.Field) -> None:
    """Names inside of a column are text, too; raises `UnicodeDecodeError` for others."""
    assert isinstance(field.name, str)
    for n in range(field.type.num_fields):
        _demand_text(field.type.field(n))


def _plain(name: str, values: Any) -> dict[str, Any]:
    """Return the values in a type that tables have, by column.

    Other types are left, and refused by the table. A time to the nanosecond that no table holds
    exactly has all of it beside it, `at` and `at_ns`.
    """
    wanted = _kept_as(values.type)
    if pa.types.is_timestamp(values.type) and values.type.unit == "ns":
        exact = values.cast(pa.int64())
        numbers = exact.combine_chunks().fill_null(0).to_numpy(zero_copy_only=False)
        if (numbers % 1000).any():
            micros = pa.array(numbers // 1000, mask=exact.is_null().to_numpy()).cast(INSTANT)
            return {name: micros, f"{name}_ns": exact}
    if values.type != wanted:
        values = values.cast(wanted)  # safe: it fails where a value would change
    _demand_years(values)
    return {name: values}


def _kept_as(kind: Any) -> Any:
    """Return the type of tables that holds the values of another, inside of it too."""
    if pa.types.is_dictionary(kind):
        return _kept_as(kind.value_type)
    if pa.types.is_timestamp(kind):
        return INSTANT
    if (
        pa.types.is_list(kind)
        or pa.types.is_large_list(kind)
        or pa.types.is_fixed_size_list(kind)
        or pa.types.is_list_view(kind)
        or pa.types.is_large_list_view(kind)
    ):
        return pa.list_(_kept_as(kind.value_type))
    if pa.types.is_struct(kind):
        return pa.struct([field.with_type(_kept_as(field.type)) for field in kind])
    if pa.types.is_map(kind):
        return pa.map_(_kept_as(kind.key_type), _kept_as(kind.item_type))
    if pa.types.is_fixed_size_binary(kind):
        return pa.binary()
    return _NEXT.get(kind, kind)


def _demand_years(values: Any) -> None:
    """Raise `Undecodable` for a time or date that calendars of most readers have not."""
    kind = values.type
    if pa.types.is_struct(kind):
        for chunk in values.chunks if isinstance(values, pa.ChunkedArray) else [values]:
            for inner in chunk.flatten():
                _demand_years(inner)
    elif pa.types.is_map(kind):
        for chunk in values.chunks if isinstance(values, pa.ChunkedArray) else [values]:
            _demand_years(chunk.keys)
            _demand_years(chunk.items)
    elif pa.types.is_list(kind):
        _demand_years(pc.list_flatten(values))
    elif kind == INSTANT or kind == pa.date32():
        numbers = values.cast(pa.int64() if kind == INSTANT else pa.int32())
        bounds = pc.min_max(numbers).as_py()
        day = _DAY if kind == INSTANT else 1
        if bounds["min"] is not None and (
            bounds["min"] < _FIRST_DAY * day or bounds["max"] >= _NEXT_DAY * day
        ):
            raise Undecodable("a time that is not in the years 1 to 9999", Reason.RANGE)


def _as_number(value: object) -> object:
    """Return a decimal that is whole as a number, and what else no column holds as its text."""
    whole = isinstance(value, Decimal) and value.as_tuple().exponent == 0
    return int(value) if whole else str(value)  # type: ignore[call-overload]


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
