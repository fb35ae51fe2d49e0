"""Tasks that keep `latest`: the newest rows of new files of `samples`, and buckets written anew.

    Newest      files of `samples` → the newest row of each key among some offsets
    Merge       those into the buckets of `latest`

A small fold is one task, which does both.
"""

from __future__ import annotations

import io
import json
import time
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from zenlake.lake.ingest import latest
from zenlake.lake.table.data_files import DataFile, open_file, read_notes, read_table, write_file
from zenlake.lake.table.location import LakeLocation

__all__ = [
    "MEMORY",
    "NEWEST",
    "Bucket",
    "MergeTask",
    "NewestResult",
    "NewestTask",
    "ScratchFile",
    "ShownTask",
    "memory_of",
    "newest_note",
]

MOST_ROWS: Final = 500_000
MOST_BYTES: Final = 128 * 1024 * 1024
"""What a task holds in memory before it keeps only the newest."""

WORDS: Final = tuple(field.name for field in latest.MERGED if pa.types.is_string(field.type))

MEMORY: Final = b"zenlake.deleted"
"""Where the footer of a bucket keeps its memory: no commit can part the two."""


NEWEST: Final = b"zenlake.newest"
"""Where the footer of a file of `samples` has the newest row of each key, if those are few: to
find them again takes as long as to read all of the file."""

FEW: Final = 32
"""Rows of a key, on average, from which on the newest are few."""

MOST_NOTED: Final = 256 * 1024
"""Bytes of rows in a footer."""


@dataclass(frozen=True, slots=True)
class Bucket:
    """A bucket that was written anew."""

    bucket: int
    file: DataFile
    had: str | None
    """The file that it takes the place of."""


@dataclass(frozen=True, slots=True)
class ScratchFile:
    """A file of newest rows, a batch for each bucket; -1 is what belongs to all."""

    path: str
    buckets: tuple[int, ...]

    @property
    def folder(self) -> str:
        """The folder that the file is alone in."""
        return self.path.rpartition("/")[0]


@dataclass(frozen=True, slots=True)
class NewestResult:
    """What a task found: the buckets if it was alone, else a file for the tasks that merge."""

    buckets: tuple[Bucket, ...] = ()
    scratch: ScratchFile | None = None


@dataclass(frozen=True, slots=True)
class NewestTask:
    """Files of `samples`, and which of their rows `latest` lacks."""

    lake: str
    paths: tuple[str, ...]
    journal: str
    ranges: Mapping[int, tuple[int, int]]
    """By partition of the journal, from one offset up to another."""
    buckets: int
    merge: Mapping[int, str] | None = None
    """The files of `latest`, when this task is alone and shall merge them itself."""
    remember: float = 86400.0

    def run(self) -> NewestResult:
        """Find the newest row of each key."""
        lake = LakeLocation(self.lake)
        state = _State()
        for path in self.paths:
            state.add(self._newest_in(lake / "samples", path))
        newest = state.newest()
        return NewestResult() if newest is None else self._sorted(lake / "latest", newest)

    def _newest_in(self, place: LakeLocation, path: str) -> pa.Table:
        with open_file(place, path, latest.MERGED, coded=WORDS) as file:
            noted = file.notes.get(NEWEST)
            if noted is not None:
                newest = pa.ipc.open_stream(noted).read_all()
                if self._has_all_of(newest.schema.metadata):
                    return newest
            return latest.newest_of_samples(self._wanted(file.read(latest.MERGED.names)))

    def _has_all_of(self, about: Mapping[bytes, bytes]) -> bool:
        """Whether the rows of a file are all wanted."""
        return about[b"journal"].decode() == self.journal and all(
            start <= first and last < end
            for partition, (first, last) in json.loads(about[b"offsets"]).items()
            for start, end in [self.ranges.get(int(partition), (0, 0))]
        )

    def _wanted(self, rows: pa.Table) -> pa.Table:
        among = np.zeros(rows.num_rows, np.bool_)
        partitions, offsets = rows["partition"].to_numpy(), rows["offset"].to_numpy()
        for partition, (start, end) in self.ranges.items():
            among |= (partitions == partition) & (offsets >= start) & (offsets < end)
        wanted = pc.and_(pc.equal(rows["journal"], self.journal), pa.array(among))
        return rows if pc.all(wanted).as_py() else rows.filter(wanted)

    def _sorted(self, place: LakeLocation, state: pa.Table) -> NewestResult:
        parts = _by_bucket(state, self.buckets)
        if self.merge is None:
            return NewestResult(scratch=_write_scratch(place, parts))
        wild = parts.pop(-1, None)
        # An update with wildcards must be remembered where no key is yet, too.
        touched = set(parts) if wild is None else set(range(self.buckets))
        done = []
        for bucket in sorted(touched):
            states = [part for part in (parts.get(bucket), wild) if part is not None]
            had = self.merge.get(bucket)
            file = _merge_bucket(place, bucket, had, states, self.remember)
            done.append(Bucket(bucket, file, had))
        return NewestResult(tuple(done))


@dataclass(frozen=True, slots=True)
class ShownTask:
    """Files of `latest`, whoever wrote them, whose rows go into buckets again."""

    lake: str
    paths: tuple[str, ...]
    buckets: int

    def run(self) -> NewestResult:
        """Write the rows for the tasks that merge."""
        place = LakeLocation(self.lake) / "latest"
        names = latest.MERGED.names
        rows = [read_table(place, path, latest.MERGED, names) for path in self.paths]
        state = latest.merged(rows)
        if not state.num_rows:
            return NewestResult()
        return NewestResult(scratch=_write_scratch(place, _by_bucket(state, self.buckets)))


@dataclass(frozen=True, slots=True)
class MergeTask:
    """Some buckets of `latest`, and the scratch files that have news for them."""

    lake: str
    buckets: Mapping[int, str | None]
    scratch: tuple[ScratchFile, ...]
    remember: float = 86400.0

    def run(self) -> NewestResult:
        """Write each bucket anew."""
        place = LakeLocation(self.lake) / "latest"
        done = []
        readers = [
            (pa.ipc.open_file(place.filesystem.open_input_file(place.path(one.path))), one.buckets)
            for one in self.scratch
        ]
        for bucket, had in self.buckets.items():
            states = [
                pa.Table.from_batches([reader.get_batch(n)])
                for reader, buckets in readers
                for n, of in enumerate(buckets)
                if of in (bucket, -1)
            ]
            file = _merge_bucket(place, bucket, had, states, self.remember)
            done.append(Bucket(bucket, file, had))
        return NewestResult(tuple(done))


def newest_note(rows: pa.Table) -> dict[bytes, bytes]:
    """What the footer of a file with these rows of one journal says of the newest among them."""
    newest = latest.newest_of_samples(rows).select(latest.MERGED.names)
    if newest.num_rows * FEW > rows.num_rows or newest.nbytes > MOST_NOTED:
        return {}
    partitions, offsets = rows["partition"].to_numpy(), rows["offset"].to_numpy()
    spans = {
        str(partition): [int(mine.min()), int(mine.max())]
        for partition in np.unique(partitions)
        for mine in [offsets[partitions == partition]]
    }
    about = {"journal": newest["journal"][0].as_py(), "offsets": json.dumps(spans)}
    noted = newest.cast(latest.MERGED).replace_schema_metadata(about)
    sink = io.BytesIO()
    with pa.ipc.new_stream(
        sink, noted.schema, options=pa.ipc.IpcWriteOptions(compression="zstd")
    ) as writer:
        writer.write_table(noted)
    return {NEWEST: sink.getvalue()}


def memory_of(place: LakeLocation, path: str) -> pa.Table | None:
    """What the footer of a bucket remembers besides its rows, as `latest.memory` gave it."""
    aside = read_notes(place, path).get(MEMORY)
    return None if aside is None else pa.ipc.open_stream(aside).read_all()


class _State:
    """Rows that become the newest of each key as soon as there are many."""

    def __init__(self) -> None:
        self._held: list[pa.Table] = []
        self._rows = self._bytes = 0

    def add(self, rows: pa.Table) -> None:
        self._held.append(rows)
        self._rows += rows.num_rows
        self._bytes += rows.nbytes
        if self._rows > MOST_ROWS or self._bytes > MOST_BYTES:
            self._held = [latest.merged(self._held)]
            self._rows = self._bytes = 0

    def newest(self) -> pa.Table | None:
        rows = latest.merged(self._held) if self._held else None
        return rows if rows is not None and rows.num_rows else None


def _by_bucket(state: pa.Table, buckets: int) -> dict[int, pa.Table]:
    numbers = latest.buckets_of(state, buckets)
    return {
        int(bucket): state.filter(pa.array(numbers == bucket))
        for bucket in np.unique(numbers).tolist()
    }


def _write_scratch(place: LakeLocation, parts: Mapping[int, pa.Table]) -> ScratchFile:
    folder = f"_scratch/{uuid.uuid4().hex}"
    place.make(folder)
    path = f"{folder}/state.arrow"
    with (
        place.filesystem.open_output_stream(place.path(path)) as out,
        pa.ipc.new_file(out, latest.STATE) as writer,
    ):
        for part in parts.values():
            writer.write_batch(part.combine_chunks().to_batches()[0])
    return ScratchFile(path, tuple(parts))


def _merge_bucket(
    place: LakeLocation, bucket: int, had: str | None, states: list[pa.Table], remember: float
) -> DataFile:
    states = list(states)
    if had is not None:
        with open_file(place, had, latest.MERGED) as file:
            before, aside = file.read(latest.MERGED.names), file.notes.get(MEMORY)
        memory = None if aside is None else pa.ipc.open_stream(aside).read_all()
        states.append(latest.as_state(before, memory))
    state = latest.merged(states)
    since = int((time.time() - remember) * 1_000_000)
    memory = latest.remembered(latest.memory(state), since)
    sink = io.BytesIO()
    with pa.ipc.new_stream(
        sink, latest.MEMORY, options=pa.ipc.IpcWriteOptions(compression="zstd")
    ) as writer:
        writer.write_table(memory)
    return write_file(
        place,
        latest.live(state).sort_by("key"),
        {"bucket": str(bucket)},
        uuid.uuid4().hex,
        metadata={MEMORY: sink.getvalue()} if memory.num_rows else None,
    )
