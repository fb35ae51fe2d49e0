"""Rows of `samples` whose files were lost, read again from a journal that still holds them.

The log says of each file of which day it is and between which offsets its rows lie. What the
journal has between those, of that day, and no other file of the table has, was in the lost ones;
or retention had let it go, and will again.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from zenlake.journal import Journal
from zenlake.journal.ledger.heartbeats import samples_in
from zenlake.lake.ingest.task import SampleFiles
from zenlake.lake.model.sample_rows import DAY, SAMPLES, sample_rows, with_day
from zenlake.lake.table.data_files import DataFile, read_table
from zenlake.lake.table.delta import Table

__all__ = ["journals_of", "restore"]

ANY: Final = ("", "\U0010ffff")
"""The ids of journals of a file whose log tells none."""


@dataclass(frozen=True, slots=True)
class FileSpread:
    """Where the rows of one file lie: partitions and offsets, both ends included."""

    path: str
    day: date
    journals: tuple[str, str]
    partitions: tuple[int, int]
    offsets: tuple[int, int]

    def may_have(self, journal: str, partition: int) -> bool:
        """Whether some of its rows may be of this partition of a journal."""
        first, last = self.journals
        return first <= journal <= last and self.partitions[0] <= partition <= self.partitions[1]


def restore(
    table: Table, lost: Sequence[DataFile], journals: Sequence[Journal], *, dry: bool = False
) -> tuple[list[DataFile], int]:
    """Write files with the rows of lost ones; how many rows those have. With `dry` only count.

    Of journals with one id, copies of each other, each has what those before it have not.
    """
    gone = {file.path for file in lost}
    spreads = _spreads(table.actions())
    files = SampleFiles(table.place, uuid.uuid4().hex)
    restored: dict[tuple[str, int], list[Any]] = {}
    for journal in journals:
        earliest, durable = journal.earliest(), journal.watermark().offsets
        for partition, (first, end) in enumerate(zip(earliest, durable, strict=True)):
            mine = [one for one in spreads if one.may_have(journal.id, partition)]
            missing = [one for one in mine if one.path in gone]
            if not missing:
                continue
            days = {one.day for one in missing}
            first = max(first, min(one.offsets[0] for one in missing))
            # What lies behind this comes by itself.
            end = min(end, table.committed(f"{journal.id}/{partition}") or 0)
            end = min(end, max(one.offsets[1] for one in missing) + 1)
            kept = [one for one in mine if one.path not in gone and one.day in days]
            again = restored.setdefault((journal.id, partition), [])
            had = _offsets(table, kept, journal.id, partition, first, end)
            had = np.unique(np.concatenate([had, *again]))
            for rows in _rows(journal, partition, first, end):
                found = _of_days(rows, missing, had)
                again.append(found["offset"].to_numpy())
                if found.num_rows and not dry:
                    files.add(found)
    count = sum(len(offsets) for again in restored.values() for offsets in again)
    return ([] if dry else files.files()), count


def journals_of(table: Table, lost: Sequence[DataFile]) -> set[str]:
    """The ids of all journals that rows of lost files may be from."""
    gone = {file.path for file in lost}
    mine = [one.journals for one in _spreads(table.actions()) if one.path in gone]
    # The log of a file tells the first and the last of its journals, and nothing of those between.
    known = {app.rpartition("/")[0] for app in table.applications()}
    between = {one for one in known if one and any(first < one < last for first, last in mine)}
    return between | {one for ends in mine for one in ends if ends != ANY}


def _spreads(actions: pa.Table) -> list[FileSpread]:
    """What the log says of each file; of one without statistics, that it may have anything."""
    rows = actions.num_rows

    def column(name: str, else_: Any) -> list[Any]:
        if name not in actions.column_names:
            return [else_] * rows
        return [else_ if one is None else one for one in actions[name].to_pylist()]

    return [
        FileSpread(path, day, (least, most), (first, last), (low, high))
        for path, day, least, most, first, last, low, high in zip(
            actions["path"].to_pylist(),
            actions[f"partition.{DAY}"].to_pylist(),
            column("min.journal", ANY[0]),
            column("max.journal", ANY[1]),
            column("min.partition", 0),
            column("max.partition", 1 << 30),
            column("min.offset", 0),
            column("max.offset", (1 << 62)),
            strict=True,
        )
    ]


def _offsets(
    table: Table, files: Sequence[FileSpread], journal: str, partition: int, first: int, end: int
) -> np.ndarray[Any, np.dtype[np.int64]]:
    """The offsets of a partition that other files have, in a range."""
    found: list[Any] = []
    for one in files:
        if one.offsets[0] < end and one.offsets[1] >= first:
            rows = read_table(table.place, one.path, SAMPLES, ["journal", "partition", "offset"])
            mine = pc.and_(
                pc.equal(rows["journal"], journal), pc.equal(rows["partition"], partition)
            )
            found.append(rows.filter(mine)["offset"].to_numpy())
    return np.unique(np.concatenate(found)) if found else np.empty(0, np.int64)


def _rows(journal: Journal, partition: int, first: int, end: int) -> Iterator[pa.Table]:
    """What a journal has in a range, as rows of `samples`."""
    if first >= end:
        return
    for batch in journal.scan(first, end, partition=partition, heartbeats=True):
        for samples in samples_in(batch):
            yield sample_rows(samples, journal.id, partition)


def _of_days(
    rows: pa.Table, missing: Sequence[FileSpread], had: np.ndarray[Any, np.dtype[np.int64]]
) -> pa.Table:
    """Those rows that lie in a lost file and in no other."""
    offsets = rows["offset"].to_numpy()
    days = with_day(rows)[DAY].to_numpy()
    lost = np.zeros(rows.num_rows, np.bool_)
    for one in missing:
        within = (offsets >= one.offsets[0]) & (offsets <= one.offsets[1])
        lost |= within & (days == np.datetime64(one.day))
    lost &= ~np.isin(offsets, had, assume_unique=True)
    return rows.filter(pa.array(lost))
