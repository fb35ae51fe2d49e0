"""Samples as rows, and rows as samples: for those that come one by one.

What is heard by the thousand comes as columns already (`zenlake.journal.ingest.columns`). What is
healed or imported, and what is answered, comes and goes as samples.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from zenlake.clock import NTP64, Timestamp
from zenlake.journal.disk.layout import partition_of
from zenlake.journal.schema import UNNUMBERED
from zenlake.node.sample import Sample
from zenlake.recorded.encoding import recorded_schema
from zenlake.recorded.time_bounds import HLC_BIAS

__all__ = ["batches_of", "hlc_nanos", "hlc_of", "hlc_of_micros", "timestamp_of", "unnumbered_batch"]


def hlc_of(timestamp: Timestamp) -> int:
    """The time of a timestamp, as the column `hlc` has it."""
    return (timestamp.seconds << 32 | timestamp.fraction) - HLC_BIAS


def timestamp_of(hlc: int, stamp_id: bytes) -> Timestamp:
    """The timestamp that two columns make."""
    raw = hlc + HLC_BIAS
    return Timestamp(raw >> 32, stamp_id, raw & 0xFFFFFFFF)


def hlc_nanos(hlc: npt.NDArray[np.int64]) -> npt.NDArray[np.uint64]:
    """Nanoseconds since 1970, exactly as one timestamp tells them (`NTP64.as_nanos`)."""
    raw = hlc.view(np.uint64) ^ np.uint64(HLC_BIAS)
    fraction = raw & np.uint64(0xFFFFFFFF)
    second = np.uint64(1_000_000_000)
    below = (fraction * second + np.uint64(0xFFFFFFFF)) >> np.uint64(32)
    nanos: npt.NDArray[np.uint64] = (raw >> np.uint64(32)) * second + np.minimum(
        below, second - np.uint64(1)
    )
    return nanos


def hlc_of_micros(micros: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """The column `hlc` of microseconds since 1970, which `hlc_nanos` gives back."""
    seconds, part = np.divmod(np.maximum(micros, 0).astype(np.uint64), np.uint64(1_000_000))
    raw = (seconds << np.uint64(32)) | ((part << np.uint64(32)) // np.uint64(1_000_000))
    hlc: npt.NDArray[np.int64] = (raw ^ np.uint64(HLC_BIAS)).view(np.int64)
    return hlc


def batches_of(
    samples: Iterable[Sample],
    partitions: int,
    origin: int,
    received: int,
    stamp: Callable[[Sample], Timestamp],
) -> list[tuple[int, Any]]:
    """Samples as rows, by partition; `stamp` tells the time of those that have none.

    `received`: microseconds since 1970.
    """
    by_partition: dict[int, list[dict[str, object]]] = {}
    for sample in samples:
        key = str(sample.key_expr)
        row = _row(sample, key, origin, received, stamp)
        by_partition.setdefault(partition_of(key, partitions), []).append(row)
    return [(partition, unnumbered_batch(rows)) for partition, rows in sorted(by_partition.items())]


def unnumbered_batch(rows: list[dict[str, object]]) -> Any:
    """Rows as a batch; a row names every column but the offset."""
    arrays = []
    for field in UNNUMBERED:
        values = [row[field.name] for row in rows]
        if field.name == "key":
            arrays.append(pa.array(values, pa.string()).dictionary_encode())
        else:
            arrays.append(pa.array(values, field.type))
    return pa.RecordBatch.from_arrays(arrays, schema=UNNUMBERED)


def _row(
    sample: Sample, key: str, origin: int, received: int, stamp: Callable[[Sample], Timestamp]
) -> dict[str, object]:
    timestamp = sample.timestamp
    time = timestamp if timestamp is not None else stamp(sample)
    attachment = sample.attachment
    source = sample.source_info
    qos = sample.qos
    return {
        "key": key,
        "value": sample.content(),
        "kind": sample.kind.value,
        "encoding_id": sample.encoding_id,
        "encoding_schema": recorded_schema(sample.schema) if sample.schema else None,
        "hlc": hlc_of(time),
        "time": NTP64.as_nanos(time.get_time_as_ntp64()) // 1000,
        "stamp_id": time.id_bytes,
        "stamped": timestamp is None,
        "attachment": None if attachment is None else attachment.to_bytes(),
        "source_zid": None if source is None else bytes(source.source_id.zid),
        "source_eid": None if source is None else source.source_id.eid,
        "source_sn": None if source is None else source.source_sn,
        "priority": int(qos.priority),
        "congestion": qos.congestion_control.value,
        "express": qos.express,
        "reliable": sample.is_reliable,
        "received": received,
        "origin": origin,
    }
