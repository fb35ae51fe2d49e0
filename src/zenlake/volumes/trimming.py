"""Which samples of a history must go, for volumes that can list samples in the order of time.

A volume tells of samples as they are written, and `trim` asks it for as few as it can: keys that
have changed since the last time, and samples that became too old since then.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from typing import NamedTuple

__all__ = ["Placed", "Trimming"]


class Placed(NamedTuple):
    """A sample of the history, without what it says."""

    time: int
    id: bytes
    key: str
    size: int


class Trimming(ABC):
    """What `Volume.trim` does, over a volume's own lists of samples."""

    def __init__(self) -> None:
        """Nothing is known yet: the first `trim` looks at everything."""
        #: Keys with new samples since the last trim; None means that it may be any key.
        self._touched: set[str] | None = None
        #: Bytes of all samples, once they were added up.
        self._total: int | None = None
        #: Samples older than this were dropped, but for the newest of their keys.
        self._dropped_before = 0
        #: How many samples of a key were kept last time.
        self._count: int | None = None

    @abstractmethod
    def _sample_keys(self) -> Iterable[str]:
        """The keys that have samples."""

    @abstractmethod
    def _in_order(self, since: int) -> Iterator[Placed]:
        """The samples of all keys from a time on, the oldest first."""

    @abstractmethod
    def _of_key(self, key: str, before: int | None, beyond: int) -> list[Placed]:
        """The samples of a key but its `beyond` newest, the oldest first; only those `before`."""

    @abstractmethod
    def _drop(self, samples: list[Placed]) -> None:
        """Remove samples."""

    def _noted(self, key: str, size: int) -> None:
        """A sample was written; with size 0 it was there already."""
        if self._touched is not None:
            self._touched.add(key)
        if self._total is not None:
            self._total += size

    def trimmed(self, before: int | None, count: int | None, size: int | None) -> int:
        """Drop what is too old or too much; the newest sample of a key stays."""
        if count != self._count:
            self._touched, self._count = None, count
        keys = self._sample_keys() if self._touched is None else self._touched
        dropped = 0
        for key in list(keys):
            gone: list[Placed] = []
            if count is not None:
                gone = self._of_key(key, None, count)
            if before is not None and self._touched is not None:
                gone += [one for one in self._of_key(key, before, 1) if one not in gone]
            dropped += self._gone(gone)
        self._touched = set()
        if before is not None:
            dropped += self._age(before)
        if size is not None:
            dropped += self._shrink(size)
        return dropped

    def _age(self, before: int) -> int:
        gone: list[Placed] = []
        for one in self._in_order(self._dropped_before):
            if one.time >= before:
                break
            gone.append(one)
        self._dropped_before = before
        return self._gone(self._without_newest(gone))

    def _shrink(self, size: int) -> int:
        if self._total is None:
            self._total = sum(one.size for one in self._in_order(0))
        if self._total <= size:
            return 0
        over = self._total - size
        gone: list[Placed] = []
        for one in self._in_order(0):
            if over <= 0:
                break
            if self._without_newest([one]):
                gone.append(one)
                over -= one.size
        return self._gone(gone)

    def _without_newest(self, samples: list[Placed]) -> list[Placed]:
        older: dict[str, set[tuple[int, bytes]]] = {}
        for one in samples:
            if one.key not in older:
                newest = self._of_key(one.key, None, 1)
                older[one.key] = {(sample.time, sample.id) for sample in newest}
        return [one for one in samples if (one.time, one.id) in older[one.key]]

    def _gone(self, samples: list[Placed]) -> int:
        if samples:
            self._drop(samples)
            if self._total is not None:
                self._total -= sum(one.size for one in samples)
        return len(samples)
