"""Rows that other programs delete with deletion vectors: files are written anew without them.

Delta's connector marks rows as deleted in a file of its own, where a table allows it
(`delta.enableDeletionVectors`). Tables are read in many ways, and by programs that know no such
vectors, so a version that has some is not read at all. Whoever writes to the table rewrites the
files first, as `REORG TABLE … APPLY (PURGE)` does. The feature stays with the table, and new
vectors are treated in the same way.
"""

from __future__ import annotations

import logging
import uuid
from dataclasses import dataclass

import pyarrow as pa

from zenlake.lake.ingest.spark_tasks import Tasks
from zenlake.lake.table.data_files import DataFile, read_table, write_file
from zenlake.lake.table.delta import Table
from zenlake.lake.table.location import LakeLocation

__all__ = ["PurgeTask", "purge", "purge_all"]

log = logging.getLogger("zenlake.lake")


@dataclass(frozen=True, slots=True)
class PurgeTask:
    """A file of a partition in which rows were deleted."""

    table: str
    file: DataFile
    left: pa.Array | None
    """Which of its rows are left; None: all."""
    schema: pa.Schema

    def run(self) -> DataFile | None:
        """Write the rows that are left, in their order; None if there are none."""
        place = LakeLocation(self.table)
        rows = read_table(place, self.file.path, self.schema)
        if self.left is not None:
            # A vector may end with the last row that it deletes.
            rest = pa.array([True] * (rows.num_rows - len(self.left)), pa.bool_())
            rows = rows.filter(pa.concat_arrays([self.left, rest]))
        if not rows.num_rows:
            return None
        return write_file(place, rows, self.file.partition, uuid.uuid4().hex)


def purge(table: Table, tasks: Tasks | None = None) -> None:
    """Write the files anew in which deletion vectors delete rows, and those of their partitions.

    Does nothing if there are no vectors. `tasks`: None does the work here. Raises `CommitConflict`
    if somebody else commits meanwhile.
    """
    table.look()
    if not table.has_deletions:
        return
    for value, files in table.deletions().items():
        version, schema = table.version, table.file_schema
        items = [PurgeTask(table.place.uri, file, left, schema) for file, left in files]
        if tasks is None:
            done = [item.run() for item in items]
        else:
            done = tasks.run(items, f"drop deleted rows of {table.name}")
        table.replace_partition(value, [file for file in done if file is not None], version)
    table.demand_understood()
    log.info("files of %s were written anew without the rows that others deleted", table.name)


def purge_all(lake: LakeLocation, tasks: Tasks) -> None:
    """Purge all tables of a lake in which deletion vectors delete rows."""
    for name in lake.folders():
        table = Table.open(lake, name, refused=True)
        if table is not None:
            purge(table, tasks)
