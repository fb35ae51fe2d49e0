"""Reading a journal: without a lock, beside its writer, never past the watermark."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Iterable, Iterator, Sequence
from time import time_ns

import pyarrow as pa

from zenlake.errors import JournalCorrupt, JournalError
from zenlake.journal.disk.files import LocalFiles, Shelf
from zenlake.journal.disk.layout import (
    INFO,
    JournalInfo,
    folder,
    manifest_path,
    open_path,
    sealed_path,
)
from zenlake.journal.disk.manifest import Manifest
from zenlake.journal.disk.remote import RemoteFiles, is_uri, parted
from zenlake.journal.disk.segment import Segment
from zenlake.journal.disk.watermark import WATERMARK, Watermark
from zenlake.journal.reading.blocks import Damaged, SealedFile, TailFile
from zenlake.journal.reading.filter import KeyChoice, RowFilter
from zenlake.journal.reading.readable import Keys, Offsets, Range, Readable
from zenlake.journal.reading.sizes import BlockSize, TailSizes
from zenlake.journal.reading.times import Times, bounds_of

__all__ = ["Journal"]

#: How often names are looked up anew while a writer changes them; each change takes it moments.
_PATIENCE = 20


class Journal(Readable):
    """A journal to read from; cheap to open, and safe beside a running recorder."""

    def __init__(self, shelf: Shelf, where: str) -> None:
        """For files of your own kind; `Journal.open` takes a folder or an address."""
        self._shelf = shelf
        self._tails: dict[int, TailFile] = {}
        self._tail_sizes: dict[int, TailSizes] = {}
        self._manifests: dict[int, tuple[bytes, Manifest]] = {}
        self._lock = threading.Lock()
        try:
            page = shelf.read(INFO)
        except (FileNotFoundError, NotADirectoryError) as error:
            raise JournalError(
                f"{where} is not a journal: it has no {INFO}; record into it first, or name the "
                "folder that `zenlake record --to` was given"
            ) from error
        info = JournalInfo.from_json(page, where)
        super().__init__(where, info.id, info.name, info.partitions)

    @classmethod
    def open(cls, where: str | os.PathLike[str]) -> Journal:
        """The journal in a folder, or at a URI that pyarrow knows."""
        place = os.fspath(where)
        if is_uri(place):
            return cls(RemoteFiles(place), place)
        files = LocalFiles(place)
        return cls(files, files.root)

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return Journal.open, (self._where,)

    def __repr__(self) -> str:
        return f"Journal.open({self._where!r})"

    @property
    def path(self) -> str:
        """Where it is: a folder, or a URI."""
        return self._where

    def watermark(self) -> Watermark:
        """How far the journal is durable now.

        Where the page that says so is missing or torn, what is sealed is durable; a writer that
        opens the journal makes the page again from all that is there.
        """
        try:
            watermark = Watermark.from_json(
                self._shelf.read(WATERMARK), f"{self._where}/{WATERMARK}"
            )
        except (FileNotFoundError, JournalCorrupt):
            ends = tuple(self._manifest(number).end for number in range(self.partitions))
            return Watermark(ends)
        if len(watermark.offsets) != self.partitions:
            raise JournalCorrupt(
                f"{self._where}/{WATERMARK} has {len(watermark.offsets)} offsets; the journal has "
                f"{self.partitions} partitions"
            )
        return watermark

    def watermark_problem(self) -> str:
        """What is wrong with the page that says how far the journal is durable; else empty."""
        again = "it is made again from the segments when the journal is next recorded"
        try:
            Watermark.from_json(self._shelf.read(WATERMARK), f"{self._where}/{WATERMARK}")
        except FileNotFoundError:
            begun = any(self._shelf.list(folder(number)) for number in range(self.partitions))
            return f"{self._where}/{WATERMARK} is missing; {again}" if begun else ""
        except JournalCorrupt as error:
            return f"{error}; {again}"
        return ""

    def segments(self, partition: int) -> list[Segment]:
        """What a partition consists of; the last may still be growing."""
        durable = self.watermark().offsets[self._checked(partition)]
        segments = []
        due = -1
        for segment, _ in self._pieces(partition, durable):
            # A name may have changed while we looked; then the same rows come twice.
            if segment.first >= due:
                segments.append(segment)
                due = segment.end
        return segments

    def sizes(self, partition: int, start: int, end: int) -> list[BlockSize]:
        """How many bytes the rows between two offsets have, block by block; rows are not read.

        For plans: blocks of which nothing can be told are left out, and none is checked.
        """
        found: list[BlockSize] = []
        manifest = self._manifest(self._checked(partition))
        for segment in manifest.segments:
            if segment.end > start and segment.first < end:
                try:
                    opened = self._open(partition, segment, explicit=False)
                except (JournalCorrupt, OSError):
                    opened = None
                if opened is None:
                    found.append(BlockSize(segment.first, segment.end, segment.bytes))
                else:
                    blocks = opened[1].blocks
                    found += [BlockSize(one.first, one.end, one.length) for one in blocks]
        if manifest.end < end:
            tail = self._tail_sizes.get(partition)
            if tail is None or tail.first != manifest.end:
                path = open_path(partition, manifest.end)
                tail = TailSizes(self._shelf, path, self.id, partition, manifest.end)
                self._tail_sizes[partition] = tail
            with contextlib.suppress(OSError):
                found += tail.upto(end)
        return [one for one in found if one.end > start and one.first < end]

    def scan(
        self,
        start: Offsets = None,
        end: Offsets = None,
        *,
        partition: int | None = None,
        keys: Keys = None,
        time: Times = None,
        columns: Sequence[str] | None = None,
        check: bool | None = None,
        heartbeats: bool = False,
    ) -> Iterator[pa.RecordBatch]:
        """The rows between two offsets, never past the durable watermark.

        `start` and `end` (exclusive) are offsets for all partitions, or one for each that is
        named; without them it is everything that is kept. `keys` are key expressions of which
        one has to match, `columns` are names. `time` is what `_time` takes, such as
        `[now(-5m)..]`, or a start and an end (exclusive) as datetimes or microseconds since 1970,
        of which either may be None. Batches have the journal's schema, or what `columns` chose of
        it. Rows come in the order of their offsets, partition by partition. Checksums of the
        write-ahead file are always compared, those of a sealed segment when its values are wanted
        or its rows are small, once in a process; `check=True` compares all that is read, on other
        filesystems too, and `check=False` none. With `heartbeats` there are also the rows that are
        no samples, but what publishers said of their numbers; else their offsets are passed over.
        Raises `JournalGap` when `start` is no longer kept, and `JournalCorrupt` when rows are
        damaged.
        """
        chosen = RowFilter(keys, bounds_of(time, time_ns()), columns, check, heartbeats)
        return self._scan(self._ranges(start, end, partition), chosen)

    def follow(
        self,
        start: Offsets = None,
        *,
        partition: int | None = None,
        keys: Keys = None,
        time: Times = None,
        columns: Sequence[str] | None = None,
        check: bool | None = None,
        heartbeats: bool = False,
        poll: float = 0.02,
    ) -> Iterator[pa.RecordBatch]:
        """The rows from `start` on, and those to come, until `close`.

        Looks at the watermark every `poll` seconds when there is nothing to give.
        """
        chosen = RowFilter(keys, bounds_of(time, time_ns()), columns, check, heartbeats)
        return self._following(
            self._places(start, partition),
            lambda ranges: self._scan(ranges, chosen),
            lambda: self._closed.wait(poll),
        )

    def rows(
        self, partition: int, start: int, end: int, columns: Sequence[str]
    ) -> Iterator[pa.RecordBatch]:
        """Rows that are in the files, acknowledged or not; for who recovers them."""
        return self._scan([(partition, start, end)], RowFilter(columns=columns))

    def salvage(
        self,
        partition: int,
        start: int,
        end: int,
        columns: Sequence[str],
        damaged: Damaged,
        *,
        keys: Keys = None,
        heartbeats: bool = False,
    ) -> Iterator[pa.RecordBatch]:
        """The rows between two offsets that are kept and can be read, whatever else cannot.

        `damaged` hears for each block or segment that is left out what is wrong with it.
        """
        chosen = RowFilter(keys, columns=columns, heartbeats=heartbeats)
        choice = KeyChoice(chosen.keys or ())
        until = min(end, self.watermark().offsets[self._checked(partition)])
        due = start
        try:
            for segment, file in self._pieces(partition, until, start):
                first, due = max(due, segment.first), max(due, min(segment.end, until))
                if first >= due or not chosen.meets(segment, choice):
                    continue
                if isinstance(file, TailFile):
                    yield from file.read(first, due, chosen, choice, chosen.hides(segment))
                    continue
                try:
                    opened = (
                        (segment, file) if file else self._open(partition, segment, explicit=False)
                    )
                except (JournalCorrupt, OSError) as error:
                    damaged(error)
                    continue
                if opened is not None:
                    segment, sealed = opened
                    yield from sealed.salvage(
                        first, due, chosen, choice, chosen.hides(segment), segment.keys, damaged
                    )
        except (JournalCorrupt, OSError) as error:
            # What comes after the last segment that is listed.
            damaged(error)

    def open_segment(self, segment: Segment) -> pa.NativeFile:
        """The file of a sealed segment, byte by byte as it lies there."""
        if is_uri(segment.path):
            folder, name = parted(segment.path)
            return RemoteFiles(folder).open(name)
        return self._shelf.open(segment.path)

    # ------------------------------------------------------------------ inside

    def _manifest(self, partition: int) -> Manifest:
        path = manifest_path(partition)
        try:
            page = self._shelf.read(path)
        except FileNotFoundError:
            return Manifest()
        known = self._manifests.get(partition)
        if known is None or known[0] != page:
            known = page, Manifest.from_json(page, f"{self._where}/{path}")
            self._manifests[partition] = known
        return known[1]

    def _kept(self, partitions: Iterable[int]) -> dict[int, int]:
        return {number: self._manifest(number).earliest for number in partitions}

    def _scan(self, ranges: list[Range], chosen: RowFilter) -> Iterator[pa.RecordBatch]:
        choice = KeyChoice(chosen.keys or ())
        for number, first, end in ranges:
            due = first
            for segment, file in self._pieces(number, end, due):
                if due is not None and segment.first > due:
                    # Retention was faster than this scan.
                    if first is not None:
                        self._check_kept(number, due, self._manifest(number).earliest)
                    due = segment.first
                start = segment.first if due is None else due
                due = max(start, min(segment.end, end))
                if start >= due or not chosen.meets(segment, choice):
                    continue
                if file is None:
                    opened = self._open(number, segment, explicit=first is not None)
                    if opened is None:
                        continue
                    segment, file = opened
                yield from file.read(start, due, chosen, choice, chosen.hides(segment))

    def _open(
        self, partition: int, segment: Segment, *, explicit: bool
    ) -> tuple[Segment, SealedFile] | None:
        """A listed segment, as it is listed by the time that it is opened.

        None if retention removed it, unless it must be there (`explicit`).
        """
        for _ in range(2):
            try:
                if is_uri(segment.path):
                    folder, name = parted(segment.path)
                    return segment, SealedFile(RemoteFiles(folder), name)
                return segment, SealedFile(self._shelf, segment.path)
            except FileNotFoundError:
                # Listed when we looked: by now it was let go, moved, or written anew.
                manifest = self._manifest(partition)
                if manifest.earliest > segment.first:
                    if explicit:
                        self._check_kept(partition, segment.first, manifest.earliest)
                    return None
                segment = next((s for s in manifest.segments if s.first == segment.first), segment)
        raise JournalCorrupt(
            f"{segment.path} is missing: it holds offsets {segment.first} to {segment.end} of "
            f"partition {partition}; restore it from a copy"
        )

    def _pieces(
        self, partition: int, end: int, start: int | None = None
    ) -> Iterator[tuple[Segment, SealedFile | TailFile | None]]:
        """The segments with rows from `start` to `end`, oldest first.

        Files that the manifest lists are not opened. Past those come segments that were sealed
        a moment ago, and the write-ahead file.
        """
        due = start
        tail = self._tails.get(partition)
        if tail is not None and due is not None and due >= tail.first:
            # Who follows the tail needs no manifest, until the file it reads is sealed.
            with contextlib.suppress(FileNotFoundError):
                tail = self._tail(partition, tail.first, end)
                yield tail.segment(), tail
                return
        for _ in range(_PATIENCE):
            manifest = self._manifest(partition)
            for segment in manifest.segments:
                if segment.first >= end:
                    return
                if due is None or segment.end > due:
                    yield segment, None
                    due = segment.end
            due = manifest.end if due is None else max(due, manifest.earliest)
            if due >= end:
                return
            try:
                tail = self._tail(partition, manifest.end, end)
                yield tail.segment(), tail
                return
            except FileNotFoundError:
                pass
            try:
                sealed = SealedFile(self._shelf, sealed_path(partition, manifest.end))
            except FileNotFoundError:
                continue  # the manifest has it by now
            segment = sealed.segment()
            yield segment, sealed
            due = segment.end
            if due >= end:
                return
        raise JournalCorrupt(
            f"{self._where}/{open_path(partition, due or 0)} is missing: offsets {due} to {end} "
            "were acknowledged; restore it from a copy of the journal"
        )

    def _tail(self, partition: int, first: int, end: int) -> TailFile:
        """The write-ahead file that begins with `first`, walked up to `end`."""
        with self._lock:
            tail = self._tails.get(partition)
            if tail is None or tail.first != first:
                path = open_path(partition, first)
                tail = TailFile(self._shelf, path, self.id, partition, first)
            tail.advance(end)
            self._tails[partition] = tail
            return tail
