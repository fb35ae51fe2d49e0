"""Times of the future in recorded samples, bounded as routers bound them.

A router replaces a timestamp that is too far ahead of its clock, or drops its sample. Where no
router stands between a publisher and a recorder the recorder does so itself: a time of the year
2100 would stay the latest for ever, and a deletion of that time would hide all that comes later.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

from zenlake.clock import NTP64
from zenlake.clock.hlc import MAX_AHEAD_NS
from zenlake.journal.schema import UNNUMBERED
from zenlake.recorded.time_bounds import HLC_BIAS, last_of

if TYPE_CHECKING:
    from zenlake.engine.runtime import Runtime

__all__ = ["FutureTimes"]

_HLC: Final = UNNUMBERED.get_field_index("hlc")


class FutureTimes:
    """Checks the times of rows against the clock, and counts what it did not believe."""

    def __init__(self, runtime: Runtime) -> None:
        """Replaces or drops as the configuration of the node says."""
        self._runtime = runtime
        self._id = bytes(runtime.hlc.id)
        self._drop = runtime.node.settings.drop_future_timestamp
        self.replaced = 0
        self.dropped = 0

    def believed(self, batch: Any) -> Any:
        """The rows with times that can be true; nearly always the very batch."""
        times = batch.column(_HLC).to_numpy(zero_copy_only=False)
        limit = latest_believed(time.time_ns())
        if not len(times) or int(times.max()) <= limit:
            return batch
        # Where somebody has set this machine's date back, its own clock is ahead of it.
        far = times > max(limit, self._told())
        count = int(np.count_nonzero(far))
        if not count:
            return batch
        if self._drop:
            self.dropped += count
            return batch.filter(pa.array(~far))
        self.replaced += count
        return self._replaced(batch, np.flatnonzero(far).tolist())

    def _told(self) -> int:
        """The latest time that this node has told or believed, as the column `hlc` has it."""
        with self._runtime.locked():
            last = self._runtime.hlc.last
        return (last.seconds << 32 | last.fraction) - HLC_BIAS

    def _replaced(self, batch: Any, places: list[int]) -> Any:
        """Give rows the time at which they came, so that what came after them is later."""
        names = ("hlc", "time", "stamp_id", "stamped")
        columns = {name: batch.column(name).to_pylist() for name in names}
        received = batch.column("received").cast(pa.int64()).to_pylist()
        for count, place in enumerate(places):
            raw = last_of(received[place] * 1000) + count
            columns["hlc"][place] = raw - HLC_BIAS
            columns["time"][place] = NTP64.from_raw(raw).as_nanos() // 1000
            columns["stamp_id"][place] = self._id
            columns["stamped"][place] = True
        for name, values in columns.items():
            at = batch.schema.get_field_index(name)
            fresh_column = pa.array(values, batch.schema.field(at).type)
            batch = batch.set_column(at, batch.schema.field(at), fresh_column)
        return batch


def latest_believed(wall: int) -> int:
    """The greatest time that is believed at a moment, as the column `hlc` has it.

    `wall`: the clock, in nanoseconds since 1970.
    """
    return last_of(wall + MAX_AHEAD_NS) - HLC_BIAS
