"""Samples into a storage's contents: the path that every put takes."""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock
from typing import Final, final

from mypy_extensions import i64

from zenlake.newest.contents import Contents
from zenlake.newest.value import Value
from zenlake.node.sample import Sample

__all__ = ["Intake", "StorageCounts"]

#: From this second on (in 2038) a time does not fit into a word with a sign.
_SIGNED: Final = 1 << 31


@final
class StorageCounts:
    """What happened since a storage was opened."""

    __slots__ = (
        "deletes", "failures", "outside", "puts", "queries", "replies", "written",
    )  # fmt: skip

    def __init__(self) -> None:
        """Nothing yet."""
        self.puts: int = 0
        self.deletes: int = 0
        self.queries: int = 0
        self.replies: int = 0
        #: Samples that were not stored: their key is not below `strip_prefix`.
        self.outside: int = 0
        #: Entries and samples that the volume has taken.
        self.written: int = 0
        #: Writes that the volume refused; they are tried again.
        self.failures: int = 0


@final
class Intake:
    """Takes samples into the contents of a storage, under its lock."""

    __slots__ = ("_contents", "_counts", "_lock", "_tell", "_unstamped", "acknowledging", "idle")

    def __init__(
        self,
        contents: Contents,
        counts: StorageCounts,
        lock: Lock,
        tell: Callable[[], None],
        unstamped: Callable[[Sample], object],
    ) -> None:
        """For the contents that a lock guards.

        Args:
            contents: What the samples go into.
            counts: Where they are counted.
            lock: Guards the contents.
            tell: Called with the lock held when the writer waits for a change.
            unstamped: Called for samples without a timestamp, which need one first.
        """
        self._contents: Contents = contents
        self._counts: StorageCounts = counts
        self._lock: Lock = lock
        self._tell: Callable[[], None] = tell
        self._unstamped: Callable[[Sample], object] = unstamped
        #: Whether the writer sleeps until there is something to write.
        self.idle: bool = False
        #: How many acknowledged puts wait to be heard.
        self.acknowledging: int = 0

    def heard(self, samples: list[Sample]) -> None:
        """Take samples in; the lock is taken once for all of them."""
        lock = self._lock
        lock.acquire()
        try:
            for sample in samples:
                stamp_id = sample.stamp_id
                if stamp_id:
                    self._take(sample, stamp_id)
                    continue
                lock.release()
                try:
                    self._unstamped(sample)
                finally:
                    lock.acquire()
            if self.idle or self.acknowledging:
                self._tell()
        finally:
            lock.release()

    def _take(self, sample: Sample, stamp_id: bytes) -> None:
        # Its parts as they were read: nothing is made that is thrown away again.
        key = sample.key.text
        time = _ntp64(sample.stamp_seconds, sample.stamp_fraction)
        if not sample.is_put:
            self._counts.deletes += 1
            self._contents.delete(key, time, stamp_id)
            return
        attachment: bytes | None = None
        if sample.push is not None:
            attached = sample.attachment
            if attached is not None:
                attachment = attached.to_bytes()
        self._counts.puts += 1
        value = Value(sample.content(), sample.encoding_id, sample.schema, attachment)
        self._contents.put(key, time, stamp_id, value)


def _ntp64(seconds: int, fraction: int) -> int:
    """Seconds and their fraction as one number."""
    if seconds < _SIGNED:
        # In one machine word, and not by integers of any size, which cost ten times as much.
        word: i64 = seconds
        return word << 32 | i64(fraction)
    return seconds << 32 | fraction
