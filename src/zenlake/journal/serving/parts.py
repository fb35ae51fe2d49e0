"""Rows on their way: cut to a size that a reply can carry, as Arrow IPC streams."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import pyarrow as pa

from zenlake.errors import DecodeError

__all__ = ["ARROW", "batches_in", "chunks", "stream_of"]

ARROW: Final = "application/vnd.apache.arrow.stream"


def chunks(batch: Any, size: int) -> Iterator[Any]:
    """A batch in parts of about `size` bytes; a row is never cut."""
    count = batch.num_rows
    if not count:
        return
    rows = max(1, count * size // max(batch.nbytes, 1))
    for start in range(0, count, rows):
        yield batch.slice(start, rows)


def stream_of(batch: Any) -> bytes:
    """A batch as an Arrow IPC stream; of a slice, only its own rows."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    data: bytes = sink.getvalue().to_pybytes()
    return data


def batches_in(data: bytes) -> list[Any]:
    """The batches that a stream holds."""
    try:
        with pa.ipc.open_stream(data) as reader:
            return list(reader)
    except (pa.ArrowInvalid, OSError) as error:
        raise DecodeError(f"{len(data)} bytes that are no Arrow stream: {error}") from error
