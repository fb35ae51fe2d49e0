"""Rows that take the place of the rows with the same keys, as `MERGE` does.

The driver compares keys: it holds those of the new rows, and reads those of the files that can have
one of them by their bounds and folders. A file with such a row is written anew without it. The new
rows lie in files of their own already, so one version has the replaced rows or none of them.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from zenlake.lake.table.data_files import DataFile, read_table, write_file
from zenlake.lake.table.delta import Table
from zenlake.spark.options import OptionError

__all__ = ["Replaced", "is_comparable", "rows_replaced"]

MOST_ROWS: Final = 10_000_000
"""New rows of a merge: the driver holds their keys."""

_ROW: Final = "row of the file"
"""A name that no column has."""


@dataclass(frozen=True, slots=True)
class Replaced:
    """The files without the rows that others take the place of, and the files before."""

    files: list[DataFile]
    removed: list[DataFile]


def is_comparable(kind: pa.DataType) -> bool:
    """Return True if rows can be found by values of a type; no number is equal to NaN."""
    return not (pa.types.is_nested(kind) or pa.types.is_floating(kind) or pa.types.is_binary(kind))


def rows_replaced(table: Table, fresh: Sequence[DataFile], keys: list[str]) -> Replaced:
    """Write the files of a table anew that have rows with the keys of new ones.

    `fresh`: the files of the new rows. Raises `OptionError` for keys that are null, or there twice.
    """
    if sum(file.rows for file in fresh) > MOST_ROWS:
        raise OptionError(
            f"a merge has more than {MOST_ROWS:,} new rows, whose keys the driver compares; write "
            "fewer at once"
        )
    wanted = pa.concat_tables([_keys_of(table, file, keys) for file in fresh])
    _demand_unique(wanted, keys)
    schema = table.file_schema
    files, removed = [], []
    for file in _candidates(table, wanted, keys):
        there = _keys_of(table, file, keys)
        numbered = there.append_column(_ROW, pa.array(np.arange(there.num_rows)))
        found = numbered.join(wanted, keys, join_type="left semi", use_threads=False)[_ROW]
        if not len(found):
            continue
        removed.append(file)
        left = np.ones(there.num_rows, bool)
        left[found.to_numpy()] = False
        if left.any():
            rows = read_table(table.place, file.path, schema).filter(pa.array(left))
            files.append(write_file(table.place, rows, file.partition, uuid.uuid4().hex))
    return Replaced(files, removed)


def _keys_of(table: Table, file: DataFile, keys: list[str]) -> pa.Table:
    """Return the keys of all rows of a file; some may be what its folder says."""
    schema = table.schema
    inside = [name for name in keys if name not in file.partition]
    rows = read_table(table.place, file.path, table.file_schema, inside or None)
    columns = [
        rows[name]
        if name in inside
        else pa.repeat(
            pa.scalar(file.partition[name], pa.string()).cast(schema.field(name).type),
            rows.num_rows,
        )
        for name in keys
    ]
    return pa.table(columns, schema=pa.schema([(name, schema.field(name).type) for name in keys]))


def _demand_unique(wanted: pa.Table, keys: list[str]) -> None:
    for name in keys:
        if wanted[name].null_count:
            raise OptionError(
                f"mergeKeys: {wanted[name].null_count} rows have no '{name}', and null is equal to "
                "nothing; leave such rows out"
            )
    groups = wanted.group_by(keys, use_threads=False).aggregate([([], "count_all")])
    twice = groups.filter(pc.greater(groups["count_all"], 1))
    if twice.num_rows:
        values = ", ".join(f"{name}={twice[name][0].as_py()!r}" for name in keys)
        raise OptionError(
            f"mergeKeys: {twice['count_all'][0].as_py()} rows have {values}, and which of them is "
            f"to stay is not known; choose one first, such as dropDuplicates({keys})"
        )


def _candidates(table: Table, wanted: pa.Table, keys: list[str]) -> Iterator[DataFile]:
    """Give the files that can have one of the keys."""
    actions = table.actions()
    folders = {
        name: set(pc.unique(wanted[name]).to_pylist()) for name in keys if name in table.partitions
    }
    bounds = {name: pc.min_max(wanted[name]).as_py() for name in keys if name not in folders}
    values = {name: actions[f"partition.{name}"].to_pylist() for name in folders}
    least = {name: _listed(actions, f"min.{name}") for name in bounds}
    most = {name: _listed(actions, f"max.{name}") for name in bounds}
    for n, file in enumerate(table.files()):
        if any(values[name][n] not in folders[name] for name in folders):
            continue
        if all(
            _may_meet(least[name][n], most[name][n], bound["min"], bound["max"])
            for name, bound in bounds.items()
        ):
            yield file


def _listed(actions: pa.Table, name: str) -> list[Any]:
    if name not in actions.column_names:
        return [None] * actions.num_rows
    return list(actions[name].to_pylist())


def _may_meet(least: Any, most: Any, first: Any, last: Any) -> bool:
    """Return True if two ranges meet, or if the bounds of one are not known."""
    if least is None or most is None or type(least) is not type(first):
        return True
    return bool(least <= last and first <= most)
