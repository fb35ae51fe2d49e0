"""Rows of a journal for tests, made from a few words each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from zenlake.journal.schema import SCHEMA
from zenlake.recorded.time_bounds import HLC_BIAS

START = 1_700_000_000


@dataclass(frozen=True, slots=True)
class Row:
    """One sample; `at` is its time, `heard` when it was received, both in seconds."""

    key: str
    value: bytes = b""
    at: float = 0.0
    kind: int = 0
    encoding: int = 0
    schema: str | None = None
    heard: float | None = None
    id: bytes = b"\x01"
    sn: int | None = None
    source: bytes | None = None
    attachment: bytes | None = None


def batch(rows: list[Row], first: int = 0) -> pa.RecordBatch:
    """The rows as a batch of a journal, numbered from `first`."""
    seconds = [START + row.at for row in rows]
    heard = [START + (row.at if row.heard is None else row.heard) for row in rows]
    columns: dict[str, list[Any]] = {
        "offset": list(range(first, first + len(rows))),
        "value": [row.value for row in rows],
        "kind": [row.kind for row in rows],
        "encoding_id": [row.encoding for row in rows],
        "encoding_schema": [row.schema for row in rows],
        "hlc": [int(second * (1 << 32)) - HLC_BIAS for second in seconds],
        "time": [int(second * 1_000_000) for second in seconds],
        "stamp_id": [row.id for row in rows],
        "stamped": [False] * len(rows),
        "attachment": [row.attachment for row in rows],
        "source_zid": [row.source for row in rows],
        "source_eid": [None if row.source is None else 1 for row in rows],
        "source_sn": [row.sn for row in rows],
        "priority": [5] * len(rows),
        "congestion": [0] * len(rows),
        "express": [False] * len(rows),
        "reliable": [True] * len(rows),
        "received": [int(second * 1_000_000) for second in heard],
        "origin": [0] * len(rows),
    }
    arrays = [
        pa.array([row.key for row in rows], pa.string()).dictionary_encode()
        if field.name == "key"
        else pa.array(columns[field.name], field.type)
        for field in SCHEMA
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=SCHEMA)
