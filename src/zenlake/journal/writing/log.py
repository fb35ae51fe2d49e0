"""A journal as its one writer has it: all partitions, the watermark, and what to let go.

Nothing here knows of threads or waits for time: `JournalWriter` does, and calls this.
"""

from __future__ import annotations

import logging
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Final

import pyarrow as pa

from zenlake.clock.age_clock import AgeClock
from zenlake.errors import JournalCorrupt, JournalError, LocalError
from zenlake.journal.disk.files import JournalFiles, replace
from zenlake.journal.disk.layout import INFO, MAX_PARTITIONS, TEMPORARY, UNSYNCED, JournalInfo
from zenlake.journal.disk.remote import is_uri
from zenlake.journal.disk.watermark import WATERMARK, Watermark
from zenlake.journal.options import RetainRule
from zenlake.journal.reading.reader import Journal
from zenlake.journal.writing.partition import Partition
from zenlake.journal.writing.readers import read_by_all
from zenlake.journal.writing.retention import JournalRetention, holds_back
from zenlake.journal.writing.retire import Retiring
from zenlake.journal.writing.rules import RetainRules
from zenlake.journal.writing.shipping import Shipper
from zenlake.journal.writing.sources import SourceNumbers
from zenlake.journal.writing.steady import steady_time

__all__ = ["Log", "LogLimits"]

_log = logging.getLogger("zenlake.journal")
_SOURCES: Final = ("source_zid", "source_eid", "source_sn")


@dataclass(frozen=True, slots=True)
class LogLimits:
    """When a segment is sealed, and what is kept."""

    segment_bytes: int = 128 << 20
    segment_age: float = 3600.0
    retention: JournalRetention = field(default_factory=JournalRetention)
    rules: tuple[RetainRule, ...] = ()

    def __post_init__(self) -> None:
        if self.segment_bytes <= 0 or self.segment_age <= 0:
            raise LocalError(
                f"segments of {self.segment_bytes} bytes and {self.segment_age} s cannot be "
                "written; both have to be above zero"
            )


class Log:
    """The files of a journal, recovered and ready to be written by one thread."""

    def __init__(
        self,
        files: JournalFiles,
        *,
        name: str = "journal",
        partitions: int | None = None,
        durable: bool = True,
        limits: LogLimits | None = None,
        sealed_to: str | None = None,
        clock: Callable[[], float] = time.time,
        steady: Callable[[], float] | None = None,
    ) -> None:
        """Create the journal, or recover it.

        `durable` says whether fsync is called for every watermark; sealed segments are always
        synced. `sealed_to` is the URI that sealed segments move to. `steady` is a clock that nobody
        sets; if not given, that of the system, or `clock` if it is not the system's.
        """
        self.files = files
        self._durable = durable
        self._limits = limits or LogLimits()
        self._clock = clock
        self._steady = steady or (steady_time if clock is time.time else clock)
        #: By how many seconds of the wall clock nothing is deleted that it would delete.
        self.held = 0.0
        self._warned = False
        #: How many segments were sealed.
        self.sealed = 0
        rules = RetainRules(self._limits.rules)
        if rules and sealed_to:
            raise LocalError(
                f"segments that move to {sealed_to} are not written anew there: leave the rules of "
                "retention away, or sealed_to"
            )
        self.info = self._identify(name, partitions)
        self._retiring = Retiring(files, self.info, rules)
        #: What rules of retention have taken.
        self.retired = self._retiring.counts
        trusted = self._keep_promise()
        before = self._last_watermark(trusted)
        self.partitions = [
            Partition(files, self.info.id, number, durable=durable)
            for number in range(self.info.partitions)
        ]
        for partition, offset in zip(self.partitions, before.offsets, strict=True):
            partition.recover(offset if trusted else 0, clock())
        self._ages = AgeClock(
            segment.closed for one in self.partitions for segment in one.manifest.segments
        )
        self.sources = SourceNumbers(dict(before.sources))
        self._learn(before)
        files.sync("")
        self.watermark = before
        self.commit()
        self.shipper = Shipper(files, sealed_to, self.info) if sealed_to else None
        if durable and not trusted:
            files.sync("")
            files.remove(UNSYNCED)
            files.sync("")

    def _identify(self, name: str, partitions: int | None) -> JournalInfo:
        try:
            info = JournalInfo.from_json(self.files.read(INFO), "journal")
        except FileNotFoundError:
            pass
        else:
            if partitions not in (None, info.partitions):
                raise LocalError(
                    f"the journal has {info.partitions} partitions, and {partitions} were asked "
                    "for; their number is fixed when it is created: leave it out, or record into "
                    "another folder"
                )
            return info
        count = 1 if partitions is None else partitions
        if not 0 < count <= MAX_PARTITIONS:
            raise LocalError(f"{count} partitions cannot be; choose 1 to {MAX_PARTITIONS}")
        info = JournalInfo(uuid.uuid4().hex, name, count, self._clock())
        replace(self.files, INFO, info.to_json())
        return info

    def _keep_promise(self) -> bool:
        """Whether the last watermark was a promise; says on disk when the next one is none."""
        names = self.files.list("")
        for name in names:
            if name.endswith(TEMPORARY):
                self.files.remove(name)
        if not self._durable and UNSYNCED not in names:
            # A promise that was given stays until the rows it is about are read again.
            replace(self.files, UNSYNCED, b"The last rows may be lost with the power.\n")
            self.files.sync("")
        return UNSYNCED not in names

    def _last_watermark(self, trusted: bool) -> Watermark:
        nothing = Watermark((0,) * self.info.partitions)
        try:
            watermark = Watermark.from_json(self.files.read(WATERMARK), WATERMARK)
        except FileNotFoundError:
            return nothing
        except JournalCorrupt as error:
            # What is whole in the segments is what there is; recovery counts it anew.
            log = _log.warning if trusted else _log.debug
            log("%s; it is made again from the segments", error)
            return nothing
        if len(watermark.offsets) != self.info.partitions:
            raise JournalError(
                f"{WATERMARK} has {len(watermark.offsets)} offsets, the journal has "
                f"{self.info.partitions} partitions; restore both files from one copy"
            )
        return watermark

    def _learn(self, before: Watermark) -> None:
        """Take the sequence numbers of rows that were whole, though not acknowledged."""
        reader = Journal(self.files, "journal")
        for partition, offset in zip(self.partitions, before.offsets, strict=True):
            start = max(min(offset, partition.next), partition.manifest.earliest)
            for batch in reader.rows(partition.number, start, partition.next, _SOURCES):
                self.sources.take(batch)

    def write(self, partition: int, batch: pa.RecordBatch) -> int:
        """Append rows as one block, all or, with `OSError`, none; gives the block's bytes."""
        block = self.partitions[partition].append(batch)
        self.sources.take(batch)
        return block.length

    def commit(self) -> Watermark:
        """Make durable what is written, say so to the disk, and return how far that is."""
        offsets = tuple(partition.fsync() for partition in self.partitions)
        watermark = Watermark(offsets, self.sources.snapshot(), self._durable)
        if watermark != self.watermark:
            replace(self.files, WATERMARK, watermark.to_json(), durable=self._durable)
            self.watermark = watermark
        return watermark

    def tend(self) -> float:
        """Seal what is large or old, let go of what is too much; gives seconds until the next."""
        now = self._clock()
        wait = 60.0
        for partition in self.partitions:
            if partition.unlisted:
                partition.publish(partition.manifest)
            active = partition.active
            if active.blocks:
                # A date that was set back since must not keep it open for so much longer.
                active.opened = min(active.opened or now, now)
                left = active.opened + self._limits.segment_age - now
                if active.size >= self._limits.segment_bytes or left <= 0:
                    partition.seal(now)
                    self.sealed += 1
                else:
                    wait = min(wait, left)
        shipper = self.shipper
        if shipper is not None:
            self._relocate(shipper)
            wait = min(wait, 0.25)
        retention = self._limits.retention
        judged = self._judged(now)
        retention.apply(
            self.files,
            self.partitions,
            judged,
            shipped=shipper is not None,
            read=None if retention.hold is None else read_by_all(self.files, self.info),
        )
        if shipper is not None:
            shipper.offer(tuple(partition.manifest for partition in self.partitions))
        return min(wait, self._retiring.step(self.partitions, judged))

    def _judged(self, now: float) -> float:
        """Return the time by which ages are judged; say so where that keeps something."""
        judged = self._ages.time(now, self._steady())
        ages = [rule.age for rule in self._limits.rules]
        if self._limits.retention.age is not None:
            ages.append(self._limits.retention.age)
        held = self._ages.held
        self._warned &= held > 0.0
        if held and holds_back(self.partitions, ages, judged, now):
            self.held = held
        else:
            self.held = 0.0
        if self.held and not self._warned:
            self._warned = True
            _log.warning(
                "journal '%s': the clock is %s ahead of when rows were recorded before; nothing is "
                "deleted for that until it has been so for a day: if the date is wrong, set it "
                "right",
                self.info.name,
                timedelta(seconds=int(held)),
            )
        return judged

    def _relocate(self, shipper: Shipper) -> None:
        """List segments where they arrived, and only then remove them here."""
        arrived = shipper.arrived()
        for partition in self.partitions:
            moved = [
                segment
                for segment in partition.manifest.segments
                if not is_uri(segment.path) and (partition.number, segment.first) in arrived
            ]
            if moved:
                places = {each.first: arrived[partition.number, each.first] for each in moved}
                partition.publish(partition.manifest.moved(places))
                for segment in moved:
                    self.files.remove(segment.path)

    def close(self) -> None:
        """Let go of all files; what is committed is safe."""
        self._retiring.close()
        if self.shipper is not None:
            self.shipper.close()
        for partition in self.partitions:
            partition.close()
