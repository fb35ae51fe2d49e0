"""Journals for tests, and work that is done right here."""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeVar

import pyarrow as pa

from tests.lake.rowsof import Row, batch
from zenlake.journal import JournalWriter, partition_of
from zenlake.lake.ingest.spark_tasks import Work
from zenlake.lake.table.delta import Table
from zenlake.lake.table.location import LakeLocation

R = TypeVar("R")


def write(folder: Path, rows: list[Row], partitions: int = 2) -> None:
    """Append rows to the journal in a folder, each to the partition of its key."""
    writer = JournalWriter.open(folder, partitions=partitions, fsync="never")
    try:
        for partition in range(partitions):
            mine = [row for row in rows if partition_of(row.key, partitions) == partition]
            if mine:
                writer.append(partition, batch(mine).drop_columns(["offset"]))
        writer.flush()
    finally:
        writer.close()


class Here:
    """Does work in this process, after the journey that Spark would send it on."""

    def __init__(self, parallel: int = 2) -> None:
        self.parallel = parallel
        self.alive = True
        self.jobs: list[str] = []

    def run(self, items: Sequence[Work[R]], what: str) -> list[R]:
        self.jobs.append(what)
        works: list[Work[R]] = pickle.loads(pickle.dumps(list(items)))
        done: list[R] = pickle.loads(pickle.dumps([work.run() for work in works]))
        return done


def rows_of(lake: Path | str, name: str) -> list[dict[str, Any]]:
    """All rows of a table, as delta-rs reads them."""
    from deltalake import DeltaTable

    table = DeltaTable(str(Path(lake) / name)).to_pyarrow_table()
    assert isinstance(table, pa.Table)
    return list(table.to_pylist())


def table_of(lake: Path, name: str) -> Table:
    found = Table.open(LakeLocation(lake), name)
    assert found is not None
    return found
