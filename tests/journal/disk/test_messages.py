"""Messages in pieces are the bytes that pyarrow writes."""

from __future__ import annotations

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import ipc

from tests.journal.rows import rows
from zenlake.journal.disk.messages import CODED, ArrowMessages, metadata_length


def coded(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Rows as the write-ahead file has them."""
    columns = batch.columns
    columns[0] = columns[0].indices
    offsets = pa.array(range(len(batch)), pa.int64())
    return pa.RecordBatch.from_arrays([offsets, *columns], schema=CODED)


@given(
    sizes=st.lists(st.lists(st.integers(0, 9000), min_size=1, max_size=40), min_size=1, max_size=3),
    cut=st.tuples(st.integers(0, 12), st.integers(0, 12)),
)
def test_the_pieces_together_are_the_message(sizes: list[list[int]], cut: tuple[int, int]) -> None:
    made = ArrowMessages()
    for some in sizes:
        batch = coded(rows(["a", "b"] * len(some), values=[bytes(n) for n in some * 2]))
        batch = batch.slice(cut[0], max(1, len(batch) - sum(cut)))
        if not len(batch):
            continue
        parts = made.message(batch)
        whole = b"".join(bytes(part) for part in parts)
        assert whole == bytes(batch.serialize())
        assert metadata_length(parts[0]) == metadata_length(whole)
        assert ipc.read_record_batch(pa.py_buffer(whole), CODED).equals(batch)


def test_large_columns_are_not_copied() -> None:
    batch = coded(rows(["a"], values=[b"x" * 100_000]))
    values = batch.column("value").buffers()[2]
    parts = ArrowMessages().message(batch)
    assert [part.address for part in parts if not isinstance(part, bytes)] == [values.address]
