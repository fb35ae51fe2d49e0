"""What is kept, and what is let go: whole segments, the oldest first."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass

from zenlake.errors import LocalError
from zenlake.journal.disk.files import JournalFiles
from zenlake.journal.disk.remote import RemoteFiles, is_uri, parted
from zenlake.journal.disk.segment import Segment
from zenlake.journal.writing.partition import Partition

__all__ = ["JournalRetention", "holds_back", "sealing_times"]

_log = logging.getLogger("zenlake.journal")


@dataclass(frozen=True, slots=True)
class JournalRetention:
    """At most this many bytes in all partitions together, and none sealed longer ago than this.

    What a reader has not read yet is kept beyond that, up to `hold` bytes more. The age of a
    segment is the time since it was sealed, by the clock of this machine: the times in its rows
    were chosen by strangers. `zenlake.clock.age_clock` decides how far that clock is believed.
    """

    bytes: int | None = None
    age: float | None = None
    #: None: nothing is kept for readers.
    hold: int | None = None

    def __post_init__(self) -> None:
        if (self.bytes is not None and self.bytes <= 0) or (self.age is not None and self.age <= 0):
            raise LocalError(
                f"keeping {self.bytes} bytes for {self.age} s is keeping nothing; give numbers "
                "above zero, or None to keep everything"
            )

    def apply(
        self,
        files: JournalFiles,
        partitions: Sequence[Partition],
        now: float,
        *,
        shipped: bool = False,
        read: Sequence[int] | None = None,
    ) -> None:
        """Let go of segments; readers that have one open keep it.

        `now`: the time by which ages are judged. `shipped`: whether another program removes those
        that are on another filesystem. `read`: of each partition, the offset below which every
        reader has all; None if there is no reader.
        """
        drop = [0] * len(partitions)
        if self.hold is None:
            read = None
        if self.age is not None:
            for index, partition in enumerate(partitions):
                segments = partition.manifest.segments
                for segment, closed in zip(segments, sealing_times(segments, now), strict=True):
                    if closed + self.age > now or _unread(read, index, segment.end):
                        break
                    drop[index] += 1
        if self.bytes is not None:
            self._trim(partitions, drop, self.bytes, read)
        if read is not None and self.hold is not None:
            # A reader that never comes back must not fill the disk.
            self._trim(partitions, drop, (self.bytes or 0) + self.hold, None)
        for partition, count in zip(partitions, drop, strict=True):
            if count:
                gone = partition.manifest.segments[:count]
                # First unlisted, then removed: a listed segment is always there.
                partition.publish(partition.manifest.without(count))
                for segment in gone:
                    if not (shipped and is_uri(segment.path)):
                        _remove(files, segment.path)

    def _trim(
        self,
        partitions: Sequence[Partition],
        drop: list[int],
        most: int,
        read: Sequence[int] | None,
    ) -> None:
        total = sum(partition.bytes for partition in partitions)
        for partition, count in zip(partitions, drop, strict=True):
            total -= sum(segment.bytes for segment in partition.manifest.segments[:count])
        oldest = sorted(
            (segment.closed, segment.first, index, segment.bytes, segment.end)
            for index, partition in enumerate(partitions)
            for segment in partition.manifest.segments[drop[index] :]
        )
        kept: set[int] = set()
        for _, _, index, size, end in oldest:
            if total <= most:
                break
            if index in kept or _unread(read, index, end):
                kept.add(index)  # segments of a partition go in their order
                continue
            drop[index] += 1
            total -= size


def sealing_times(segments: Sequence[Segment], now: float) -> list[float]:
    """Return when segments were sealed, at the latest.

    One that says it was sealed in the future, by a clock that was set back since, was sealed
    before those after it.
    """
    times: list[float] = []
    after = now
    for segment in reversed(segments):
        if segment.closed <= now:
            after = segment.closed
        times.append(after)
    return times[::-1]


def holds_back(
    partitions: Sequence[Partition], ages: Sequence[float], judged: float, wall: float
) -> bool:
    """Return True if a segment is kept because ages are judged by `judged` and not by `wall`."""
    return any(
        judged < segment.closed + age <= wall
        for partition in partitions
        for segment in partition.manifest.segments
        for age in ages
    )


def _unread(read: Sequence[int] | None, partition: int, end: int) -> bool:
    return read is not None and end > (read[partition] if partition < len(read) else 0)


def _remove(files: JournalFiles, path: str) -> None:
    if not is_uri(path):
        files.remove(path)
        return
    folder, name = parted(path)
    try:
        RemoteFiles(folder).remove(name)
    except OSError as error:
        # No longer listed, so nobody reads it; it only takes room there.
        _log.warning("%s could not be removed: %s", path, error)
