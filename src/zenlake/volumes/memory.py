"""A volume that forgets: values live in the storage's own index, history in lists."""

from __future__ import annotations

import bisect
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import ClassVar

from zenlake.newest import Batch, Entry, WideUpdate
from zenlake.volumes.contract import Capability, Volume

__all__ = ["Memory"]

#: What a sample costs besides its payload, about.
SAMPLE_COST = 128


class Memory(Volume):
    """Keeps history in memory; the newest values need no volume at all."""

    CAPABILITY: ClassVar[Capability] = Capability("volatile", "all")

    def __init__(self, storage: str, options: Mapping[str, object]) -> None:
        """Empty, as always."""
        super().__init__(storage, options)
        self._entries: dict[str, Entry] = {}
        self._samples: dict[str, list[Entry]] = {}
        self._size = 0
        self._lock = threading.Lock()

    def entries(self) -> Iterable[Entry]:
        """None: it begins empty."""
        return list(self._entries.values())

    def wide(self) -> Iterable[WideUpdate]:
        """None: it begins empty."""
        return ()

    def read(self, keys: Sequence[str]) -> list[Entry | None]:
        """The entries of some keys."""
        with self._lock:
            return [self._entries.get(key) for key in keys]

    def write(self, batch: Batch) -> None:
        """Take a batch."""
        with self._lock:
            for entry in batch.entries:
                value, held = entry.value, self._entries.get(entry.key)
                if value is not None and value.payload is None and held is not None:
                    entry = entry._replace(value=held.value)
                self._entries[entry.key] = entry
            for key in batch.removed:
                self._entries.pop(key, None)
            for sample in batch.samples:
                # Samples mostly come in the order of their time, and some come twice.
                samples = self._samples.setdefault(sample.key, [])
                at = bisect.bisect_left(samples, _moment(sample), key=_moment)
                if at == len(samples) or _moment(samples[at]) != _moment(sample):
                    samples.insert(at, sample)
                    self._size += _weight(sample)

    def count(self) -> int:
        """How many keys have a value."""
        with self._lock:
            return sum(entry.value is not None for entry in self._entries.values())

    def history(
        self, keys: Sequence[str], start: int | None, end: int | None, limit: int | None
    ) -> Iterator[Entry]:
        """Every sample of some keys in a range of time."""
        for key in keys:
            with self._lock:
                samples = [
                    sample
                    for sample in self._samples.get(key, ())
                    if (start is None or sample.time >= start)
                    and (end is None or sample.time <= end)
                ]
            yield from samples[:limit]

    def history_keys(self) -> Iterable[str]:
        """The keys that have samples."""
        with self._lock:
            return list(self._samples)

    def trim(self, before: int | None, count: int | None, size: int | None) -> int:
        """Drop what is too old or too much; the newest sample of a key stays."""
        dropped = 0
        with self._lock:
            for samples in self._samples.values():
                first = 0 if count is None else max(0, len(samples) - count)
                if before is not None:
                    first = max(first, bisect.bisect_left(samples, before, key=lambda s: s.time))
                dropped += self._drop(samples, min(first, len(samples) - 1))
            if size is not None and self._size > size:
                dropped += self._shrink(size)
        return dropped

    def _shrink(self, size: int) -> int:
        """Drop the oldest samples of all keys until the rest fits."""
        oldest = sorted(
            (sample for samples in self._samples.values() for sample in samples[:-1]), key=_moment
        )
        dropped = 0
        for sample in oldest:
            if self._size <= size:
                break
            samples = self._samples[sample.key]
            dropped += self._drop(samples, 1)
        return dropped

    def _drop(self, samples: list[Entry], number: int) -> int:
        self._size -= sum(_weight(sample) for sample in samples[:number])
        del samples[:number]
        return number


def _moment(entry: Entry) -> tuple[int, bytes]:
    return entry.time, entry.id


def _weight(entry: Entry) -> int:
    value = entry.value
    return SAMPLE_COST + (0 if value is None or value.payload is None else len(value.payload))
