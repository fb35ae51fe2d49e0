"""A ring of rows in memory: what was heard lately, of which only what lies around events is kept.

    ring = Ring(before=30_000_000, after=10_000_000)       # microseconds
    ring.enter(0, batch)           # gives the rows to keep; the others wait in the ring
    ring.event(moment)             # gives what was heard before the event

Times are those at which rows were received, in microseconds since 1970; nothing here looks at a
clock. Rows leave the ring when they are too old for any event that may still be told, or, earlier,
when they are too many bytes; both are counted.
"""

from __future__ import annotations

from collections import deque
from typing import Any, Final, NamedTuple, final

import numpy as np
import pyarrow as pa

__all__ = ["LATE", "Ring"]

LATE: Final = 1_000_000
"""How much later than the rows around it an event may be told, in microseconds."""

MOST_WINDOWS: Final = 1024


class _Held(NamedTuple):
    """Rows that wait, and the times between which they were received."""

    partition: int
    batch: Any
    first: int
    last: int
    size: int


@final
class Ring:
    """Rows that wait for an event; one thread at a time."""

    def __init__(self, before: int, after: int, most_bytes: int = 256 << 20) -> None:
        """Keep what was received so many microseconds before an event, and after it."""
        self._before = before
        self._after = after
        self._most = most_bytes
        self._held: deque[_Held] = deque()
        #: Stretches of time to keep, in their order, none of which touches the next.
        self._windows: list[tuple[int, int]] = []
        self._newest = 0
        self.bytes = 0
        self.rows = 0
        self.events = 0
        #: Rows that were given to be kept; that were too old for any event; that did not fit.
        self.kept = 0
        self.passed = 0
        self.overflowed = 0

    @property
    def counts(self) -> dict[str, int]:
        """How it goes, for JSON."""
        names = ("events", "kept", "rows", "bytes", "passed", "overflowed")
        return {name: int(getattr(self, name)) for name in names}

    def enter(self, partition: int, batch: Any) -> list[tuple[int, Any]]:
        """Rows that were just heard; gives those that lie around an event already."""
        wanted, rest = self._split(batch)
        if rest.num_rows:
            times = _times(rest)
            size = _bytes(rest)
            self._held.append(_Held(partition, rest, int(times.min()), int(times.max()), size))
            self.bytes += size
            self.rows += rest.num_rows
        if batch.num_rows:
            self._newest = max(self._newest, int(_times(batch).max()))
        self._forget()
        self.kept += wanted.num_rows
        return [(partition, wanted)] if wanted.num_rows else []

    def event(self, moment: int) -> list[tuple[int, Any]]:
        """Something happened; gives the rows around it that wait, in their order."""
        self.events += 1
        self._newest = max(self._newest, moment)
        self._want(moment - self._before, moment + self._after)
        given: list[tuple[int, Any]] = []
        held, self._held = self._held, deque()
        self.bytes = self.rows = 0
        for one in held:
            wanted, rest = self._split(one.batch)
            if wanted.num_rows:
                given.append((one.partition, wanted))
                self.kept += wanted.num_rows
            if rest.num_rows:
                size = one.size if rest is one.batch else _bytes(rest)
                self._held.append(_Held(one.partition, rest, one.first, one.last, size))
                self.bytes += size
                self.rows += rest.num_rows
        self._forget()
        return given

    def close(self) -> None:
        """No event comes any more: what waits is let go."""
        while self._held:
            self.passed += self._drop()

    def _want(self, start: int, end: int) -> None:
        """Keep this stretch, too."""
        apart = []
        for low, high in self._windows:
            if high < start or low > end:
                apart.append((low, high))
            else:
                start, end = min(start, low), max(end, high)
        self._windows = sorted([*apart, (start, end)])[-MOST_WINDOWS:]

    def _split(self, batch: Any) -> tuple[Any, Any]:
        """The rows in a stretch to keep, and the others."""
        if not self._windows or not batch.num_rows:
            return batch.slice(0, 0), batch
        times = _times(batch)
        inside = np.zeros(len(times), np.bool_)
        for low, high in self._windows:
            inside |= (times >= low) & (times <= high)
        if not inside.any():
            return batch.slice(0, 0), batch
        if inside.all():
            return batch, batch.slice(0, 0)
        return batch.filter(pa.array(inside)), batch.filter(pa.array(~inside))

    def _forget(self) -> None:
        old = self._newest - self._before - LATE
        while self._held and self._held[0].last < old:
            self.passed += self._drop()
        while self._held and self.bytes > self._most:
            self.overflowed += self._drop()
        # A row may come a little late, and none comes so late.
        self._windows = [one for one in self._windows if one[1] >= old - self._before]

    def _drop(self) -> int:
        one = self._held.popleft()
        self.bytes -= one.size
        self.rows -= one.batch.num_rows
        return int(one.batch.num_rows)


def _times(batch: Any) -> Any:
    return batch.column("received").cast(pa.int64()).to_numpy(zero_copy_only=False)


def _bytes(batch: Any) -> int:
    """What rows weigh in memory; a slice weighs what it shows."""
    return int(batch.nbytes)
