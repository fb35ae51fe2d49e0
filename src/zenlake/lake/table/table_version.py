"""One version of a table, which never changes: readers on any thread share it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

import pyarrow as pa
import pyarrow.compute as pc

from zenlake.lake.table.commit_log import newest_note
from zenlake.lake.table.location import LakeLocation

__all__ = ["TableVersion", "file_columns", "is_of_query"]


def file_columns(schema: pa.Schema, partitions: tuple[str, ...]) -> pa.Schema:
    """Return the columns of data files: all but those that the table is partitioned by."""
    return pa.schema([pa.field(f.name, f.type) for f in schema if f.name not in partitions])


def is_of_query(described: str) -> bool:
    """Return True if a table is described as one that a view or an alert fills."""
    return described.startswith(("view ", "alert "))


@final
@dataclass(frozen=True, slots=True, eq=False)
class TableVersion:
    """A table as it was when its log was looked at."""

    name: str
    place: LakeLocation
    """The table's folder."""
    version: int
    schema: pa.Schema
    partitions: tuple[str, ...]
    """The columns that the files are partitioned by."""
    described: str
    """The description that the table was made with."""
    is_by_programs: bool
    """Programs of users made the table and fill it."""
    actions: pa.Table
    """The files with their statistics, a row each."""

    @property
    def file_schema(self) -> pa.Schema:
        """The columns of data files: all but those that the table is partitioned by."""
        return file_columns(self.schema, self.partitions)

    @property
    def is_continuous(self) -> bool:
        """Whether a view or an alert fills the table, and not the pipeline."""
        return not self.is_by_programs and is_of_query(self.described)

    @property
    def paths(self) -> list[str]:
        """The files."""
        paths: list[str] = self.actions["path"].to_pylist()
        return paths

    @property
    def rows(self) -> int:
        """The number of rows."""
        return pc.sum(self.actions["num_records"]).as_py() or 0

    def last_note(self, kind: str) -> dict[str, Any] | None:
        """Return what the newest commit of this kind noted, as far back as the log goes."""
        found = newest_note(self.place, self.version, kind)
        return None if found is None else found[1]
