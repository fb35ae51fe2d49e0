"""Rows out of files: a sealed segment by its footer, the write-ahead file block by block."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, Final, TypeAlias

import numpy as np
import pyarrow as pa
from pyarrow import ipc

from zenlake.errors import JournalCorrupt
from zenlake.journal.disk.files import Shelf
from zenlake.journal.disk.frame import HEADER, Block, Torn, verified, walk
from zenlake.journal.disk.layout import is_rewritten
from zenlake.journal.disk.messages import CODED, keys_of, preamble
from zenlake.journal.disk.segment import Segment, read_index
from zenlake.journal.disk.writeahead import segment_schema
from zenlake.journal.reading.filter import KeyChoice, RowFilter
from zenlake.journal.schema import RETIRED, SCHEMA

__all__ = ["Damaged", "SealedFile", "TailFile"]

Damaged: TypeAlias = Callable[[Exception], None]
"""Called with what is wrong with rows that are left out."""

_KEY: Final = SCHEMA.get_field_index("key")

#: A scan that leaves values out compares no checksums where rows have more bytes than this: it
#: would have to read all of them.
NARROW: Final = 256


class VerifiedBlocks:
    """For files that were read: which of their blocks had their checksums compared.

    Each is compared once. What a disk forgets after that, a process that starts anew will find.
    """

    def __init__(self, most: int = 10_000) -> None:
        """Nothing is known; at most `most` files are, the oldest are forgotten first."""
        self._files: dict[object, bytearray] = {}
        self._most = most
        #: How many checksums were compared.
        self.compared = 0

    def __len__(self) -> int:
        """Of how many files something is known."""
        return len(self._files)

    def clear(self) -> None:
        """Have everything compared again."""
        self._files.clear()

    def of(self, mark: object, blocks: int) -> bytearray:
        """A flag for each block of the file with this mark; a file without one is always new."""
        flags = self._files.get(mark)
        if flags is None or len(flags) != blocks:
            flags = bytearray(blocks)
            if mark is not None:
                if len(self._files) >= self._most:
                    self._files.pop(next(iter(self._files)), None)
                self._files[mark] = flags
        return flags


VERIFIED: Final = VerifiedBlocks()
"""What this process has verified."""


def _wanted(
    blocks: list[Block], start: int, end: int, chosen: RowFilter
) -> Iterator[tuple[int, Block]]:
    """The blocks that may have wanted rows, with their places in the file."""
    for number, block in enumerate(blocks):
        if (
            block.end > start
            and block.first < end
            and chosen.meets_time(block.min_hlc, block.max_hlc)
        ):
            yield number, block


def _give(
    batch: pa.RecordBatch,
    block: Block,
    start: int,
    end: int,
    chosen: RowFilter,
    choice: KeyChoice,
    hide: bool,
) -> pa.RecordBatch | None:
    """The wanted rows of a block's batch."""
    low, high = max(start - block.first, 0), min(end - block.first, block.rows)
    if low > 0 or high < block.rows:
        batch = batch.slice(low, high - low)
    timed = chosen.timed and not chosen.within_time(block.min_hlc, block.max_hlc)
    return chosen.apply(batch, choice, timed=timed, hide=hide)


class SealedFile:
    """A sealed segment that is being read; it stays readable when retention lets go of it."""

    def __init__(self, shelf: Shelf, path: str, verified_blocks: VerifiedBlocks = VERIFIED) -> None:
        self.path = path
        mark = shelf.mark(path)
        self._verified_blocks = verified_blocks
        self._file = shelf.open(path)
        self._reading = threading.Lock()
        self.blocks = read_index(self._file, path)
        #: For each block whether its checksum was compared.
        self._verified = verified_blocks.of(mark, len(self.blocks))

    def segment(self) -> Segment:
        """What the segment holds, from the file itself."""
        keys: list[str] = []
        for block in self.blocks:
            if block.keys:
                message = self._file.read_at(block.keys, block.position + HEADER.size)
                keys += keys_of(message, more=bool(keys)).to_pylist()
        found = Segment.of(self.blocks, keys, path=self.path, size=self._file.size(), sealed=True)
        return replace(found, retired=self._retired()) if is_rewritten(self.path) else found

    def _retired(self) -> int:
        """How many rows a rule of retention has retired."""
        chosen = RowFilter(columns=("origin",), check=False)
        rows = self.read(self.blocks[0].first, self.blocks[-1].end, chosen, KeyChoice(()), False)
        return sum(int(np.count_nonzero(np.asarray(one.column(0)) == RETIRED)) for one in rows)

    def read(
        self, start: int, end: int, chosen: RowFilter, choice: KeyChoice, hide: bool
    ) -> Iterator[pa.RecordBatch]:
        """The wanted rows between two offsets.

        Where checksums are not compared, only the wanted columns are read, and it is made sure
        that nothing in them points elsewhere.
        """
        for batch, _ in self._read(start, end, chosen, choice, hide):
            if batch is not None:
                yield batch

    def _read(
        self, start: int, end: int, chosen: RowFilter, choice: KeyChoice, hide: bool
    ) -> Iterator[tuple[pa.RecordBatch | None, int]]:
        """The wanted rows block by block, if there are any in it, and the offset after each."""
        wanted = list(_wanted(self.blocks, start, end, chosen))
        if not wanted:
            return
        names = chosen.reading(hide)
        summed = self._checks(chosen)
        batches = self._verified_batches(wanted, names) if summed else self._batches(wanted, names)
        for (_, block), batch in zip(wanted, batches, strict=True):
            yield _give(batch, block, start, end, chosen, choice, hide), block.end

    def salvage(
        self,
        start: int,
        end: int,
        chosen: RowFilter,
        choice: KeyChoice,
        hide: bool,
        listed: frozenset[str] | None,
        damaged: Damaged,
    ) -> Iterator[pa.RecordBatch]:
        """The wanted rows that can be read; `damaged` hears of blocks that are left out.

        `listed`: all keys of the segment, as its manifest knows them.
        """
        given = start
        try:
            for batch, after in self._read(start, end, chosen, choice, hide):
                given = after
                if batch is not None:
                    yield batch
            return
        except JournalCorrupt:
            pass  # found again below, where the blocks after it do not depend on it
        schema = _schema(chosen.reading(hide))
        dictionary, doubtful = self._salvaged_keys(listed)
        for number, block in _wanted(self.blocks, given, end, chosen):
            try:
                with self._damage(number, block):
                    rows = _batch(
                        self._verified_body(number, block)[block.keys :], schema, dictionary
                    )
                    _check_length(rows, block)
            except JournalCorrupt as error:
                damaged(error)
                continue
            salvaged = _give(rows, block, given, end, chosen, choice, hide)
            if salvaged is not None and doubtful and "key" in salvaged.schema.names:
                salvaged = self._without(salvaged, doubtful, block, damaged)
            if salvaged is not None:
                yield salvaged

    def _salvaged_keys(self, listed: frozenset[str] | None) -> tuple[Any, list[tuple[int, int]]]:
        """The keys of all blocks, and which of them (from, to) no checksum vouches for.

        Keys of a damaged block are believed if together they are those that the manifest lists.
        Where there are too many to list, or they cannot be read at all, rows of other blocks
        that refer to them are lost with it.
        """
        salvaged = pa.array([], pa.string())
        doubtful: list[tuple[int, int]] = []
        for number, block in enumerate(self.blocks):
            if not block.keys:
                continue
            start = len(salvaged)
            try:
                self._verified_body(number, block)
                is_whole = True
            except (OSError, Torn):
                is_whole = False
            try:
                message = self._file.read_at(block.keys, block.position + HEADER.size)
                keys = keys_of(message, more=bool(start))
                keys.validate(full=True)
                salvaged = pa.concat_arrays([salvaged, keys])
            except (pa.ArrowException, OSError, ValueError, StopIteration):
                # How many there were is not known: no code from here on means anything.
                most = max([b.end for b in self.blocks]) - self.blocks[0].first
                salvaged = pa.concat_arrays([salvaged, pa.array([""] * most, pa.string())])
                return salvaged, [*doubtful, (start, len(salvaged))]
            if not is_whole:
                doubtful.append((start, len(salvaged)))
        if (
            listed is not None
            and len(salvaged) == len(listed)
            and set(salvaged.to_pylist()) == listed
        ):
            doubtful = []
        return salvaged, doubtful

    def _without(
        self,
        batch: pa.RecordBatch,
        doubtful: list[tuple[int, int]],
        block: Block,
        damaged: Damaged,
    ) -> pa.RecordBatch | None:
        """The rows whose keys are known."""
        codes = np.asarray(batch.column("key").indices)
        sure = np.ones(len(codes), np.bool_)
        for low, high in doubtful:
            sure &= (codes < low) | (codes >= high)
        if sure.all():
            return batch
        damaged(
            JournalCorrupt(
                f"{self.path}: {int((~sure).sum())} rows of offsets {block.first} to {block.end} "
                "have keys whose names stood in a damaged block"
            )
        )
        return batch.filter(pa.array(sure)) if sure.any() else None

    def _checks(self, chosen: RowFilter) -> bool:
        """Whether checksums are compared: as was asked, else where that is not too much to read."""
        if chosen.check is not None:
            return chosen.check
        if not isinstance(self._file, pa.MemoryMappedFile | pa.BufferReader):
            return False
        rows = self.blocks[-1].end - self.blocks[0].first
        return "value" in chosen.needed or sum([b.length for b in self.blocks]) <= NARROW * rows

    def _batches(
        self, wanted: list[tuple[int, Block]], names: list[str]
    ) -> Iterator[pa.RecordBatch]:
        """Columns as the footer finds them, whatever their bytes are."""
        reader = self._reader(names)
        for number, block in wanted:
            with self._damage(number, block):
                batch = reader.get_batch(number).select(names)
                batch.validate(full=True)
                _check_length(batch, block)
            yield batch

    def _verified_batches(
        self, wanted: list[tuple[int, Block]], names: list[str]
    ) -> Iterator[pa.RecordBatch]:
        """Columns out of blocks whose checksums were compared; the footer is not needed for it."""
        schema = _schema(names)
        dictionary = self._dictionary(wanted[-1][0])
        for number, block in wanted:
            with self._damage(number, block):
                batch = _batch(self._verified_body(number, block)[block.keys :], schema, dictionary)
                _check_length(batch, block)
            yield batch

    def _verified_body(self, number: int, block: Block) -> Any:
        """The messages of a block, after their checksum was compared, now or before."""
        with self._reading:
            self._file.seek(block.position)
            data = self._file.read_buffer(HEADER.size + block.length)
        if self._verified[number]:
            return data[HEADER.size :]
        self._verified_blocks.compared += 1
        body = verified(block, data)
        self._verified[number] = 1
        return body

    def _dictionary(self, last: int) -> Any:
        """The keys that a block and those before it bring, wanted or not."""
        dictionary = pa.array([], pa.string())
        for number, block in enumerate(self.blocks[: last + 1]):
            if block.keys:
                with self._damage(number, block):
                    message = self._verified_body(number, block)[: block.keys]
                    dictionary = pa.concat_arrays(
                        [dictionary, keys_of(message, more=bool(len(dictionary)))]
                    )
        return dictionary

    @contextlib.contextmanager
    def _damage(self, number: int, block: Block) -> Iterator[None]:
        """Whatever is wrong with a block, say where it is."""
        try:
            yield
        except (pa.ArrowException, OSError, Torn) as error:
            raise JournalCorrupt(
                f"{self.path} is damaged in block {number} at byte {block.position} "
                f"(offsets {block.first} to {block.end}): {error}"
            ) from error

    def _reader(self, names: list[str]) -> Any:
        options = ipc.IpcReadOptions()
        due = SCHEMA
        if not isinstance(self._file, pa.MemoryMappedFile | pa.BufferReader):
            # Of a file that is in memory all columns are there at no cost, and to choose some
            # makes pyarrow copy them; anywhere else what is not chosen is not fetched.
            options.included_fields = [SCHEMA.get_field_index(name) for name in names]
            due = _schema(names)
        try:
            reader = ipc.open_file(self._file, options=options)
            if reader.num_record_batches != len(self.blocks):
                raise pa.ArrowInvalid("its footer and its index do not agree")
            if not reader.schema.equals(due):
                raise pa.ArrowInvalid("its columns are not those of a journal")
        except (pa.ArrowException, OSError) as error:
            raise JournalCorrupt(
                f"{self.path} is not a whole segment: {error}; restore it from a copy"
            ) from error
        return reader


def _check_length(batch: pa.RecordBatch, block: Block) -> None:
    if len(batch) != block.rows:
        raise Torn(f"it has {len(batch)} rows, and its header says {block.rows}")


def _schema(names: list[str]) -> pa.Schema:
    return pa.schema([SCHEMA.field(name) for name in names])


def _batch(message: Any, schema: pa.Schema, dictionary: Any) -> pa.RecordBatch:
    """The columns of a record batch message, its keys by the dictionary of their segment."""
    rows = ipc.read_record_batch(message, CODED)
    columns = rows.columns
    return pa.RecordBatch.from_arrays(
        [
            pa.DictionaryArray.from_arrays(columns[_KEY], dictionary)
            if name == "key"
            else columns[SCHEMA.get_field_index(name)]
            for name in schema.names
        ],
        schema=schema,
    )


class TailFile:
    """The write-ahead file as far as it is durable; it grows while it is read.

    What was walked and summed once is remembered, so following the tail costs what is new.
    """

    def __init__(self, shelf: Shelf, path: str, journal: str, partition: int, first: int) -> None:
        self._shelf = shelf
        self.path = path
        self.first = first
        self.next = first
        self.blocks: list[Block] = []
        self._position = 0
        self._start = preamble(segment_schema(journal, partition, first))
        self._dictionary: Any = pa.array([], pa.string())
        # Kept: sealing renames the file or writes it anew, and this one stays as it was.
        self._file: Any = None
        self._reading = threading.Lock()

    def advance(self, watermark: int) -> None:
        """Walk the blocks up to the watermark; raises `FileNotFoundError` when it was sealed."""
        if self.next >= watermark:
            return
        file = self._shelf.open(self.path)
        size = file.size()
        if not self._position:
            if size < len(self._start) or file.read_at(len(self._start), 0) != self._start:
                raise JournalCorrupt(
                    f"{self.path} does not begin as a segment of this journal and partition does"
                )
            self._position = len(self._start)
        try:
            for block, _, body in walk(file, self._position, size, self.next):
                if block.keys:
                    fresh = keys_of(body[: block.keys], more=bool(len(self._dictionary)))
                    self._dictionary = pa.concat_arrays([self._dictionary, fresh])
                self.blocks.append(block)
                self._position, self.next = block.after, block.end
                if self.next >= watermark:
                    break
        except Torn as torn:
            raise self._damaged(str(torn), watermark) from torn
        if self.next < watermark:
            raise self._damaged("the file ends there", watermark)
        with self._reading:
            self._file = file

    def _damaged(self, why: str, watermark: int) -> JournalCorrupt:
        return JournalCorrupt(
            f"{self.path} is damaged in block {len(self.blocks)} at byte {self._position}: {why}. "
            f"Offsets {self.next} to {watermark} were acknowledged and are not readable"
        )

    def segment(self) -> Segment:
        """What is known about the rows so far."""
        return Segment.of(
            self.blocks,
            self._dictionary.to_pylist(),
            path=self.path,
            size=self._position,
            sealed=False,
        )

    def read(
        self, start: int, end: int, chosen: RowFilter, choice: KeyChoice, hide: bool
    ) -> Iterator[pa.RecordBatch]:
        """The wanted rows between two offsets, of what `advance` has walked."""
        wanted = list(_wanted(self.blocks, start, end, chosen))
        if not wanted:
            return
        schema = _schema(chosen.reading(hide))
        for _, block in wanted:
            with self._reading:
                self._file.seek(block.position + HEADER.size + block.keys)
                message = self._file.read_buffer(block.length - block.keys)
            batch = _batch(message, schema, self._dictionary)
            given = _give(batch, block, start, end, chosen, choice, hide)
            if given is not None:
                yield given
