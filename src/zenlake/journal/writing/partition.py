"""One partition as its writer has it: sealed segments, then the write-ahead file."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence

import pyarrow as pa

from zenlake.errors import JournalCorrupt
from zenlake.journal.disk.files import JournalFiles, replace
from zenlake.journal.disk.frame import Block
from zenlake.journal.disk.layout import OPEN, SEALED, TEMPORARY, first_of, folder, manifest_path
from zenlake.journal.disk.manifest import Manifest
from zenlake.journal.disk.remote import is_uri
from zenlake.journal.disk.segment import Segment
from zenlake.journal.disk.writeahead import WriteAhead
from zenlake.journal.reading.blocks import SealedFile

__all__ = ["Partition", "runs"]

#: Batches are put together into one block of at most this, when they come together.
SMALL_ROWS = 16_384
SMALL_BYTES = 1 << 20
#: A batch above this is a block of its own: it would be copied to be put together with others.
WHOLE_BYTES = 256 << 10
#: A segment whose blocks are smaller than this on average is packed when it is sealed.
SMALL_BLOCK = 64 << 10
#: A block above this is cut: it is what a reader has to take at once.
LARGE_BYTES = 32 << 20


def runs(batches: Sequence[tuple[pa.RecordBatch, int]]) -> Iterator[pa.RecordBatch]:
    """Cut and gather batches that came together, so that each result makes a block of good size.

    Each comes with its size in bytes, which takes too long to find out twice.
    """
    run: list[pa.RecordBatch] = []
    rows = size = 0
    for batch, nbytes in batches:
        alone = nbytes > WHOLE_BYTES
        if run and (alone or rows + len(batch) > SMALL_ROWS or size + nbytes > SMALL_BYTES):
            yield _together(run)
            run, rows, size = [], 0, 0
        if nbytes > LARGE_BYTES and len(batch) > 1:
            step = max(1, len(batch) * LARGE_BYTES // nbytes)
            for start in range(0, len(batch), step):
                yield batch[start : start + step]
        elif alone:
            if len(batch):
                yield batch
        elif len(batch):
            run.append(batch)
            rows += len(batch)
            size += nbytes
    if run:
        yield _together(run)


def _together(run: list[pa.RecordBatch]) -> pa.RecordBatch:
    # pyarrow makes one dictionary of those that the batches bring.
    return run[0] if len(run) == 1 else pa.concat_batches(run)


class Partition:
    """Rows with dense offsets; one thread writes them."""

    def __init__(self, files: JournalFiles, journal: str, number: int, *, durable: bool) -> None:
        self._files = files
        self._journal = journal
        self._durable = durable
        self.number = number
        self.manifest = Manifest()
        self.active = WriteAhead(files, journal, number, 0)
        self.synced = 0
        #: Whether the manifest on disk lacks a sealed segment.
        self.unlisted = False
        #: Bytes that recovery cut off because no block was whole there.
        self.cut = 0

    @property
    def next(self) -> int:
        """The offset that the next row gets."""
        return self.active.next

    @property
    def bytes(self) -> int:
        """The size of everything that is kept."""
        return sum(segment.bytes for segment in self.manifest.segments) + self.active.size

    def append(self, batch: pa.RecordBatch) -> Block:
        """Write the rows as one block, all or, with `OSError`, none."""
        return self.active.append(batch)

    def fsync(self) -> int:
        """Return the offset below which all rows survive a loss of power."""
        if self.synced < self.next:
            if self._durable:
                self.active.fsync()
            self.synced = self.next
        return self.synced

    def seal(self, now: float) -> Segment:
        """Close the write-ahead file as a segment, and begin another with the next row."""
        segment = self._pack(now) or self.active.seal(now)
        self.synced = segment.end
        self.active = WriteAhead(self._files, self._journal, self.number, segment.end)
        self.manifest = self.manifest.sealed(segment)
        # Until the page is written readers and recovery find the segment by its name.
        self.unlisted = True
        self.publish(self.manifest)
        return segment

    def _pack(self, now: float) -> Segment | None:
        """Seal the rows in fewer blocks when they came in very small ones."""
        active = self.active
        if len(active.blocks) < 2 or active.size >= len(active.blocks) * SMALL_BLOCK:
            return None
        packed = None
        try:
            packed = active.packed()
            segment = packed.seal(now)
        except OSError:
            # No room for both: the small blocks are as good, only slower to read.
            if packed is not None:
                packed.close()
            if active.path + TEMPORARY in [
                f"{folder(self.number)}/{name}" for name in self._files.list(folder(self.number))
            ]:
                self._files.remove(active.path + TEMPORARY)
            return None
        active.close()
        self._files.remove(active.path)
        return segment

    def publish(self, manifest: Manifest, *, durable: bool = False) -> None:
        """Put a manifest in the place of the last one; with `OSError` that one stays.

        `durable`: synced even where watermarks are not.
        """
        durable = durable or self._durable
        replace(self._files, manifest_path(self.number), manifest.to_json(), durable=durable)
        if durable:
            self._files.sync(folder(self.number))
        self.manifest = manifest
        self.unlisted = False

    def exchange(self, segment: Segment, made: Segment | None) -> bool:
        """List a segment that was written anew in the place of the old; whether it was listed."""
        segments = [made or one if one is segment else one for one in self.manifest.segments]
        if made is None or made not in segments:
            return False
        # First listed, then the old one is removed: a listed segment is always there.
        manifest = dataclasses.replace(self.manifest, segments=tuple(segments))
        self.publish(manifest, durable=True)
        self._files.remove(segment.path)
        return True

    def close(self) -> None:
        """Let go of the write-ahead file."""
        self.active.close()

    # ------------------------------------------------------------------ recovery

    def recover(self, watermark: int, now: float) -> None:
        """Find what an earlier life left; changes nothing when acknowledged rows are missing."""
        home = folder(self.number)
        self._files.make(home)
        names = self._files.list(home)
        where = manifest_path(self.number)
        if "manifest.json" in names:
            self.manifest = Manifest.from_json(self._files.read(where), where)
        listed = self.manifest
        for segment in listed.segments:
            if not is_uri(segment.path) and segment.path.rpartition("/")[2] not in names:
                raise JournalCorrupt(
                    f"{segment.path} is missing: it held offsets {segment.first} to "
                    f"{segment.end}; restore it from a copy of the journal"
                )
        adopted = self._adopt(names, now)
        end = adopted.end
        self.active = WriteAhead(self._files, self._journal, self.number, end)
        # The power may fail after a segment was packed and before its first form was removed.
        packed = {segment.first for segment in adopted.segments}
        stray = [
            name
            for name in names
            if first_of(name) > end
            or (name.endswith(OPEN) and first_of(name) < end and first_of(name) not in packed)
        ]
        if stray:
            raise JournalCorrupt(
                f"{home}/{stray[0]} begins elsewhere than at offset {end}, where the segments "
                f"before it end; restore {home} from a copy of the journal"
            )
        path = self.active.path
        if path.rpartition("/")[2] in names:
            recovered = self.active.recover()
            recovered.must_reach(watermark, path)
            self.active.resume()
            self.cut = recovered.cut
            if not self.active.blocks:
                self.active = WriteAhead(self._files, self._journal, self.number, end)
        elif end < watermark:
            raise JournalCorrupt(
                f"{path} is missing: offsets {end} to {watermark} were acknowledged; restore it "
                "from a copy of the journal"
            )
        self._clear(names, packed)
        if adopted is not listed:
            self.publish(adopted)
        self._files.sync(home)
        self.synced = self.next

    def _adopt(self, names: list[str], now: float) -> Manifest:
        """The manifest, with segments that were sealed just before the end."""
        manifest = self.manifest
        firsts = {first_of(name): name for name in names if name.endswith(SEALED)}
        while name := firsts.get(manifest.end):
            segment = SealedFile(self._files, f"{folder(self.number)}/{name}").segment()
            manifest = manifest.sealed(dataclasses.replace(segment, closed=now))
        return manifest

    def _clear(self, names: list[str], packed: set[int]) -> None:
        """Remove what a crash left half done: pages in the making, segments let go.

        A segment that was written anew has another name; one of the two is listed.
        """
        listed = {
            segment.first: segment.path.rpartition("/")[2]
            for segment in self.manifest.segments
            if not is_uri(segment.path)
        }
        for name in names:
            gone = name.endswith(SEALED) and first_of(name) < self.manifest.earliest
            gone = gone or (name.endswith(OPEN) and first_of(name) in packed)
            gone = gone or (name.endswith(SEALED) and listed.get(first_of(name), name) != name)
            if gone or name.endswith(TEMPORARY):
                self._files.remove(f"{folder(self.number)}/{name}")
