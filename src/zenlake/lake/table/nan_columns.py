"""Which columns of a file may have statistics: those without a NaN.

NaN is greater than every number for Spark and SQL, and no bound of Parquet counts it. A reader that
believed the bounds would pass over rows that meet `x > 5`, so such a column gets none.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

__all__ = ["measurable"]


def measurable(rows: pa.Table) -> bool | list[str]:
    """Return the paths of the columns without NaN as Parquet names them; True if all are."""
    leaves = [leaf for name in rows.column_names for leaf in _leaves(name, rows[name])]
    sound = [path for path, has_nan in leaves if not has_nan]
    return True if len(sound) == len(leaves) else sound


def _leaves(path: str, values: Any) -> Iterator[tuple[str, bool]]:
    """Give the path of each column of values inside, and whether it has a NaN."""
    if isinstance(values, pa.ChunkedArray) and not pa.types.is_nested(values.type):
        yield path, _has_nan(values)
        return
    if isinstance(values, pa.ChunkedArray):
        values = values.combine_chunks()
    if isinstance(values, pa.ChunkedArray):  # too long for one array
        values = pa.concat_arrays(values.chunks)
    if pa.types.is_struct(values.type):
        for field, inner in zip(values.type, values.flatten(), strict=True):
            yield from _leaves(f"{path}.{field.name}", inner)
    elif pa.types.is_map(values.type):
        yield from _leaves(f"{path}.key_value.key", values.keys)
        yield from _leaves(f"{path}.key_value.value", values.items)
    elif pa.types.is_list(values.type):
        yield from _leaves(f"{path}.list.element", values.flatten())
    else:
        yield path, _has_nan(values)


def _has_nan(values: Any) -> bool:
    return pa.types.is_floating(values.type) and bool(pc.any(pc.is_nan(values)).as_py())
