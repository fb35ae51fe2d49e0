"""Rows within a range of time, to the nanosecond."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from zenlake.journal.ingest.rows import hlc_nanos

if TYPE_CHECKING:
    from zenlake.keys import ResolvedRange

__all__ = ["inside", "micros"]


def micros(range: ResolvedRange) -> tuple[int | None, int | None]:
    """Microseconds that hold the range, and perhaps a little more."""
    start, end = range.start_ns, range.end_ns
    return (
        None if start is None else start // 1000 - 1,
        None if end is None else end // 1000 + 2,
    )


def inside(batch: Any, range: ResolvedRange) -> Any:
    """The rows whose time lies in the range, to the nanosecond."""
    nanos = hlc_nanos(batch.column("hlc").to_numpy(zero_copy_only=False))
    chosen = np.ones(len(nanos), np.bool_)
    start, end = range.start_ns, range.end_ns
    if start is not None:
        low = np.uint64(max(0, start))
        chosen &= nanos >= low if range.start_inclusive or start < 0 else nanos > low
    if end is not None:
        if end < 0:
            return batch.slice(0, 0)
        high = np.uint64(end)
        chosen &= nanos <= high if range.end_inclusive else nanos < high
    return batch if chosen.all() else batch.filter(pa.array(chosen))
