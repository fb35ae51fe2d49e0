"""Which ranges of a journal a step reads, and which tables they are for.

`samples` never waits for another table: it always gets the next share. Tables that are about as
far get theirs from the same read. Those that are far behind (configured later, or stopped for a
while) catch up in a range of their own, a share a step. Shares and tasks are bounded by rows and by
bytes: a point cloud of four megabytes is no more than one row, and neither is a number.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, final

from zenlake.journal.reading.sizes import BlockSize

__all__ = ["LEADER", "JournalRange", "RowSizes", "cut", "ranges"]

LEADER: Final = "samples"

LEAST_BYTES: Final = 32 * 1024 * 1024
"""Fewer bytes than these are not worth another task."""


@final
class RowSizes:
    """How many bytes rows of a partition have, as far as the blocks tell that they are in.

    Rows of one block are taken to be equally large; rows of which nothing is known have none.
    """

    def __init__(self, blocks: Sequence[BlockSize] = ()) -> None:
        """Blocks in the order of their offsets."""
        self._blocks = list(blocks)
        self._firsts = [one.first for one in blocks]
        self._before = [0]
        for one in blocks:
            self._before.append(self._before[-1] + one.bytes)

    def bytes(self, first: int, end: int) -> int:
        """Of the rows from `first` on, up to `end` (exclusive)."""
        return self._up_to(end) - self._up_to(first)

    def reach(self, first: int, end: int, most: int) -> int:
        """How far one gets from `first` towards `end` with so many bytes; one row at least."""
        limit = self._up_to(first) + most
        rows = range(first + 1, end + 1)
        fits = bisect_right(rows, limit, key=self._up_to)
        return min(end, first + max(1, fits))

    def _up_to(self, offset: int) -> int:
        at = bisect_left(self._firsts, offset) - 1
        if at < 0:
            return 0
        block = self._blocks[at]
        rows = min(offset, block.end) - block.first
        # Rounded up: what was taken together is never more than it was thought to be.
        return self._before[at] - (-block.bytes * rows // (block.end - block.first))


UNKNOWN: Final = RowSizes()


@dataclass(frozen=True, slots=True)
class JournalRange:
    """A range of one partition of a journal, up to `end`."""

    partition: int
    end: int
    starts: Mapping[str, int]
    """For each table, by name, the first offset that it has not."""

    @property
    def first(self) -> int:
        """The first offset that some table has not."""
        return min(self.starts.values())

    @property
    def rows(self) -> int:
        """How many rows are read."""
        return self.end - self.first


def ranges(
    partition: int,
    starts: Mapping[str, int],
    durable: int,
    share: int,
    sizes: RowSizes = UNKNOWN,
    share_bytes: int = 1 << 62,
) -> list[JournalRange]:
    """The ranges of one partition that a step reads; each table is in one of them at most.

    `starts`: the first offset that each table lacks. `share`, `share_bytes`: how much a range adds
    to the table that is ahead in it, one row at least.
    """
    if not starts:
        return []
    lead = starts.get(LEADER, min(starts.values()))
    near = {name: start for name, start in starts.items() if start > lead - share}
    far = {name: start for name, start in starts.items() if name not in near}

    def end(start: int) -> int:
        return sizes.reach(start, min(durable, start + share), share_bytes)

    planned = [_range(partition, near, end(lead))]
    if far:
        planned.append(_range(partition, far, end(min(far.values()))))
    return [one for one in planned if one.starts]


def _range(partition: int, starts: Mapping[str, int], end: int) -> JournalRange:
    return JournalRange(partition, end, {name: at for name, at in starts.items() if at < end})


def cut(
    plan: Sequence[JournalRange],
    *,
    parallel: int,
    least: int,
    most: int,
    sizes: Mapping[int, RowSizes] | None = None,
    most_bytes: int = 1 << 62,
) -> list[tuple[JournalRange, ...]]:
    """The stretches of each task: about as many tasks as run at once, none too large, few if the
    plan is small.

    `least` and `most` are rows of a task, `most_bytes` what its rows have, unless it is one row.
    `sizes`: of the rows of each partition.
    """
    by_partition = sizes or {}
    rows = sum(one.rows for one in plan)
    size = sum(by_partition.get(one.partition, UNKNOWN).bytes(one.first, one.end) for one in plan)
    each = min(max(least, -(-rows // parallel)), most)
    # Somewhat more than its share: else the last rows, if they are larger, are one task too many.
    each_bytes = min(max(LEAST_BYTES, -(-size // parallel) * 5 // 4), most_bytes)
    tasks: list[list[JournalRange]] = [[]]
    room, room_bytes = each, each_bytes
    for one in plan:
        known = by_partition.get(one.partition, UNKNOWN)
        start = one.first
        while start < one.end:
            if tasks[-1] and (not room or known.bytes(start, start + 1) > room_bytes):
                tasks.append([])
                room, room_bytes = each, each_bytes
            stop = known.reach(start, min(one.end, start + room), room_bytes)
            starts = {
                name: max(at, start) for name, at in one.starts.items() if max(at, start) < stop
            }
            tasks[-1].append(JournalRange(one.partition, stop, starts))
            room -= stop - start
            room_bytes -= known.bytes(start, stop)
            start = stop
    return [tuple(stretches) for stretches in tasks]
