"""JSON payloads to Arrow columns, many at once, where that says the same as one by one.

Payloads are put one to a line and read by Arrow, which takes a tenth of the time. It differs from
`decoders.json_text` and `kinds` in much that rarely matters; wherever it could, the answer is None
and the payloads are read one by one:

    lines          a payload is one object without line breaks, `{` to `}`; nothing else can move
                   values from one sample to another
    numbers        from 2^53 on, where doubles lose digits; NaN and infinities; `-0`, a whole
                   number that has a sign among doubles
    texts          which Arrow takes for times are read again as texts
    lists          of anything but numbers, truth values and texts; nulls where there are lists;
                   nesting beyond a bound
    names          two that come to one column; Arrow refuses a name twice in one object

What fields there are is learnt from a few rows and then demanded, so nobody can make a table of
as many columns as there are rows.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final, final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as pj

from zenlake.lake.model.value_types import EXACT, MOST_DEPTH, column_name

__all__ = ["Accept", "JsonColumns", "as_doubles", "kind_of_column"]

BLOCK: Final = 8192
"""Rows that are read at once by fields that are known."""

LEARN: Final = 256
"""Rows that are read at once to learn which fields there are."""

MOST_BYTES: Final = 16 << 20
"""Of one block."""

MOST_OPEN: Final = 200
"""Objects and lists in one payload."""

MOST_MEMBERS: Final = 20_000
"""Members in a block that fields are learnt from; each may be a column of its own."""

MOST_FIELDS: Final = 1000

_NAMES: Final = {
    pa.bool_(): "boolean",
    pa.int64(): "bigint",
    pa.float64(): "double",
    pa.string(): "string",
}

_MINUS_ZERO: Final = re.compile(rb"-0[ \t,}\]]")

Accept = Callable[[int, int, "dict[str, pa.Array] | None"], bool]
"""Takes the columns of the rows from one to another and says whether they fit; None: to be read one
by one."""


def kind_of_column(values: pa.Array) -> str:
    """The kind of a column, as `kinds` calls it."""
    if pa.types.is_list(values.type):
        return f"array<{_NAMES[values.type.value_type]}>"
    return _NAMES[values.type]


@final
class JsonColumns:
    """Reads blocks of payloads, and remembers which fields they have."""

    def __init__(self) -> None:
        """No field is known."""
        self._fields: pa.Schema | None = None

    def read(self, payloads: pa.Array, accept: Accept) -> None:
        """Read all payloads, block by block."""
        stop = 0
        while (start := stop) < len(payloads):
            stop = min(len(payloads), start + (LEARN if self._fields is None else BLOCK))
            columns = None if self._fields is None else self._known(payloads[start:stop])
            if columns is not None and accept(start, stop, columns):
                continue
            # A field is new, or something else is the matter: in smaller steps.
            for first in range(start, stop, LEARN):
                last = min(stop, first + LEARN)
                rows = self._learnt(payloads[first:last])
                columns = None if rows is None else _columns(rows)
                if columns is None or not accept(first, last, columns):
                    accept(first, last, None)
                elif rows is not None:
                    self._remember(rows.schema)

    def _known(self, payloads: pa.Array) -> dict[str, pa.Array] | None:
        text = _lines(payloads)
        rows = None if text is None else _parsed(text, self._fields, "error")
        return None if rows is None or rows.num_rows != len(payloads) else _columns(rows)

    def _learnt(self, payloads: pa.Array) -> pa.Table | None:
        text = _lines(payloads)
        if text is None or text.count(b":") > MOST_MEMBERS:
            return None
        rows = _parsed(text, None, "infer")
        if rows is not None and (plain := _without_times(rows.schema)) != rows.schema:
            rows = _parsed(text, plain, "infer")
        return None if rows is None or rows.num_rows != len(payloads) else rows

    def _remember(self, fields: pa.Schema) -> None:
        if self._fields is not None:
            try:
                fields = pa.unify_schemas([self._fields, fields], promote_options="permissive")
            except (pa.ArrowInvalid, pa.ArrowTypeError):
                return
        self._fields = fields if len(fields) <= MOST_FIELDS else None


def _lines(payloads: pa.Array) -> bytes | None:
    """The payloads as lines; None where one of them is not an object on a line of its own."""
    sizes = pc.binary_length(payloads).to_numpy(zero_copy_only=False)
    total = int(sizes.sum())
    if total > MOST_BYTES or sizes.min(initial=2) < 2:
        return None
    offsets = pa.array([0, len(payloads)], pa.int32())
    text: bytes = pc.binary_join(
        pa.ListArray.from_arrays(offsets, payloads), pa.scalar(b"\n", pa.binary())
    )[0].as_py()
    data = np.frombuffer(text, np.uint8)
    starts = np.cumsum(sizes + 1) - sizes - 1
    ends = starts + sizes - 1
    are_objects = (data[starts] == ord("{")).all() and (data[ends] == ord("}")).all()
    if not are_objects or text.count(b"\n") != len(payloads) - 1 or b"\r" in text or b"\0" in text:
        return None
    if b"[" in text and b"null" in text:
        # Arrow loses count in lists that begin with a null.
        return None
    if b"-0" in text and _MINUS_ZERO.search(text) is not None:
        return None
    if sizes.max(initial=0) > MOST_OPEN:
        opened = (data == ord("{")) | (data == ord("["))
        if np.add.reduceat(opened, starts, dtype=np.int32).max() > MOST_OPEN:
            return None
    if not text.isascii():
        try:
            text.decode()
        except UnicodeDecodeError:
            return None
    return text


def _parsed(text: bytes, fields: pa.Schema | None, unexpected: str) -> pa.Table | None:
    options = pj.ParseOptions(explicit_schema=fields, unexpected_field_behavior=unexpected)
    reading = pj.ReadOptions(use_threads=False, block_size=len(text) + 1)
    try:
        rows = pj.read_json(pa.BufferReader(text), reading, options)
        rows.validate()
    except (pa.ArrowException, UnicodeDecodeError):
        return None
    return rows


def _without_times(fields: pa.Schema) -> pa.Schema:
    return pa.schema([field.with_type(_timeless(field.type)) for field in fields])


def _timeless(type: pa.DataType) -> pa.DataType:
    if pa.types.is_timestamp(type):
        return pa.string()
    if pa.types.is_struct(type):
        return pa.struct([field.with_type(_timeless(field.type)) for field in type])
    if pa.types.is_list(type):
        return pa.list_(_timeless(type.value_type))
    return type


def _columns(rows: pa.Table) -> dict[str, pa.Array] | None:
    """The fields by column; those without a value have the type of null."""
    columns: dict[str, pa.Array] = {}
    taken: set[str] = set()
    for name in rows.column_names:
        values = rows[name].combine_chunks()
        if isinstance(values, pa.ChunkedArray):
            return None
        if not _flatten(column_name(name), values, columns, taken, 0):
            return None
    return columns


def _flatten(
    column: str, values: pa.Array, columns: dict[str, pa.Array], taken: set[str], depth: int
) -> bool:
    """Add a field, or those inside of it; False where this cannot be done so."""
    if column in taken:
        return False
    taken.add(column)
    if values.null_count == len(values):
        columns[column] = pa.nulls(len(values))
        return True
    if pa.types.is_struct(values.type):
        if values.null_count:
            # A null in the place of an object has the name of the object.
            columns[column] = pa.nulls(len(values))
        return depth < MOST_DEPTH and all(
            _flatten(f"{column}_{column_name(field.name)}", inner, columns, taken, depth + 1)
            for field, inner in zip(values.type, values.flatten(), strict=True)
        )
    inner = values.flatten() if pa.types.is_list(values.type) else values
    if inner.type not in _NAMES or not _exact(inner):
        return False
    columns[column] = values
    return True


def _exact(values: pa.Array) -> bool:
    """Whether no double among them is too large to be sure of."""
    if values.type != pa.float64() or values.null_count == len(values):
        return True
    numbers: Any = values.drop_null().to_numpy()
    # Also False for what is not a number.
    return bool((np.abs(numbers) < EXACT).all())


def as_doubles(values: pa.Array) -> pa.Array | None:
    """Whole numbers, or lists of them, as doubles; None where one would lose digits."""
    listed = pa.types.is_list(values.type)
    numbers = values.flatten() if listed else values
    if numbers.type == pa.int64() and len(numbers) > numbers.null_count:
        least, most = pc.min_max(numbers).as_py().values()
        if least < -EXACT or most > EXACT:
            return None
    return values.cast(pa.list_(pa.float64()) if listed else pa.float64())
