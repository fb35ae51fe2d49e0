"""Rows of a journal that shall never have been: for people who ask to be forgotten.

Offsets are dense, so a row that goes leaves an empty one, which readers pass over as they do
heartbeats. A segment that has such rows is written anew (`writing/rewrite`), so a crash leaves the
old one or the new one; forgetting again finishes it. Nobody may record meanwhile: the journal's
lock is held.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from zenlake.errors import LocalError
from zenlake.journal.disk.files import LocalFiles
from zenlake.journal.disk.layout import INFO, LATEST, LEDGER
from zenlake.journal.disk.remote import is_uri
from zenlake.journal.reading.reader import Journal
from zenlake.journal.schema import HEARTBEAT, HEARTBEAT_MARK, UNNUMBERED
from zenlake.journal.writing.log import Log
from zenlake.journal.writing.partition import Partition
from zenlake.journal.writing.rewrite import SegmentRewrite, columns_of

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
    "stamp_id": b"",
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
            count = sum(_forget(journal, files, one, gone) for one in log.partitions)
            # They name keys, also of rows that were let go long ago; a recorder makes them anew.
            for name in {LEDGER, LATEST} & set(files.list("")):
                files.remove(name)
            return count
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
        forgetting = _Forgetting(gone)
        work = SegmentRewrite(files, journal.id, partition.number, segment, forgetting.without)
        try:
            work.step()
            left = [key for key in segment.retired_keys if not _meant(key, gone)]
            made = work.seal(left) if forgetting.rows else None
        except BaseException:
            work.abandon()
            raise
        if made is None:
            work.abandon()
            continue
        partition.exchange(segment, made)
        count += forgetting.rows
    return count


class _Forgetting:
    """Empties rows of keys that are to go, and counts them."""

    def __init__(self, gone: Callable[[str], bool]) -> None:
        self._gone = gone
        self.rows = 0

    def without(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The rows, those that are to go empty."""
        keys = batch.column("key")
        meant = np.array([_meant(key, self._gone) for key in keys.dictionary.to_pylist()], bool)
        mask = meant[keys.indices.to_numpy(zero_copy_only=False)]
        if not mask.any():
            return columns_of(batch, {})
        self.rows += int(mask.sum())
        chosen = pa.array(mask)
        changed = {}
        for name, empty in _EMPTY.items():
            typ = pa.string() if name == "key" else UNNUMBERED.field(name).type
            changed[name] = pc.if_else(chosen, pa.scalar(empty, typ), batch.column(name).cast(typ))
        changed["key"] = changed["key"].dictionary_encode()
        return columns_of(batch, changed)


def _meant(key: str, gone: Callable[[str], bool]) -> bool:
    """Whether a key is to go, or a heartbeat that is about one."""
    return key != FORGOTTEN and gone(key.partition(HEARTBEAT_MARK)[0])
