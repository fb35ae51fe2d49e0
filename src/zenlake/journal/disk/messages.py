"""Arrow's encapsulated messages, one at a time: the words that an Arrow file is made of.

A sealed segment is an Arrow IPC file, and so is the write-ahead file as far as it has come. What
pyarrow offers writes such a file in one go; here its messages are made one by one, so that each
can be framed, summed and flushed on its own, and the footer is made last.
"""

from __future__ import annotations

import struct
from functools import cache
from typing import Any, Final, NamedTuple

import pyarrow as pa
from pyarrow import ipc

from zenlake.journal.schema import KEY, SCHEMA

__all__ = [
    "CODED",
    "FILE_MAGIC",
    "ArrowMessages",
    "MessageSpan",
    "footer",
    "key_message",
    "keys_of",
    "metadata_length",
    "preamble",
]

#: The rows as a record batch message has them: a dictionary is a message of its own, the batch
#: holds numbers. So one writes and reads the numbers, and keeps the dictionary oneself.
CODED: Final = SCHEMA.set(1, pa.field("key", pa.int32(), nullable=False))

FILE_MAGIC: Final = b"ARROW1"
#: What ends the stream of messages, in front of the footer.
END_OF_STREAM: Final = b"\xff\xff\xff\xff\0\0\0\0"
_KEYS: Final = pa.schema([pa.field("key", KEY, nullable=False)])
_DELTAS: Final = ipc.IpcWriteOptions(emit_dictionary_deltas=True)
_BLOCK: Final = struct.Struct("<qi4xq")


class MessageSpan(NamedTuple):
    """Where a message lies in its file."""

    position: int
    metadata: int
    body: int


def metadata_length(message: Any) -> int:
    """How many bytes of an encapsulated message come before its body."""
    return 8 + int(struct.unpack_from("<i", message, 4)[0])


class _Parts:
    """A file for pyarrow that keeps what is written, where it is: nothing is copied but crumbs."""

    #: What is smaller is gathered: one piece of bytes costs less than many buffers.
    CRUMB: Final = 4096

    def __init__(self) -> None:
        self.closed = False
        self._parts: list[Any] = []
        self._crumbs = bytearray()

    def write(self, data: Any) -> int:
        """Called by pyarrow, with bytes or with a buffer of a column."""
        size = len(data)
        if size < self.CRUMB:
            self._crumbs += data
        else:
            self._sweep()
            self._parts.append(data)
        return size

    def _sweep(self) -> None:
        if self._crumbs:
            self._parts.append(bytes(self._crumbs))
            self._crumbs.clear()

    def take(self) -> list[Any]:
        """What was written since the last time."""
        self._sweep()
        parts = self._parts
        self._parts = []
        return parts

    def tell(self) -> int:
        """Always a good place to begin: messages are made one by one."""
        return 0

    def flush(self) -> None:
        """There is nothing to flush."""

    def close(self) -> None:
        """There is nothing to close."""
        self.closed = True


class ArrowMessages:
    """Makes record batch messages of `CODED` rows, as pieces that lie where the columns lie."""

    def __init__(self) -> None:
        self._parts = _Parts()
        self._writer = ipc.new_stream(pa.PythonFile(self._parts, "w"), CODED)
        # The first batch of a stream has the schema before it.
        self._writer.write_batch(pa.RecordBatch.from_pylist([], schema=CODED))
        self._parts.take()

    def message(self, batch: pa.RecordBatch) -> list[Any]:
        """The bytes that `batch.serialize()` gives, in pieces."""
        self._writer.write_batch(batch)
        return self._parts.take()


def preamble(schema: pa.Schema) -> bytes:
    """How a file of these columns begins."""
    return FILE_MAGIC + b"\0\0" + bytes(schema.serialize())


def _no_rows(keys: list[str]) -> pa.RecordBatch:
    column = pa.DictionaryArray.from_arrays(pa.array([], pa.int32()), pa.array(keys, pa.string()))
    return pa.record_batch([column], schema=_KEYS)


def _dictionaries(stream: Any) -> list[bytes]:
    """The dictionary messages of a stream."""
    dictionaries = []
    position = 0
    view = memoryview(stream)
    reader = ipc.MessageReader.open_stream(pa.BufferReader(stream))
    for message in reader:
        size = metadata_length(view[position:]) + (message.body.size if message.body else 0)
        if message.type == "dictionary":
            dictionaries.append(bytes(view[position : position + size]))
        position += size
    return dictionaries


def key_message(keys: list[str], *, more: bool) -> bytes:
    """The message that brings new keys; `more` when they go on from those before."""
    sink = pa.BufferOutputStream()
    with ipc.new_stream(sink, _KEYS, options=_DELTAS) as writer:
        if more:
            # A delta is what a dictionary has beyond the one before it.
            writer.write_batch(_no_rows([""]))
            writer.write_batch(_no_rows(["", *keys]))
        else:
            writer.write_batch(_no_rows(keys))
    return _dictionaries(sink.getvalue())[-1]


@cache
def _key_stream() -> tuple[bytes, bytes, bytes]:
    """What goes before a first dictionary, before a delta, and after either, to be a stream."""
    schema = bytes(_KEYS.serialize())
    rows = bytes(pa.record_batch([pa.array([], pa.int32())], names=["key"]).serialize())
    return schema, schema + key_message([""], more=False), rows + END_OF_STREAM


def keys_of(message: bytes, *, more: bool) -> pa.StringArray:
    """The keys that a dictionary message brings."""
    first, delta, end = _key_stream()
    stream = (delta if more else first) + bytes(message) + end
    batch = ipc.open_stream(stream).read_next_batch()
    return batch.column(0).dictionary.slice(1 if more else 0)


def footer(schema: pa.Schema, dictionaries: list[MessageSpan], batches: list[MessageSpan]) -> bytes:
    """How a file ends: where its messages are.

    pyarrow writes the footer of an empty file, and two vectors are put at its end: a FlatBuffers
    table points forward to what it holds, so pointing elsewhere is all it takes.
    """
    sink = pa.BufferOutputStream()
    ipc.new_file(sink, schema).close()
    empty = bytes(sink.getvalue())
    length = struct.unpack_from("<i", empty, len(empty) - 10)[0]
    table = bytearray(empty[len(empty) - 10 - length : len(empty) - 10])
    root = struct.unpack_from("<I", table, 0)[0]
    fields = root - struct.unpack_from("<i", table, root)[0]
    for index, places in ((2, dictionaries), (3, batches)):
        # Footer { version, schema, dictionaries, recordBatches, custom_metadata }
        field = root + struct.unpack_from("<H", table, fields + 4 + 2 * index)[0]
        table += bytes((4 - len(table)) % 8)  # the structs after the count want to be at 8
        struct.pack_into("<I", table, field, len(table) - field)
        table += struct.pack("<I", len(places))
        for place in places:
            table += _BLOCK.pack(*place)
    return END_OF_STREAM + bytes(table) + struct.pack("<i", len(table)) + FILE_MAGIC
