"""Keys that shall never have been in a lake: for people who ask to be forgotten.

Rows leave every table, and then the past does: versions that had them, their files, and the log
with the statistics of these files. Old versions of all tables end there. Nothing may be filling
the lake meanwhile.
"""

from __future__ import annotations

import logging
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa

from zenlake.errors import LocalError
from zenlake.journal.writing.forget import forget
from zenlake.keys import KeyExpr
from zenlake.keys.matching import includes
from zenlake.lake.decode.table_store import TableStore
from zenlake.lake.ingest import gaps, latest
from zenlake.lake.ingest import latest_tasks as newest
from zenlake.lake.ingest.quarantine import Quarantine
from zenlake.lake.ingest.spark_tasks import Tasks
from zenlake.lake.maintain.definition_store import begin_anew
from zenlake.lake.maintain.status_file import read_status
from zenlake.lake.maintain.upkeep import vacuum
from zenlake.lake.table.data_files import DataFile, open_file, write_file
from zenlake.lake.table.delta import CommitConflict, Table
from zenlake.lake.table.iceberg import FOLDER, IcebergMirror, demand_pyiceberg, unpublish
from zenlake.lake.table.location import LakeLocation

__all__ = ["ForgetKeys", "forget_everywhere"]

log = logging.getLogger("zenlake.lake")

MOST_TRIES: Final = 8
"""Times that a table is looked through while another program changes it."""


@dataclass(frozen=True, slots=True)
class ForgottenRows:
    """How many rows of a file go, and the file that is left, if one is."""

    rows: int
    changed: bool
    file: DataFile | None


@dataclass(frozen=True, slots=True)
class ForgetKeys:
    """A file that may have rows of keys that are to go."""

    table: str
    partition: Mapping[str, str | None]
    path: str
    schema: pa.Schema
    expr: str

    def run(self) -> ForgottenRows:
        """Write the file anew without them."""
        place = LakeLocation(self.table)
        with open_file(place, self.path, self.schema) as reader:
            rows, notes = reader.read(), reader.notes
        if "key" in self.partition:
            keep = self.partition["key"] is None or not includes(self.expr, self.partition["key"])
            return ForgottenRows(0, False, None) if keep else ForgottenRows(len(rows), True, None)
        kept = rows.filter(self._others(rows))
        if gaps.LEDGER in notes:
            return self._ledger(place, kept, rows.num_rows, notes[gaps.LEDGER])
        aside = notes.get(newest.MEMORY)
        memory = None if aside is None else pa.ipc.open_stream(aside).read_all()
        left = None if memory is None else memory.filter(self._others(memory))
        gone = rows.num_rows - kept.num_rows
        if not gone and (memory is None or left is None or left.num_rows == memory.num_rows):
            return ForgottenRows(0, False, None)
        metadata = None
        if left is not None and left.num_rows:
            sink = pa.BufferOutputStream()
            with pa.ipc.new_stream(sink, latest.MEMORY) as writer:
                writer.write_table(left)
            metadata = {newest.MEMORY: sink.getvalue().to_pybytes()}
        elif not kept.num_rows:
            return ForgottenRows(gone, True, None)
        file = write_file(place, kept, self.partition, uuid.uuid4().hex, metadata=metadata)
        return ForgottenRows(gone, True, file)

    def _ledger(
        self, place: LakeLocation, kept: pa.Table, before: int, noted: bytes
    ) -> ForgottenRows:
        """A file of `gaps`: its pages, and the state that they were made of."""
        state = gaps.without(noted, lambda key: includes(self.expr, key))
        if state == noted:
            return ForgottenRows(0, False, None)
        name = uuid.uuid4().hex
        file = write_file(place, kept, self.partition, name, metadata={gaps.LEDGER: state})
        return ForgottenRows(before - kept.num_rows, True, file)

    def _others(self, rows: pa.Table) -> pa.Array:
        keys = rows["key"].to_pylist()
        meant = {key: key is None or not includes(self.expr, key) for key in set(keys)}
        return pa.array(np.array([meant[key] for key in keys], np.bool_))


def forget_everywhere(
    place: LakeLocation,
    tables: Mapping[str, Table],
    keys: str,
    journals: Sequence[str | Path],
    tasks: Callable[[], Tasks],
) -> dict[str, int]:
    """Take keys out of journals, and then out of the tables and of all that they were.

    `tasks` is asked for when nothing stands in the way: a Spark may have to be started for it.
    """
    expr = str(KeyExpr.autocanonize(keys))
    said = read_status(place.uri)
    if said is not None and said.state != "stopped" and said.fresh(time.time()):
        raise LocalError(
            f"a pipeline fills this lake (process {said.pid}); stop it, and forget then"
        )
    forgotten: dict[str, int] = {}
    if journals:
        # First here, or a table could be filled with it again.
        forgotten["journal"] = sum(
            forget(journal, lambda key: includes(expr, key)) for journal in journals
        )
    return forgotten | forget_in(place, tables, expr, tasks())


def forget_in(
    lake: LakeLocation, tables: Mapping[str, Table], expr: str, tasks: Tasks
) -> dict[str, int]:
    """Take keys out of all tables and their past; gives how many rows each had of them.

    Views and alerts begin anew: what they found, and what they noted, may be of any key.
    """
    if "://" not in lake.uri:
        begin_anew(lake)
    tables = {name: table for name, table in tables.items() if not table.is_continuous}
    # What was promised to the quarantine is in the notes of commits that are about to go.
    typed = {
        name: table
        for name, table in tables.items()
        if "quarantine" in (table.last_note("append") or {})
    }
    quarantine = Quarantine(lake, typed, tasks)
    every = {**tables, quarantine.table.name: quarantine.table}
    gone = {name: _forget(table, expr, tasks) for name, table in every.items()}
    for name in TableStore(lake).forget(expr):  # its name, too, tells of the keys
        lake.remove_folder(name)
    return gone


def _forget(table: Table, expr: str, tasks: Tasks) -> int:
    for left in reversed(range(MOST_TRIES)):
        try:
            rows = _take_out(table, expr, tasks)
            break
        except CommitConflict as error:  # another program merges or deletes
            if not left:
                raise
            log.info("%s; looking again", error)
    table.end_past()
    vacuum(table, 0.0)
    # Its manifests have bounds of keys; what is published next knows nothing of before.
    published = table.place.exists(FOLDER)
    unpublish(table)
    if published:
        demand_pyiceberg()
        IcebergMirror().publish(table)
    return rows


def _take_out(table: Table, expr: str, tasks: Tasks) -> int:
    """Commit the files without the rows of these keys; gives how many those were."""
    table.refresh()
    version = table.version
    note: dict[str, Any] = dict(table.last_note("append") or {"kind": "append"})
    if "quarantine" in note:
        note = {"kind": "append", "quarantine": [], "moved": {}}
    has_keys = "key" in table.schema.names and pa.types.is_string(table.schema.field("key").type)
    files = table.files() if has_keys else []
    schema = table.file_schema
    works = [ForgetKeys(table.place.uri, f.partition, f.path, schema, expr) for f in files]
    done = tasks.run(works, f"forget {expr} in {table.name}") if works else []
    table.append(
        [one.file for one in done if one.file is not None],
        {},
        note,
        [file for file, one in zip(files, done, strict=True) if one.changed],
        version=version,
    )
    return sum(one.rows for one in done)
