"""Rows for tests of the journal."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import pyarrow as pa

from zenlake.journal.schema import SCHEMA, UNNUMBERED
from zenlake.recorded.time_bounds import HLC_BIAS


def rows(
    keys: Sequence[str],
    *,
    values: Sequence[bytes] | None = None,
    start: int = 0,
    source: tuple[bytes, int] | None = None,
    time: Sequence[int] | None = None,
) -> pa.RecordBatch:
    """A batch with one row for each key; row number `start + i` is also its time and value."""
    count = len(keys)
    times = list(time) if time is not None else [start + i for i in range(count)]
    dictionary = sorted(set(keys))
    columns: dict[str, Any] = {
        "key": pa.DictionaryArray.from_arrays(
            pa.array([dictionary.index(key) for key in keys], pa.int32()),
            pa.array(dictionary, pa.string()),
        ),
        "value": values or [str(start + i).encode() for i in range(count)],
        "kind": [0] * count,
        "encoding_id": [0] * count,
        "encoding_schema": [None] * count,
        "hlc": [((at << 32) // 1_000_000) - HLC_BIAS for at in times],
        "time": times,
        "stamp_id": [b"\x01"] * count,
        "stamped": [False] * count,
        "attachment": [None] * count,
        "source_zid": [source[0] if source else None] * count,
        "source_eid": [source[1] if source else None] * count,
        "source_sn": [start + i if source else None for i in range(count)],
        "priority": [5] * count,
        "congestion": [0] * count,
        "express": [False] * count,
        "reliable": [True] * count,
        "received": times,
        "origin": [0] * count,
    }
    arrays = [
        column if isinstance(column, pa.Array) else pa.array(column, UNNUMBERED.field(name).type)
        for name, column in columns.items()
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=UNNUMBERED)


def told(batches: Iterable[pa.RecordBatch]) -> list[tuple[int, str, bytes]]:
    """Offset, key and value of every row; batches have to have the journal's schema."""
    found: list[tuple[int, str, bytes]] = []
    for batch in batches:
        assert batch.schema.equals(SCHEMA)
        assert len(batch), "an empty batch tells nothing"
        batch.validate(full=True)
        columns = [batch.column(name).to_pylist() for name in ("offset", "key", "value")]
        found += zip(*columns, strict=True)
    return found
