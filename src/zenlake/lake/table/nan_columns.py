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
    columns = [(name, rows[name]) for name in rows.column_names]
    leaves = [leaf for name, one in columns for leaf in _leaves(name, one.type, one.chunks)]
    sound = [path for path, has_nan in leaves if not has_nan]
    return True if len(sound) == len(leaves) else sound


def _leaves(path: str, kind: Any, chunks: list[Any]) -> Iterator[tuple[str, bool]]:
    """Give the path of each column of values inside, and whether it has a NaN."""
    if pa.types.is_struct(kind):
        parts = [chunk.flatten() for chunk in chunks]
        for n, field in enumerate(kind):
            yield from _leaves(f"{path}.{field.name}", field.type, [part[n] for part in parts])
    elif pa.types.is_map(kind):
        keys, items = [one.keys for one in chunks], [one.items for one in chunks]
        yield from _leaves(f"{path}.key_value.key", kind.key_type, keys)
        yield from _leaves(f"{path}.key_value.value", kind.item_type, items)
    elif pa.types.is_list(kind):
        items = [chunk.flatten() for chunk in chunks]
        yield from _leaves(f"{path}.list.element", kind.value_type, items)
    else:
        yield path, pa.types.is_floating(kind) and any(map(_has_nan, chunks))


def _has_nan(values: Any) -> bool:
    return bool(pc.any(pc.is_nan(values)).as_py())
