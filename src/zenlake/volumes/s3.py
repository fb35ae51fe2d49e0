"""A volume in a store of objects: Amazon's S3, MinIO, Ceph, R2 and others that speak its protocol.

    <bucket>/<prefix>/<storage>/<first>-<last>-<written>      some batches, numbered (`s3_segments`)

A batch is one object, written by one request, so that it is there whole or not at all. Where each
payload lies is known in memory; a value is read by a range of bytes of its object. Objects that
lie next to each other are merged when there are many small ones, and written anew when most of
one is no longer of use; an object that stands for others is written before those are deleted, so
a crash leaves both, and the greater one counts.
"""

from __future__ import annotations

import bisect
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import ClassVar, Final, NamedTuple

from zenlake.newest import Batch, Entry, WideUpdate
from zenlake.volumes.contract import Capability, Option, Volume, VolumeError
from zenlake.volumes.records import unpack_entry, unpack_wide
from zenlake.volumes.s3_bucket import AT_ONCE, S3Bucket
from zenlake.volumes.s3_segments import (
    Location,
    Record,
    SegmentObject,
    index_size,
    pack,
    records_of,
    unpack,
)

__all__ = ["S3"]

#: How much of an object is read at first, in the hope that its index is in it.
_HEAD: Final = 256 << 10
#: So many neighbours of one size become one object, until they have the last size.
_MERGE: Final = 8
_SIZES: Final = (64 << 10, 512 << 10, 4 << 20, 32 << 20)
#: An object is written anew when less than half of so many bytes is still of use.
_WORTH: Final = 64 << 10
#: How often a value is looked for again whose object was merged meanwhile.
_TRIES: Final = 5


class _Known(NamedTuple):
    """The entry of a key: its record and where that lies, and where its payload lies."""

    record: bytes
    segment: SegmentObject
    payload: Location | None


class _Sample(NamedTuple):
    """A sample of the history."""

    time: int
    id: bytes
    record: bytes
    segment: SegmentObject
    payload: Location | None

    @property
    def size(self) -> int:
        return len(self.record) + (0 if self.payload is None else self.payload.size) + 128


class S3(Volume):
    """Keeps everything in objects of a bucket."""

    CAPABILITY: ClassVar[Capability] = Capability("durable", "all")
    OPTIONS: ClassVar[Mapping[str, Option]] = {
        "bucket": Option(str, "The bucket; it must be there.", required=True),
        "prefix": Option(str, "What the names of all objects begin with.", "zenlake"),
        "url": Option(str, "The store, if it is not Amazon's: https://host:port."),
        "region": Option(str, "The region of the bucket."),
        "access_key": Option(str, "Who logs in; without it, as boto3 finds out.", secret=True),
        "secret_key": Option(str, "With which secret; write it under `private`.", secret=True),
        "timeout": Option(float, "Seconds that the store may take to answer.", 10.0),
    }

    def __init__(self, storage: str, options: Mapping[str, object]) -> None:
        """Read what the objects say."""
        super().__init__(storage, options)
        self._bucket = S3Bucket(f"{options['prefix']}/{storage}/", options)
        self._pool = ThreadPoolExecutor(AT_ONCE, f"zenlake s3 {storage}")
        #: Held when what is known is looked at or changed, never while the store is asked.
        self._lock = threading.Lock()
        self._entries: dict[str, _Known] = {}
        self._wide: dict[str, tuple[WideUpdate, SegmentObject]] = {}
        self._samples: dict[str, list[_Sample]] = {}
        self._segments: list[SegmentObject] = []
        self._sizes: dict[SegmentObject, int] = {}
        self._needed: dict[SegmentObject, int] = {}
        self._next = 1
        try:
            self._load()
        except BaseException:
            self.close()
            raise

    # ----------------------------------------------------------------------------- the objects

    def _load(self) -> None:
        sizes = {
            segment: size
            for name, size in self._bucket.sizes().items()
            if (segment := SegmentObject.parse(name)) is not None
        }
        replaced = (
            {one for one in sizes for other in sizes if other != one and other.replaces(one)}
            if len(sizes) > 1
            else set()
        )
        self._segments = sorted(sizes.keys() - replaced)
        self._sizes = {segment: sizes[segment] for segment in self._segments}
        for segment, index in zip(
            self._segments, self._pool.map(self._index, self._segments), strict=True
        ):
            self._take(segment, index)
        if self._segments:
            self._next = self._segments[-1].last + 1
        self._delete(sorted(replaced))

    def _index(self, segment: SegmentObject) -> bytes:
        """The beginning of an object, its whole index included."""
        data = self._bytes(segment, 0, _HEAD)
        end = index_size(data, segment.name)
        return data if end <= len(data) else self._bytes(segment, 0, end)

    def _bytes(self, segment: SegmentObject, start: int, size: int) -> bytes:
        return self._bucket.read(segment.name, start, size)

    def _delete(self, segments: Sequence[SegmentObject]) -> None:
        self._bucket.delete([segment.name for segment in segments])

    def _take(self, segment: SegmentObject, data: bytes) -> None:
        """Know what an object says, after all before it."""
        for (kind, key, record, _), place in unpack(data, segment):
            if kind == b"E":
                had = self._entries.get(key)
                if place is None and had is not None and unpack_entry(key, record).value:
                    place = had.payload
                self._entries[key] = _Known(record, segment, place)
            elif kind == b"R":
                self._entries.pop(key, None)
            elif kind == b"W":
                self._wide[key] = (unpack_wide(key, record), segment)
            elif kind == b"F":
                self._wide.pop(key, None)
            else:
                self._take_sample(key, record, segment, place)

    def _take_sample(
        self, key: str, record: bytes, segment: SegmentObject, place: Location | None
    ) -> None:
        entry = unpack_entry(key, record)
        sample = _Sample(entry.time, entry.id, record, segment, place)
        samples = self._samples.setdefault(key, [])
        at = bisect.bisect_left(samples, (entry.time, entry.id), key=_moment)
        if at < len(samples) and _moment(samples[at]) == (entry.time, entry.id):
            samples[at] = sample
        else:
            samples.insert(at, sample)

    # ------------------------------------------------------------------------------------ read

    def entries(self) -> Iterable[Entry]:
        """The entry of every key, without payloads."""
        with self._lock:
            known = list(self._entries.items())
        return (unpack_entry(key, one.record) for key, one in known)

    def wide(self) -> Iterable[WideUpdate]:
        """The updates of key expressions with wildcards."""
        with self._lock:
            return [update for update, _ in self._wide.values()]

    def read(self, keys: Sequence[str]) -> list[Entry | None]:
        """The entries of some keys with their payloads, several at a time."""
        return list(self._pool.map(self._read, keys))

    def _read(self, key: str) -> Entry | None:
        def look() -> tuple[bytes, Location | None] | None:
            known = self._entries.get(key)
            return None if known is None else (known.record, known.payload)

        return self._fetched(key, look)

    def _fetched(
        self, key: str, look: Callable[[], tuple[bytes, Location | None] | None]
    ) -> Entry | None:
        """An entry with its payload; its object may be merged with others while it is read."""
        tries = _TRIES
        while True:
            with self._lock:
                value = look()
            if value is None:
                return None
            record, place = value
            if place is None:
                return unpack_entry(key, record)
            try:
                return unpack_entry(key, record, self._bytes(*place))
            except VolumeError:
                with self._lock:
                    merged = place.segment not in self._sizes
                tries -= 1
                if not merged or not tries:
                    raise

    def count(self) -> int:
        """How many keys have a value."""
        with self._lock:
            return sum(one.payload is not None for one in self._entries.values())

    def history(
        self, keys: Sequence[str], start: int | None, end: int | None, limit: int | None
    ) -> Iterator[Entry]:
        """Every sample of some keys in a range of time."""
        for key in keys:
            with self._lock:
                entries = [
                    (one.time, one.id)
                    for one in self._samples.get(key, ())
                    if (start is None or one.time >= start) and (end is None or one.time <= end)
                ]
            for entry in self._pool.map(lambda at, key=key: self._sample(key, at), entries[:limit]):
                if entry is not None:
                    yield entry

    def _sample(self, key: str, at: tuple[int, bytes]) -> Entry | None:
        def look() -> tuple[bytes, Location | None] | None:
            samples = self._samples.get(key, [])
            number = bisect.bisect_left(samples, at, key=_moment)
            if number == len(samples) or _moment(samples[number]) != at:
                return None
            return samples[number].record, samples[number].payload

        return self._fetched(key, look)

    def history_keys(self) -> Iterable[str]:
        """The keys that have samples."""
        with self._lock:
            return list(self._samples)

    def check(self) -> Iterator[str]:
        """Objects that cannot be read, or are shorter than their index says."""
        there = self._bucket.sizes()
        for segment in list(self._segments):
            size = there.get(segment.name)
            if size != self._sizes[segment]:
                yield f"{segment.name} has {size} bytes, and should have {self._sizes[segment]}"

    # ----------------------------------------------------------------------------------- write

    def write(self, batch: Batch) -> None:
        """Write a batch as one object, and tidy up a little."""
        data = pack(records_of(batch))
        segment = SegmentObject(self._next, self._next, 0)
        self._bucket.put(segment.name, data)
        with self._lock:
            self._next += 1
            self._segments.append(segment)
            self._sizes[segment] = len(data)
            self._take(segment, data)
        run = self._mergeable()
        if run:
            try:
                self._merge(run)
            except VolumeError:
                return  # The batch is written; the next one tries again.

    def _mergeable(self) -> list[SegmentObject]:
        """Neighbours that should become one: the newest that are many and of one size."""
        run: list[SegmentObject] = []
        for segment in reversed(self._segments):
            size = bisect.bisect_left(_SIZES, self._sizes[segment])
            if size == len(_SIZES):
                break
            if run and bisect.bisect_left(_SIZES, self._sizes[run[-1]]) != size:
                if len(run) >= _MERGE:
                    break
                run = []
            run.append(segment)
        return run[::-1] if len(run) >= _MERGE else []

    def _merge(self, run: Sequence[SegmentObject]) -> SegmentObject:
        """Write one object for neighbours, with what is still of use, and delete them."""
        oldest = run[0] == self._segments[0]
        segments = list(self._pool.map(lambda one: self._bytes(one, 0, self._sizes[one]), run))
        read = dict(zip(run, segments, strict=True))
        merged = SegmentObject(run[0].first, run[-1].last, max(one.written for one in run) + 1)
        # Only this thread changes what is known.
        data = pack(self._useful(read, oldest))
        self._bucket.put(merged.name, data)
        with self._lock:
            at = self._segments.index(run[0])
            self._segments[at : at + len(run)] = [merged]
            self._sizes[merged] = len(data)
            self._move(merged, data)
            for one in run:
                del self._sizes[one]
        self._delete(run)
        return merged

    def _useful(self, read: Mapping[SegmentObject, bytes], oldest: bool) -> Iterator[Record]:
        done: set[tuple[bytes, str]] = set()
        for segment, data in read.items():
            for (kind, key, _, _), _ in unpack(data, segment):
                if kind == b"S":
                    continue
                if (kind, key) in done:
                    continue
                done.add((kind, key))
                if kind == b"E":
                    known = self._entries.get(key)
                    if known is None:
                        continue
                    place = known.payload
                    if place is not None and place.segment in read:
                        yield Record(b"E", key, known.record, _part(read, place))
                    elif known.segment in read:
                        yield Record(b"E", key, known.record)
                elif kind == b"W":
                    update = self._wide.get(key)
                    if update is not None and update[1] in read:
                        yield next(iter(records_of(Batch([], [], [update[0]], [], []))))
                elif not oldest and key not in (self._entries if kind == b"R" else self._wide):
                    # Older objects still speak of it.
                    yield Record(kind, key, b"")
        keys = {
            key
            for segment, data in read.items()
            for (kind, key, _, _), _ in unpack(data, segment)
            if kind == b"S"
        }
        for key in keys:
            for sample in self._samples.get(key, ()):
                if sample.segment in read:
                    yield Record(b"S", key, sample.record, _part(read, sample.payload))

    def _move(self, merged: SegmentObject, data: bytes) -> None:
        """Know that what some objects said lies in another now."""
        for (kind, key, record, _), place in unpack(data, merged):
            if kind == b"E":
                known = self._entries[key]
                inside = merged.first <= known.segment.first and known.segment.last <= merged.last
                self._entries[key] = _Known(
                    known.record,
                    merged if inside else known.segment,
                    known.payload if place is None else place,
                )
            elif kind == b"W":
                self._wide[key] = (self._wide[key][0], merged)
            elif kind == b"S":
                self._take_sample(key, record, merged, place)

    # --------------------------------------------------------------------------------- upkeep

    def trim(self, before: int | None, count: int | None, size: int | None) -> int:
        """Drop samples that are too old or too many; the newest of a key stays."""
        dropped = 0
        with self._lock:
            for samples in self._samples.values():
                first = 0 if count is None else max(0, len(samples) - count)
                if before is not None:
                    first = max(first, bisect.bisect_left(samples, before, key=lambda s: s.time))
                first = min(first, len(samples) - 1)
                del samples[:first]
                dropped += first
            if size is not None:
                dropped += self._shrink(size)
        return dropped

    def _shrink(self, size: int) -> int:
        total = sum(one.size for samples in self._samples.values() for one in samples)
        if total <= size:
            return 0
        oldest = sorted(
            (_moment(one), key) for key, samples in self._samples.items() for one in samples[:-1]
        )
        dropped = 0
        for _, key in oldest:
            if total <= size:
                break
            total -= self._samples[key].pop(0).size
            dropped += 1
        return dropped

    def tidy(self) -> None:
        """Write those objects anew of which less than half is of use."""
        useful: dict[SegmentObject, int] = dict.fromkeys(self._segments, 0)
        for known in self._entries.values():
            useful[known.segment] += len(known.record) + 64
            if known.payload is not None:
                useful[known.payload.segment] += known.payload.size
        for samples in self._samples.values():
            for sample in samples:
                useful[sample.segment] += sample.size
        for _, segment in self._wide.values():
            useful[segment] += 128
        for segment, size in useful.items():
            # What was left when it was last written anew, besides values, is needed: markers.
            needed = self._needed.pop(segment, 0)
            if self._sizes[segment] - needed > max(_WORTH, 2 * size):
                merged = self._merge([segment])
                needed = max(0, self._sizes[merged] - size)
                segment = merged
            self._needed[segment] = needed

    def close(self) -> None:
        """Let the connections go."""
        self._pool.shutdown(wait=True, cancel_futures=True)
        self._bucket.close()


def _part(read: Mapping[SegmentObject, bytes], place: Location | None) -> bytes | None:
    """A payload out of objects that were read whole."""
    if place is None:
        return None
    return read[place.segment][place.start : place.start + place.size]


def _moment(sample: _Sample) -> tuple[int, bytes]:
    return sample.time, sample.id
