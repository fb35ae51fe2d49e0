"""Texts of an answer that are none: Spark's `cast(value AS string)` leaves the bytes as they are.

A picture under one of many keys must not spoil the answer about all of them: what is not UTF-8 is
shown as U+FFFD, as terminals and editors do. Arrow itself allows no such texts.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa

__all__ = ["mended"]


def mended(rows: pa.Table) -> pa.Table:
    """The same rows, with texts that are Unicode."""
    for place, column in enumerate(rows.columns):
        try:
            column.validate(full=True)
        except pa.ArrowInvalid:
            values = column.cast(_as_bytes(column.type)).to_pylist()
            texts = pa.array([_text(value, column.type) for value in values], column.type)
            rows = rows.set_column(place, rows.schema.field(place), texts)
    return rows


def _as_bytes(kind: pa.DataType) -> pa.DataType:
    """The type with bytes where it has texts."""
    if pa.types.is_string(kind):
        return pa.binary()
    if pa.types.is_list(kind):
        return pa.list_(kind.value_field.with_type(_as_bytes(kind.value_type)))
    if pa.types.is_map(kind):
        return pa.map_(_as_bytes(kind.key_type), _as_bytes(kind.item_type))
    if pa.types.is_struct(kind):
        return pa.struct([field.with_type(_as_bytes(field.type)) for field in kind.fields])
    return kind


def _text(value: Any, kind: pa.DataType) -> Any:
    """A value of that type, given with bytes in place of texts."""
    if value is None:
        return None
    if pa.types.is_string(kind):
        return value.decode("utf-8", "replace")
    if pa.types.is_list(kind):
        return [_text(item, kind.value_type) for item in value]
    if pa.types.is_map(kind):
        return [(_text(name, kind.key_type), _text(item, kind.item_type)) for name, item in value]
    if pa.types.is_struct(kind):
        return {field.name: _text(value[field.name], field.type) for field in kind.fields}
    return value
