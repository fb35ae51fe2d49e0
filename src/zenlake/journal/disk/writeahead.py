"""The write-ahead file: a segment in the making, to which blocks are appended.

It is an Arrow IPC file without its end. Sealing writes the end and changes the name; the rows are
written once.
"""

from __future__ import annotations

import errno
from typing import Any, Final

import numpy as np
import pyarrow as pa
from pyarrow import ipc

from zenlake.errors import JournalCorrupt, JournalError
from zenlake.journal.disk.files import File, JournalFiles
from zenlake.journal.disk.frame import HEADER, Block, Torn, checksum, walk
from zenlake.journal.disk.keys import KeyNumbers
from zenlake.journal.disk.layout import FORMAT, TEMPORARY, folder, open_path, sealed_path
from zenlake.journal.disk.messages import (
    CODED,
    ArrowMessages,
    MessageSpan,
    footer,
    key_message,
    keys_of,
    metadata_length,
    preamble,
)
from zenlake.journal.disk.segment import Segment, index_of
from zenlake.journal.schema import SCHEMA

__all__ = ["Recovered", "WriteAhead", "segment_schema"]

_KEY: Final = SCHEMA.get_field_index("key") - 1
_HLC: Final = SCHEMA.get_field_index("hlc")
_TIME: Final = SCHEMA.get_field_index("time")
_UNNUMBERED_CODED: Final = CODED.remove(0)


def segment_schema(journal: str, partition: int, first: int) -> pa.Schema:
    """The columns, and whose rows they are: a file that lies in the wrong place says so."""
    return SCHEMA.with_metadata(
        {
            "zenlake.format": str(FORMAT),
            "zenlake.journal": journal,
            "zenlake.partition": str(partition),
            "zenlake.first": str(first),
        }
    )


#: What a block of a packed segment has at most, where its rows are not larger.
PACKED_ROWS: Final = 16_384
PACKED_BYTES: Final = 4 << 20


class WriteAhead:
    """The open segment of one partition; one thread writes it."""

    def __init__(
        self, files: JournalFiles, journal: str, partition: int, first: int, path: str | None = None
    ) -> None:
        """`path`: where the file is while it is open, if not where it usually is."""
        self._files = files
        self._journal = journal
        self._partition = partition
        self._schema = segment_schema(journal, partition, first)
        self.path: Final = path or open_path(partition, first)
        self.first: Final = first
        self.next = first
        self.blocks: list[Block] = []
        self.opened = 0.0
        self._file: File | None = None
        self._start = preamble(self._schema)
        self._position = 0
        self._named = False
        self._headers: list[bytes] = []
        self._dictionaries: list[MessageSpan] = []
        self._batches: list[MessageSpan] = []
        self._keys = KeyNumbers()
        self._messages: ArrowMessages | None = None

    @property
    def size(self) -> int:
        """How many bytes the file has."""
        return self._position

    @property
    def keys(self) -> list[str]:
        """The keys of its rows."""
        return self._keys.keys()

    def append(self, batch: pa.RecordBatch) -> Block:
        """Number the rows and write them as a block; raises `OSError` and is as before."""
        columns = batch.columns
        try:
            columns[_KEY] = self._keys.number(columns[_KEY])
            return self._append(columns)
        except BaseException:
            self._keys.reject()
            raise

    def _append(self, columns: list[Any]) -> Block:
        """Write columns, without offsets, whose keys have the segment's numbers."""
        offsets = np.arange(self.next, self.next + len(columns[0]), dtype=np.int64)
        batch = pa.RecordBatch.from_arrays([pa.array(offsets), *columns], schema=CODED)
        fresh = self._keys.proposed()
        keys = key_message(fresh, more=len(self._keys) > 0) if fresh else b""
        if self._messages is None:
            self._messages = ArrowMessages()
        rows = self._messages.message(batch)
        parts = [keys, *rows] if fresh else rows
        hlc = np.asarray(batch.column(_HLC))
        time = np.asarray(batch.column(_TIME).view(pa.int64()))
        start = self._position or len(self._start)
        block = Block(
            position=start,
            length=sum([len(part) for part in parts]),
            first=self.next,
            rows=len(batch),
            keys=len(keys),
            min_hlc=int(hlc.min()),
            max_hlc=int(hlc.max()),
            min_time=int(time.min()),
            max_time=int(time.max()),
        )
        header = block.header(checksum(block, parts))
        self._write([header, *parts] if self._position else [self._start, header, *parts])
        self._keys.accept()
        self._note(block, header, keys, rows[0])
        return block

    def packed(self) -> WriteAhead:
        """The same rows in fewer blocks, in another file that is not sealed yet.

        Who records little makes small blocks, and each has two kilobytes of its own.
        """
        other = WriteAhead(
            self._files, self._journal, self._partition, self.first, self.path + TEMPORARY
        )
        other._keys.propose(self.keys)
        source = self._files.open(self.path)
        run: list[pa.RecordBatch] = []
        rows = size = 0
        for block in self.blocks:
            if run and (rows + block.rows > PACKED_ROWS or size + block.length > PACKED_BYTES):
                other._append(pa.concat_batches(run).columns)
                run, rows, size = [], 0, 0
            source.seek(block.position + HEADER.size + block.keys)
            batch = ipc.read_record_batch(source.read_buffer(block.length - block.keys), CODED)
            run.append(pa.RecordBatch.from_arrays(batch.columns[1:], schema=_UNNUMBERED_CODED))
            rows += block.rows
            size += block.length
        other._append(pa.concat_batches(run).columns)
        return other

    def _write(self, parts: list[Any]) -> None:
        if self._file is None:
            self._file = self._files.create(self.path)
        try:
            self._file.write(parts)
        except OSError:
            self._file.truncate(self._position)
            raise

    def _note(self, block: Block, header: bytes, keys: Any, rows: Any) -> None:
        """Remember a block; `keys` and `rows` are its messages, or how they begin."""
        position = block.position + HEADER.size
        if block.keys:
            metadata = metadata_length(keys)
            self._dictionaries.append(MessageSpan(position, metadata, block.keys - metadata))
            position += block.keys
        metadata = metadata_length(rows)
        self._batches.append(MessageSpan(position, metadata, block.length - block.keys - metadata))
        self._headers.append(header)
        self.blocks.append(block)
        self._position = block.after
        self.next = block.end

    def fsync(self) -> None:
        """Return when all blocks survive a loss of power."""
        if self._file is None:
            return
        try:
            self._file.fsync()
            if not self._named:
                self._files.sync(folder(self._partition))
                self._named = True
        except OSError as error:
            raise _lost(self.path, error) from error

    def seal(self, closed: float, path: str | None = None) -> Segment:
        """Write the end, and give the file the name of a sealed segment, or another."""
        assert self._file is not None, "an empty file is never sealed"
        index = index_of(self._headers, self.blocks[0].position)
        end = [index, footer(self._schema, self._dictionaries, self._batches)]
        path = path or sealed_path(self._partition, self.first)
        self._write(end)
        try:
            self.fsync()
            self._files.rename(self.path, path)
        except OSError:
            self._file.truncate(self._position)
            raise
        self.close()
        try:
            self._files.sync(folder(self._partition))
        except OSError as error:
            # Without a descriptor the names are synced with the manifest: until then the file is
            # found under its old name or its new one, and its rows are safe.
            if error.errno not in (errno.EMFILE, errno.ENFILE):
                raise _lost(path, error) from error
        size = self._position + sum(len(part) for part in end)
        return Segment.of(self.blocks, self.keys, path=path, size=size, sealed=True, closed=closed)

    def close(self) -> None:
        """Let go of the file."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def recover(self) -> Recovered:
        """Read the file that an earlier life left, keep its whole blocks and cut the rest."""
        source = self._files.open(self.path)
        size = source.size()
        start = len(self._start)
        torn = ""
        position = 0
        if size < start or source.read_at(start, 0) != self._start:
            torn = "it does not begin as a segment of this journal and partition does"
        else:
            position = start
            try:
                for block, header, body in walk(source, start, size, self.first):
                    self._restore(block, header, body)
                    position = block.after
            except Torn as reason:
                torn = str(reason)
        recovered = Recovered(self.next, size - position, torn, len(self.blocks), position)
        source.close()
        return recovered

    def resume(self) -> None:
        """Cut what `recover` did not keep, and make the rest durable: it may be in memory only."""
        if not self.blocks:
            self._files.remove(self.path)
            return
        self._file = self._files.extend(self.path)
        self._file.truncate(self._position)
        self.fsync()

    def _restore(self, block: Block, header: bytes, body: Any) -> None:
        keys, rows = body.slice(0, block.keys), body.slice(block.keys)
        if block.keys:
            fresh = keys_of(bytes(keys), more=len(self._keys) > 0)
            self._keys.restore(fresh.to_pylist())
        self._note(block, header, keys, rows)


def _lost(path: str, error: OSError) -> Exception:
    if error.errno in (errno.EMFILE, errno.ENFILE):
        return error  # nothing was synced yet; it can be tried again
    # After a failed fsync the system may call lost pages clean, and the next fsync succeeds.
    return JournalError(
        f"fsync of {path} failed ({error}): what was written since the last one may be lost. "
        "Nothing more is written; see to the disk, then open the journal anew"
    )


class Recovered:
    """What `recover` found: how far the file is whole, and why not further."""

    __slots__ = ("blocks", "cut", "next", "position", "torn")

    def __init__(self, next: int, cut: int, torn: str, blocks: int, position: int) -> None:
        self.next = next
        self.cut = cut
        self.torn = torn
        self.blocks = blocks
        self.position = position

    def must_reach(self, watermark: int, where: str) -> None:
        """Refuse to go on when acknowledged rows are not here."""
        if self.next < watermark:
            raise JournalCorrupt(
                f"{where} is damaged in block {self.blocks} at byte {self.position}: "
                f"{self.torn or 'it ends there'}. Offsets {self.next} to {watermark} were "
                "acknowledged and are not readable; restore the file from a copy, nothing was "
                "changed"
            )
