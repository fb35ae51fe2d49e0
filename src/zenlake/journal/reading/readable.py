"""What every journal can be asked for, wherever it lies: rows from one offset to another."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Self

import pyarrow as pa

from zenlake.errors import JournalGap, LocalError
from zenlake.journal.disk.segment import Segment
from zenlake.journal.disk.watermark import Watermark
from zenlake.keys import IntoKeyExpr

__all__ = ["Keys", "Offsets", "Range", "Readable"]

Offsets = Mapping[int, int] | int | None
Keys = IntoKeyExpr | Iterable[IntoKeyExpr] | None
#: Partition, first offset (None: the first that is kept), and the offset after the last.
Range = tuple[int, int | None, int]


class Readable(ABC):
    """A journal to read from. What a scan asks for beside offsets depends on where it lies."""

    def __init__(self, where: str, id: str, name: str, partitions: int) -> None:
        """`where`: how errors call it."""
        self._where = where
        #: What distinguishes this journal from all others.
        self.id = id
        #: What people call it.
        self.name = name
        #: How many partitions it has.
        self.partitions = partitions
        self._closed = threading.Event()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End every `follow`; what they gave stays valid."""
        self._closed.set()

    @abstractmethod
    def watermark(self) -> Watermark:
        """How far the journal is durable now."""

    def earliest(self) -> tuple[int, ...]:
        """The first offset of each partition that is still kept."""
        kept = self._kept(range(self.partitions))
        return tuple(kept[number] for number in range(self.partitions))

    @abstractmethod
    def segments(self, partition: int) -> list[Segment]:
        """What a partition consists of; the last may still be growing."""

    @abstractmethod
    def _kept(self, partitions: Iterable[int]) -> dict[int, int]:
        """The first offset of some partitions that is still kept."""

    def _checked(self, partition: int) -> int:
        if not 0 <= partition < self.partitions:
            raise LocalError(
                f"{self._where} has no partition {partition}; it has 0 to {self.partitions - 1}"
            )
        return partition

    def _check_kept(self, partition: int, first: int, earliest: int) -> None:
        if first < earliest:
            raise JournalGap(
                f"offset {first} of partition {partition} is no longer kept in {self._where}; it "
                f"begins with {earliest}",
                partition,
                earliest,
            )

    def _places(self, start: Offsets, partition: int | None) -> dict[int, int | None]:
        """Where to begin in each partition; `JournalGap` if that is no longer kept."""
        numbers = range(self.partitions) if partition is None else (self._checked(partition),)
        places = {number: _offset(start, number) for number in numbers}
        named = {number: first for number, first in places.items() if first is not None}
        if named:
            kept = self._kept(named)
            for number, first in named.items():
                self._check_kept(number, first, kept[number])
        return places

    def _ranges(self, start: Offsets, end: Offsets, partition: int | None) -> list[Range]:
        """What lies between two offsets, up to the durable watermark."""
        durable = self.watermark().offsets
        ranges: list[Range] = []
        for number, first in self._places(start, partition).items():
            last = _offset(end, number)
            until = durable[number] if last is None else min(last, durable[number])
            ranges.append((number, first, until))
        return ranges

    def _following(
        self,
        places: dict[int, int | None],
        read: Callable[[list[Range]], Iterator[pa.RecordBatch]],
        pause: Callable[[], object],
    ) -> Iterator[pa.RecordBatch]:
        """What is there from `places` on and what comes, with a pause when that is nothing."""
        while not self._closed.is_set():
            durable = self.watermark().offsets
            behind = {
                number: first for number, first in places.items() if (first or 0) < durable[number]
            }
            for number, first in behind.items():
                for batch in read([(number, first, durable[number])]):
                    yield batch
                    if self._closed.is_set():
                        return
                places[number] = durable[number]
            if not behind:
                pause()


def _offset(offsets: Offsets, partition: int) -> int | None:
    if offsets is None or isinstance(offsets, int):
        return offsets
    return offsets.get(partition)
