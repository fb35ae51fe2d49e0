"""Columns that become wider (`model/wider_kinds`), in all files of a table at once.

Delta has no such widening of its own that every reader knows, so the files are written anew. That
happens seldom, and mostly while the table is young: at the first fraction, or with the first
message of a new release.

A column with a whole number that no double holds stays as it is, and the fraction goes to
quarantine. The bounds in the log tell of many columns, but not of all: readers of the log show the
first 32 columns, and none of lists. So the values themselves are looked at before they are cast.
"""

from __future__ import annotations

import logging
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from zenlake.lake.ingest.spark_tasks import Tasks
from zenlake.lake.model.column_types import ARROW, kind_name
from zenlake.lake.model.typed_table import RESERVED, Columns, TypedTable
from zenlake.lake.model.value_types import EXACT
from zenlake.lake.model.wider_kinds import as_wider
from zenlake.lake.table.data_files import DataFile, read_table, write_file
from zenlake.lake.table.delta import CommitConflict, Table
from zenlake.lake.table.location import LakeLocation

__all__ = ["WidenTask", "columns_of", "inexact_columns", "reconciled", "widen"]

log = logging.getLogger("zenlake.lake")

MOST_TRIES: Final = 8
"""Times that the files of a table are written anew before another writer is given the way."""


_MAY_ROUND: Final = (("bigint", "double"), ("array<bigint>", "array<double>"))
"""From which kind to which a value may change."""


@dataclass(frozen=True, slots=True)
class InexactTask:
    """Find the columns of a file whose values a wider kind would change."""

    table: str
    path: str
    schema: pa.Schema
    """Of these columns."""

    def run(self) -> frozenset[str]:
        """Return the names of these columns."""
        rows = read_table(LakeLocation(self.table), self.path, self.schema)
        return frozenset(name for name in rows.column_names if not _are_exact(rows[name]))


@dataclass(frozen=True, slots=True)
class WidenTask:
    """A file whose columns become wider."""

    table: str
    file: DataFile
    schema: pa.Schema
    columns: Mapping[str, str]

    def run(self) -> DataFile:
        """Write it anew; the order of its rows stays."""
        place = LakeLocation(self.table)
        rows = read_table(place, self.file.path, self.schema)
        for name, kind in self.columns.items():
            place_of = rows.schema.get_field_index(name)
            if place_of >= 0:
                wide = as_wider(rows[name], ARROW[kind])  # fails for what would not be the same
                rows = rows.set_column(place_of, pa.field(name, ARROW[kind]), wide)
        return write_file(place, rows, self.file.partition, uuid.uuid4().hex)


def columns_of(table: Table, spec: TypedTable) -> Columns:
    """The payload columns of a typed table; those with numbers beyond any double stay as they are.

    The table must have been looked at: nothing is read here but its log. Where the log has no
    bounds, `inexact_columns` has to be asked before a column becomes wider.
    """
    own = {name.lower() for name in (*RESERVED, *spec.chunks)}
    kinds = {
        f.name: kind
        for f in table.schema
        if f.name.lower() not in own and (kind := kind_name(f.type)) is not None
    }
    fixed = {name for name in kinds if name in spec.columns}
    integers = [name for name, kind in kinds.items() if kind == "bigint" and name not in fixed]
    if integers:
        actions = table.actions()
        fixed.update(name for name in integers if _has_inexact_bound(actions, name))
    return Columns(kinds, frozenset(fixed))


def _has_inexact_bound(actions: pa.Table, column: str) -> bool:
    return any(
        bound is not None and abs(bound) > EXACT
        for name in (f"min.{column}", f"max.{column}")
        if name in actions.column_names
        for bound in actions[name].to_pylist()
    )


def _are_exact(values: pa.ChunkedArray) -> bool:
    """Return True if a double holds each of the whole numbers, or of those in the lists."""
    numbers = pc.list_flatten(values) if pa.types.is_list(values.type) else values
    bounds = pc.min_max(numbers).as_py()
    return bounds["min"] is None or (bounds["min"] >= -EXACT and bounds["max"] <= EXACT)


def inexact_columns(table: Table, columns: Mapping[str, str], tasks: Tasks) -> frozenset[str]:
    """Return those of some columns that must not become wider, as the values in the files say.

    `columns`: the kind that each is to have. Only whole numbers that become doubles can change, so
    no other column is read.
    """
    table.refresh()
    schema = table.schema
    doubtful = {
        name: kind
        for name, kind in columns.items()
        if name in schema.names and (kind_name(schema.field(name).type), kind) in _MAY_ROUND
    }
    if not doubtful:
        return frozenset()
    wanted = pa.schema([field for field in table.file_schema if field.name in doubtful])
    works = [InexactTask(table.place.uri, file.path, wanted) for file in table.files()]
    return frozenset().union(*tasks.run(works, f"look before widening {table.name}"))


def widen(table: Table, columns: Mapping[str, str], tasks: Tasks, apps: Mapping[str, int]) -> None:
    """Make columns of a table wider; `apps`: the writers of it, and the offset of each.

    Whoever merges or deletes rows meanwhile is waited for: what they left is widened.
    """
    for left in reversed(range(MOST_TRIES)):
        table.refresh()
        version = table.version
        had = table.file_schema
        works = [WidenTask(table.place.uri, file, had, dict(columns)) for file in table.files()]
        files = tasks.run(works, f"widen {table.name}")
        schema = pa.schema(
            [
                pa.field(f.name, ARROW[columns[f.name]]) if f.name in columns else f
                for f in table.schema
            ]
        )
        moved = {app: (at, at) for app, at in apps.items()}
        try:
            table.replace(files, schema, moved, {"kind": "rewrite"}, version)
        except CommitConflict as error:
            if not left or any(table.committed(app) != at for app, at in apps.items()):
                raise
            log.info("%s; looking again", error)
        else:
            return


def reconciled(spec: TypedTable, table: Table, tasks: Tasks, apps: Mapping[str, int]) -> list[str]:
    """Make columns as wide as the configuration says; gives a sentence where that cannot be."""
    has = columns_of(table, spec).kinds
    wider = {
        name: kind for name, kind in spec.columns.items() if (has.get(name), kind) in _MAY_ROUND
    }
    kept = inexact_columns(table, wider, tasks) if wider else frozenset()
    if wider.keys() - kept:
        exact = {name: kind for name, kind in wider.items() if name not in kept}
        widen(table, exact, tasks, apps)
    problems = [
        f"the configuration says that {spec.name}.{name} is {wider[name]}, but the table has "
        f"{has[name]} with numbers that no double holds; write columns: {{{name}: '{has[name]}'}}"
        for name in sorted(kept)
    ]
    problems += [
        f"{spec.name}.{name} is renamed or dropped by the configuration, but the table "
        f"has it with its rows of before; run `zenlake lake rebuild {spec.name}`"
        for name in (*spec.rename, *sorted(spec.drop))
        if name in has and name not in spec.rename.values()
    ]
    problems += [
        f"the configuration says that {spec.name}.{name} is {kind}, but the table has "
        f"{has[name]}; run `zenlake lake rebuild {spec.name}`"
        for name, kind in spec.columns.items()
        if name in has and name not in wider and has[name] != kind
    ]
    return problems
