"""Journals on disk, made of rows that are written down."""

from __future__ import annotations

import zlib
from pathlib import Path

from tests.journal.heard import Row, batch_of
from zenlake.journal import Journal, JournalWriter


def write_rows(path: Path, *batches: list[Row], partitions: int = 1, **options: object) -> Journal:
    """A journal with these rows, each batch a block of its own."""
    with JournalWriter.open(path, name="j", partitions=partitions, **options) as writer:  # type: ignore[arg-type]
        for rows in batches:
            for partition in range(partitions):
                mine = [r for r in rows if zlib.crc32(r.key.encode()) % partitions == partition]
                if mine:
                    writer.append(partition, batch_of(mine))
            writer.flush()
    return Journal.open(path)
