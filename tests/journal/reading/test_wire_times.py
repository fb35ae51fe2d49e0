"""Times of many rows as the wire has them."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from zenlake.journal.reading.wire_times import TIME_BYTES, are_long, wire_times
from zenlake.wire.cursor import Reader, Writer


@given(st.lists(st.integers(0, (1 << 64) - 1)))
def test_times_are_read_as_they_were_and_long_ones_written_as_messages_do(times: list[int]) -> None:
    raw = np.array(times, np.uint64)
    written = wire_times(raw)
    w = Writer()
    for n, time in enumerate(times):
        w.ntp64(time >> 32, time & 0xFFFF_FFFF)
        reader = Reader(written[n * TIME_BYTES : (n + 1) * TIME_BYTES])
        assert reader.ntp64() == (time >> 32, time & 0xFFFF_FFFF)
        assert reader.pos == TIME_BYTES
    assert are_long(raw) == (w.getvalue() == written)
