"""What a recorder hears: a subscriber for each key expression, and each row once."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from zenlake.journal.ingest.columns import ColumnSink, ColumnSubscriber, declare_columns
from zenlake.keys import intersects

if TYPE_CHECKING:
    from zenlake.api.session import Session


class HeardColumns:
    """The columnar subscribers of some key expressions, which may intersect.

    What came waits in the sink of its expression until `run` or `take_all` hands it on, as batches
    of one partition each.
    """

    def __init__(
        self, exprs: Sequence[str], partitions: int, hand_on: Callable[[int, Any], None]
    ) -> None:
        """`hand_on` is given (partition, rows); nothing is heard before `declare`."""
        self._exprs = exprs
        self._hand_on = hand_on
        self._sinks = [ColumnSink(partitions) for _ in exprs]
        #: Held while a sink's rows are taken and handed on.
        self._taking = [threading.Lock() for _ in exprs]
        self._subscribers: list[ColumnSubscriber] = []

    def declare(self, session: Session, number: int) -> None:
        """Subscribe to one of the expressions."""
        self._subscribers.append(declare_columns(session, self._exprs[number], self._sinks[number]))

    def run(self, number: int) -> None:
        """Hand on what comes for one of the expressions, until `close`."""
        while self._sinks[number].wait():
            self._take(number)
        self._take(number)

    def take_all(self) -> None:
        """Hand on what came up to now."""
        for number in range(len(self._sinks)):
            self._take(number)

    def _take(self, number: int) -> None:
        with self._taking[number]:
            for partition, heard in self._sinks[number].take():
                batch = self._own(heard, number)
                if batch.num_rows:
                    self._hand_on(partition, batch)

    def _own(self, batch: Any, number: int) -> Any:
        """The rows that no expression before this one has heard too."""
        before = [expr for expr in self._exprs[:number] if intersects(expr, self._exprs[number])]
        if not before:
            return batch
        key = batch.column("key")
        other = np.array(
            [any(intersects(e, name) for e in before) for name in key.dictionary.to_pylist()]
        )
        if not other.any():
            return batch
        return batch.filter(pa.array(~other[key.indices.to_numpy(zero_copy_only=False)]))

    @property
    def dropped(self) -> int:
        """How many samples came faster than they were taken, and could not be kept."""
        return sum([sink.dropped for sink in self._sinks])

    def abandon(self) -> int:
        """Let go of what was not handed on; how many rows."""
        return sum(batch.num_rows for sink in self._sinks for _, batch in sink.take())

    def close(self) -> None:
        """Hear no more; `run` ends when it has handed on what came."""
        for subscriber in self._subscribers:
            subscriber.undeclare()
        for sink in self._sinks:
            sink.close()
