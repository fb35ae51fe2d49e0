"""The kind of column that holds the values of two kinds, and values in a wider type.

    bigint + double                       double, where each whole number is one; the caller looks
    tinyint + smallint + int + bigint     the larger
    float + double                        double
    struct + struct                       the fields of both, each as wide as it has to be
    array + array                         an array of what holds the items of both

Other kinds mean other things, and no column holds both.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Final

import pyarrow as pa

from zenlake.lake.model.column_types import ARROW, kind_name
from zenlake.lake.model.value_types import joined

__all__ = ["as_wider", "joined_kinds", "wider"]

_INTEGERS: Final = (pa.int8(), pa.int16(), pa.int32(), pa.int64())
_FLOATS: Final = (pa.float32(), pa.float64())


@lru_cache(maxsize=4096)
def joined_kinds(one: str, other: str) -> str | None:
    """Return the kind that holds both, by name, or None if there is none."""
    both = joined(one, other)
    if both is not None:
        return both
    arrow = wider(ARROW[one], ARROW[other])
    return None if arrow is None else kind_name(arrow)


def wider(one: pa.DataType, other: pa.DataType) -> pa.DataType | None:
    """Return the type that holds all values of both without loss, or None if there is none."""
    if kind_name(one) == kind_name(other):
        return one
    for family in (_INTEGERS, _FLOATS):
        if one in family and other in family:
            return family[max(family.index(one), family.index(other))]
    if pa.types.is_list(one) and pa.types.is_list(other):
        inner = wider(one.value_type, other.value_type)
        return None if inner is None else pa.list_(inner)
    if pa.types.is_struct(one) and pa.types.is_struct(other):
        fields = {field.name: field.type for field in one}
        for field in other:
            had = fields.get(field.name)
            both = field.type if had is None else wider(had, field.type)
            if both is None:
                return None
            fields[field.name] = both
        return pa.struct(list(fields.items()))
    return None


def as_wider(values: Any, type: pa.DataType) -> Any:
    """Return values of a narrower type, an array or chunks of it, in a wider one.

    Raises `pa.ArrowInvalid` where a value would change.
    """
    if values.type == type:
        return values
    if isinstance(values, pa.ChunkedArray):
        return pa.chunked_array([as_wider(chunk, type) for chunk in values.chunks], type)
    if pa.types.is_struct(type):
        had = {field.name: n for n, field in enumerate(values.type)}
        inner = [
            as_wider(values.field(had[field.name]), field.type)
            if field.name in had
            else pa.nulls(len(values), field.type)
            for field in type
        ]
        return pa.StructArray.from_arrays(inner, fields=list(type), mask=values.is_null())
    if pa.types.is_list(type) and pa.types.is_list(values.type):
        inner = as_wider(values.values, type.value_type)
        if not values.null_count:
            return pa.ListArray.from_arrays(values.offsets, inner, type=type)
        if values.offset == 0:
            return pa.ListArray.from_arrays(values.offsets, inner, type=type, mask=values.is_null())
        # Arrow takes no mask beside offsets of a slice.
        return as_wider(pa.concat_arrays([values]), type)
    return values.cast(type)
