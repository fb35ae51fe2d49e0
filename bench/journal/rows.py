"""Rows as a fleet of robots makes them, for benchmarks."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from zenlake.journal import UNNUMBERED
from zenlake.journal.schema import INSTANT
from zenlake.recorded.time_bounds import HLC_BIAS

ZID = bytes(range(1, 17))


def batch(rows: int, size: int, keys: int = 100, start: int = 0) -> pa.RecordBatch:
    """So many rows with payloads of `size` random bytes, of one source with sequence numbers."""
    chance = np.random.default_rng(start)
    numbers = np.arange(start, start + rows, dtype=np.int64)
    micros = numbers + 1_700_000_000_000_000
    time = pa.array(micros).cast(INSTANT)
    hlc = ((micros // 1_000_000) << 32) + ((micros % 1_000_000) << 32) // 1_000_000
    columns = {
        "key": pa.DictionaryArray.from_arrays(
            pa.array(chance.integers(0, keys, rows), pa.int32()),
            pa.array([f"robot/{number}/pose" for number in range(keys)]),
        ),
        "value": _fixed(chance.bytes(rows * size), size, rows),
        "kind": _same(0, pa.int8(), rows),
        "encoding_id": _same(4, pa.int32(), rows),
        "encoding_schema": pa.nulls(rows, pa.string()),
        "hlc": pa.array(hlc.astype(np.uint64) - np.uint64(HLC_BIAS)).view(pa.int64()),
        "time": time,
        "stamp_id": _fixed(ZID * rows, len(ZID), rows),
        "stamped": _same(False, pa.bool_(), rows),
        "attachment": pa.nulls(rows, pa.binary()),
        "source_zid": _fixed(ZID * rows, len(ZID), rows),
        "source_eid": _same(3, pa.int64(), rows),
        "source_sn": pa.array(numbers),
        "priority": _same(5, pa.int8(), rows),
        "congestion": _same(0, pa.int8(), rows),
        "express": _same(False, pa.bool_(), rows),
        "reliable": _same(True, pa.bool_(), rows),
        "received": time,
        "origin": _same(0, pa.int8(), rows),
    }
    return pa.RecordBatch.from_arrays(list(columns.values()), schema=UNNUMBERED)


def _same(value: object, kind: pa.DataType, rows: int) -> pa.Array:
    return pa.array(np.full(rows, value), kind)


def _fixed(data: bytes, size: int, rows: int) -> pa.Array:
    offsets = np.arange(rows + 1, dtype=np.int32) * size
    return pa.Array.from_buffers(
        pa.binary(), rows, [None, pa.py_buffer(offsets), pa.py_buffer(data)]
    )
