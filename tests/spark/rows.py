"""Rows for journals of tests."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from zenlake.clock import NTP64
from zenlake.journal import JournalWriter, partition_of
from zenlake.journal.ingest.rows import unnumbered_batch
from zenlake.recorded.time_bounds import HLC_BIAS

#: 2026-01-01T00:00:00Z, in microseconds.
MIDNIGHT = 1_767_225_600_000_000
SECOND = 1_000_000


def row(key: str, value: bytes, micros: int, **other: object) -> dict[str, object]:
    """A sample as a journal has it; everything that is not said is as usual."""
    usual: dict[str, object] = {
        "key": key,
        "value": value,
        "kind": 0,
        "encoding_id": 0,
        "encoding_schema": None,
        "hlc": int(NTP64.from_nanos(micros * 1000)) - HLC_BIAS,
        "time": micros,
        "stamp_id": b"\x01",
        "stamped": False,
        "attachment": None,
        "source_zid": b"\xb3\xa2\x01",
        "source_eid": 7,
        "source_sn": 0,
        "priority": 5,
        "congestion": 0,
        "express": False,
        "reliable": True,
        "received": micros + 1,
        "origin": 0,
    }
    return usual | other


def write_journal(path: Path, rows: list[dict[str, object]], **options: Any) -> None:
    """Append rows, each to the partition that its key belongs to."""
    partitions = int(options.get("partitions", 1))
    writer = JournalWriter.open(path, fsync="batch", **options)
    for partition in range(partitions):
        mine = [row for row in rows if partition_of(str(row["key"]), partitions) == partition]
        if mine:
            writer.append(partition, unnumbered_batch(mine))
    writer.flush()
    writer.close()
