"""Columns that become wider: bigint to double, in all files of a table at once.

Delta has no such widening of its own that every reader knows, so the files are written anew. That
happens once for a column, and mostly while the table is young: at the first fraction.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa

from zenlake.lake.ingest.spark_tasks import Tasks
from zenlake.lake.model.column_types import ARROW, kind_name
from zenlake.lake.model.location import LakeLocation
from zenlake.lake.model.typed_table import RESERVED, Columns, TypedTable
from zenlake.lake.model.value_types import EXACT
from zenlake.lake.table.data_files import DataFile, read_table, write_file
from zenlake.lake.table.delta import Table

__all__ = ["WidenTask", "columns_of", "reconciled", "widen"]


@dataclass(frozen=True, slots=True)
class WidenTask:
    """A file whose columns become wider."""

    table: str
    file: DataFile
    columns: Mapping[str, str]

    def run(self) -> DataFile:
        """Write it anew; the order of its rows stays."""
        place = LakeLocation(self.table)
        rows = read_table(place, self.file.path)
        for name, kind in self.columns.items():
            place_of = rows.schema.get_field_index(name)
            if place_of >= 0:
                wide = rows[name].cast(ARROW[kind], safe=False)
                rows = rows.set_column(place_of, pa.field(name, ARROW[kind]), wide)
        return write_file(place, rows, self.file.partition, uuid.uuid4().hex)


def columns_of(table: Table, spec: TypedTable) -> Columns:
    """The payload columns of a typed table; those with numbers beyond any double stay as they are.

    The table must have been looked at: nothing is read here but its log.
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
        fixed.update(name for name in integers if not _exact(table, name))
    return Columns(kinds, frozenset(fixed))


def _exact(table: Table, column: str) -> bool:
    actions = table.actions()
    for name in (f"min.{column}", f"max.{column}"):
        if name in actions.column_names and any(
            bound is not None and abs(bound) > EXACT for bound in actions[name].to_pylist()
        ):
            return False
    return True


def widen(table: Table, columns: Mapping[str, str], tasks: Tasks, apps: Mapping[str, int]) -> None:
    """Make columns of a table wider; `apps`: the writers of it, and the offset of each."""
    table.refresh()
    works = [WidenTask(table.place.uri, file, dict(columns)) for file in table.files()]
    files = tasks.run(works, f"widen {table.name}")
    schema = pa.schema(
        [pa.field(f.name, ARROW[columns[f.name]]) if f.name in columns else f for f in table.schema]
    )
    table.replace(files, schema, {app: (at, at) for app, at in apps.items()}, {"kind": "rewrite"})


def reconciled(spec: TypedTable, table: Table, tasks: Tasks, apps: Mapping[str, int]) -> list[str]:
    """Make columns as wide as the configuration says; gives a sentence where that cannot be."""
    has = columns_of(table, spec).kinds
    wider = {
        name: kind
        for name, kind in spec.columns.items()
        if (has.get(name), kind) in (("bigint", "double"), ("array<bigint>", "array<double>"))
    }
    if wider:
        widen(table, wider, tasks, apps)
    problems = [
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
