"""The plain way from the wire to rows: a message, a sample, a dictionary, a batch.

Slow, and easy to see through. `zenlake.journal.ingest.columns` must give the same rows for the same
bytes, and the tests hold both against each other.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable

import pyarrow as pa

from zenlake.clock import Hlc, Timestamp
from zenlake.journal.ingest.rows import batches_of
from zenlake.journal.schema import HEARD
from zenlake.node.entities import SampleSink
from zenlake.node.sample import Sample

__all__ = ["PlainSink"]


class PlainSink(SampleSink):
    """A subscriber that keeps samples until they are taken as batches; on one thread."""

    def __init__(
        self, hlc: Hlc, partitions: int = 1, wall: Callable[[], int] = time.time_ns
    ) -> None:
        """`hlc` gives times to samples that have none; `wall`: nanoseconds since 1970."""
        self.hlc = hlc
        self.partitions = partitions
        self.wall = wall
        self.samples: list[Sample] = []
        #: Of those among them that came without a time.
        self.stamps: deque[Timestamp] = deque()

    def push(self, sample: Sample) -> None:
        """One sample; the time that it lacks is that of now."""
        self.samples.append(sample)
        if sample.timestamp is None:
            self.stamps.append(self.hlc.new_timestamp(self.wall()))

    def take(self) -> list[tuple[int, pa.RecordBatch]]:
        """All rows that came, by partition."""
        samples, self.samples = self.samples, []
        received = self.wall() // 1000
        return batches_of(
            samples, self.partitions, HEARD, received, lambda _: self.stamps.popleft()
        )
