"""Rows of a journal that shall never have been: for people who ask to be forgotten.

Offsets are dense, so a row that goes leaves an empty one, which readers pass over as they do
heartbeats. A segment that has such rows is written anew beside itself and then takes its own
place, so a crash leaves the old one or the new one; forgetting again finishes it. Nobody may
record meanwhile: the journal's lock is held.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from zenlake.errors import JournalCorrupt, LocalError
from zenlake.journal.disk.files import LocalFiles
from zenlake.journal.disk.layout import INFO, TEMPORARY, sealed_path
from zenlake.journal.disk.remote import is_uri
from zenlake.journal.disk.segment import Segment
from zenlake.journal.disk.writeahead import WriteAhead
from zenlake.journal.reading.reader import Journal
from zenlake.journal.schema import HEARTBEAT, HEARTBEAT_MARK, UNNUMBERED
from zenlake.journal.writing.log import Log
from zenlake.journal.writing.partition import Partition

__all__ = ["FORGOTTEN", "forget"]

FORGOTTEN: Final = f"forgotten{HEARTBEAT_MARK}_"
"""The key of rows that are empty now; no publisher has such a name."""

_EMPTY: Final = {
    "key": FORGOTTEN,
    "value": b"",
    "encoding_schema": None,
    "attachment": None,
    "source_zid": None,
    "source_eid": None,
    "source_sn": None,
    "origin": HEARTBEAT,
}


def forget(path: str | Path, gone: Callable[[str], bool]) -> int:
    """Empty all rows of keys that are to go; gives how many."""
    if not (Path(path) / INFO).exists():
        raise LocalError(f"{path} is no journal in a folder of this machine")
    files = LocalFiles(path)
    lock = files.lock()
    try:
        log = Log(files)
        try:
            for partition in log.partitions:
                if partition.active.blocks:
                    partition.seal(time.time())
            log.commit()
            journal = Journal.open(path)
            return sum(_forget(journal, files, one, gone) for one in log.partitions)
        finally:
            log.close()
    finally:
        lock.release()


def _forget(
    journal: Journal, files: LocalFiles, partition: Partition, gone: Callable[[str], bool]
) -> int:
    count = 0
    for segment in partition.manifest.segments:
        if segment.keys is not None and not any(_meant(key, gone) for key in segment.keys):
            continue
        if is_uri(segment.path):
            raise LocalError(f"{segment.path} was moved elsewhere; only segments here are changed")
        emptied, made = _written(journal, files, partition.number, segment, gone)
        if made is not None:
            count += emptied
            segments = [made if one is segment else one for one in partition.manifest.segments]
            partition.publish(dataclasses.replace(partition.manifest, segments=tuple(segments)))
    return count


def _written(
    journal: Journal,
    files: LocalFiles,
    number: int,
    segment: Segment,
    gone: Callable[[str], bool],
) -> tuple[int, Segment | None]:
    """How many rows of a segment go, and the segment without them if any do."""
    path = sealed_path(number, segment.first)
    made = WriteAhead(files, journal.id, number, segment.first, path + TEMPORARY)
    emptied = 0
    try:
        for batch in journal.scan(
            {number: segment.first},
            {number: segment.end},
            partition=number,
            heartbeats=True,
            check=True,
        ):
            keys = batch.column("key")
            meant = np.array([_meant(key, gone) for key in keys.dictionary.to_pylist()], bool)
            mask = meant[keys.indices.to_numpy(zero_copy_only=False)]
            emptied += int(mask.sum())
            made.append(_without(batch, mask))
        if made.next != segment.end:
            raise JournalCorrupt(f"{path} has offsets up to {made.next}, not to {segment.end}")
        if emptied:
            return emptied, made.seal(segment.closed)
    finally:
        made.close()
    files.remove(path + TEMPORARY)
    return 0, None


def _without(
    batch: pa.RecordBatch, mask: np.ndarray[tuple[int], np.dtype[np.bool_]]
) -> pa.RecordBatch:
    chosen = pa.array(mask)
    columns = []
    for field in UNNUMBERED:
        column = batch.column(field.name)
        if field.name in _EMPTY and mask.any():
            typ = pa.string() if field.name == "key" else field.type
            column = pc.if_else(chosen, pa.scalar(_EMPTY[field.name], typ), column.cast(typ))
            if field.name == "key":
                column = column.dictionary_encode()
        columns.append(column)
    return pa.RecordBatch.from_arrays(columns, schema=UNNUMBERED)


def _meant(key: str, gone: Callable[[str], bool]) -> bool:
    """Whether a key is to go, or a heartbeat that is about one."""
    return key != FORGOTTEN and gone(key.partition(HEARTBEAT_MARK)[0])
