"""Rows of pipelines in the table `quarantine`: appended once, and removed with what was computed.

A commit of refused rows moves an application on, whose id names the flow and whose version is the
number of the micro-batch. The rows of a batch are committed here before those of the table: a
program that is killed in between repeats the batch, finds it here, and commits it to the table.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import pyarrow.compute as pc

from zenlake.lake.ingest.quarantine import QuarantineRemoval
from zenlake.lake.ingest.task import QUARANTINED
from zenlake.lake.model.sample_rows import DAY, QUARANTINE
from zenlake.lake.table.data_files import DataFile
from zenlake.lake.table.delta import CommitConflict, Table
from zenlake.lake.table.location import LakeLocation

__all__ = ["append_refused", "replace_refused"]

MOST_TRIES: Final = 8
"""Times that a commit tries again behind others."""
_NOTE: Final = {"kind": "append"}


def append_refused(
    lake: LakeLocation, files: Sequence[DataFile], application: str, batch: int
) -> bool:
    """Commit the refused rows of a micro-batch; False if `quarantine` has them."""
    table = _opened(lake)
    at = table.committed(application)
    if at is not None and at >= batch:
        return False
    table.append(files, {application: (at, batch)}, _NOTE)
    return True


def replace_refused(lake: LakeLocation, name: str, files: Sequence[DataFile]) -> None:
    """Put refused rows in the place of all that `quarantine` has of a table."""
    if not files and Table.open(lake, QUARANTINED) is None:
        return
    for left in reversed(range(MOST_TRIES)):
        table = _opened(lake)
        removed, rewritten = _without(table, name)
        if not files and not removed:
            return
        try:
            table.append([*files, *rewritten], {}, _NOTE, removed)
        except CommitConflict:
            if not left:
                raise
        else:
            return


def _opened(lake: LakeLocation) -> Table:
    table = Table.create(lake, QUARANTINED, QUARANTINE, DAY)
    table.grow({field.name: field.type for field in QUARANTINE})
    return table


def _without(table: Table, name: str) -> tuple[list[DataFile], list[DataFile]]:
    """Return the files with rows of a table, and files with what is left of them."""
    removed: list[DataFile] = []
    rewritten: list[DataFile] = []
    for file in _files_with(table, name):
        had, left = QuarantineRemoval(table.place.uri, file, name, table.file_schema).run()
        if had:
            removed.append(file)
            rewritten += [left] if left is not None else []
    return removed, rewritten


def _files_with(table: Table, name: str) -> list[DataFile]:
    """Return the files that may have rows of a table, by their statistics."""
    actions = table.actions()
    if {"min.table", "max.table"} <= set(actions.column_names):
        least, most = actions["min.table"], actions["max.table"]
        may = pc.and_(pc.less_equal(least, name), pc.greater_equal(most, name))
        actions = actions.filter(pc.fill_null(may, True))
    paths = set(actions["path"].to_pylist())
    return [file for file in table.files() if file.path in paths]
