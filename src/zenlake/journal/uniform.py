"""Columns in which every row has the same bytes: as when there is one publisher."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

__all__ = ["only_value"]


def only_value(column: Any) -> bytes | None:
    """The bytes that all rows of a binary column have; None if they differ, or if one has none.

    The column is looked at as one piece of memory: far cheaper than to encode it as a dictionary.
    """
    count = len(column)
    if column.null_count or not count:
        return None
    first: bytes = column[0].as_py()
    size = len(first)
    _, offsets, data = column.buffers()
    ends = np.frombuffer(offsets, np.int32, count + 1, column.offset * 4)
    if data is None or int(ends[-1] - ends[0]) != count * size:
        return None
    if not (np.diff(ends) == size).all():
        return None
    same = data.slice(int(ends[0]), count * size).equals(pa.py_buffer(first * count))
    return first if same else None
