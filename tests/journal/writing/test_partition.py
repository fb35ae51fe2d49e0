"""Batches become blocks of good size."""

from __future__ import annotations

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.journal.rows import rows
from zenlake.journal.writing.partition import LARGE_BYTES, SMALL_BYTES, WHOLE_BYTES, runs

SIZES = st.sampled_from([0, 100, WHOLE_BYTES, WHOLE_BYTES + 1, SMALL_BYTES, 3 * LARGE_BYTES])


@given(st.lists(st.tuples(st.integers(0, 30), SIZES), max_size=8))
@settings(deadline=None)
def test_no_row_is_lost_or_moved(given: list[tuple[int, int]]) -> None:
    batches = [
        (rows(["k"] * count, start=100 * number), size)
        for number, (count, size) in enumerate(given)
    ]
    wanted = [value for batch, _ in batches for value in batch.column("value").to_pylist()]
    blocks = list(runs(batches))
    assert all(len(block) for block in blocks)
    assert [v for block in blocks for v in block.column("value").to_pylist()] == wanted


def test_a_large_batch_is_a_block_of_its_own_and_is_not_copied() -> None:
    small, large = rows(["a", "b"]), rows(["c"], start=2)
    blocks = list(runs([(small, 100), (small, 100), (large, WHOLE_BYTES + 1), (small, 100)]))
    assert [len(block) for block in blocks] == [4, 1, 2]
    assert blocks[1] is large
    assert isinstance(blocks[0], pa.RecordBatch)
