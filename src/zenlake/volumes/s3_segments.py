"""What an object of the volume `s3` holds: some batches, as records and the payloads they name.

    "zlS1"  length and CRC-32 of the index  │ index │ payloads

A store of objects has no transactions but one: an object is there whole, or not at all. So a
batch is an object, and what is known is what all objects say, in the order of their numbers:

    E   an entry, with its payload here, or in an earlier object if only its times have changed
    R   a key of which nothing is known any more
    W   an update with wildcards
    F   an expression whose updates are forgotten
    S   a sample of the history
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from zenlake.newest import Batch
from zenlake.volumes.contract import VolumeError
from zenlake.volumes.records import pack_entry, pack_wide

__all__ = [
    "HEAD_SIZE",
    "Location",
    "Record",
    "SegmentObject",
    "index_size",
    "pack",
    "records_of",
    "unpack",
]

_MAGIC: Final = b"zlS1"
_HEAD: Final = struct.Struct(">4sII")
_RECORD: Final = struct.Struct(">cIIBQQ")

HEAD_SIZE: Final = _HEAD.size


class SegmentObject(NamedTuple):
    """An object: the numbers of the batches in it, and how often it was written anew."""

    first: int
    last: int
    written: int

    @property
    def name(self) -> str:
        """The last part of the object's name."""
        return f"{self.first:016x}-{self.last:016x}-{self.written:08x}"

    @classmethod
    def parse(cls, name: str) -> SegmentObject | None:
        """The segment of a name, or None if the name is not that of one."""
        parts = name.split("-")
        try:
            if [len(part) for part in parts] != [16, 16, 8]:
                return None
            return cls(int(parts[0], 16), int(parts[1], 16), int(parts[2], 16))
        except ValueError:
            return None

    def replaces(self, other: SegmentObject) -> bool:
        """Whether all that the other says is said here."""
        inside = self.first <= other.first and other.last <= self.last
        same = (self.first, self.last) == (other.first, other.last)
        return inside and (self.written > other.written if same else True)


class Location(NamedTuple):
    """Where a payload lies."""

    segment: SegmentObject
    start: int
    size: int


class Record(NamedTuple):
    """A line of an index: what it is, of which key, its record, and its payload if it has one."""

    kind: bytes
    key: str
    record: bytes
    payload: bytes | None = None


def records_of(batch: Batch) -> Iterator[Record]:
    """What a batch says."""
    for entry in batch.entries:
        payload = None if entry.value is None else entry.value.payload
        yield Record(b"E", entry.key, pack_entry(entry, False), payload)
    for key in batch.removed:
        yield Record(b"R", key, b"")
    for update in batch.wide:
        yield Record(b"W", update.expr, pack_wide(update))
    for expr in batch.forgotten:
        yield Record(b"F", expr, b"")
    for sample in batch.samples:
        payload = None if sample.value is None else sample.value.payload
        yield Record(b"S", sample.key, pack_entry(sample, False), payload)


def pack(records: Iterable[Record]) -> bytes:
    """An object that holds records."""
    index: list[bytes] = []
    payloads: list[bytes] = []
    at = 0
    for record in records:
        name = record.key.encode()
        payload = record.payload
        size = 0 if payload is None else len(payload)
        there = payload is not None
        index.append(
            _RECORD.pack(record.kind, len(name), len(record.record), there, at, size)
            + name
            + record.record
        )
        if payload is not None:
            payloads.append(payload)
            at += size
    lines = b"".join(index)
    return b"".join((_HEAD.pack(_MAGIC, len(lines), zlib.crc32(lines)), lines, *payloads))


def index_size(head: bytes, name: str) -> int:
    """How long the head and the index of an object are."""
    if len(head) < HEAD_SIZE or head[:4] != _MAGIC:
        raise VolumeError(f"{name} was not written by zenlake, or is damaged at its beginning")
    return HEAD_SIZE + int(_HEAD.unpack_from(head)[1])


def unpack(data: bytes, segment: SegmentObject) -> Iterator[tuple[Record, Location | None]]:
    """The records of an object's index, and where their payloads lie; `data` may end with it."""
    end = index_size(data, segment.name)
    if len(data) < end or zlib.crc32(data[HEAD_SIZE:end]) != _HEAD.unpack_from(data)[2]:
        raise VolumeError(f"{segment.name} is damaged: its index has another checksum")
    at = HEAD_SIZE
    while at < end:
        kind, name_size, record_size, there, start, size = _RECORD.unpack_from(data, at)
        at += _RECORD.size
        name = data[at : at + name_size].decode()
        record = data[at + name_size : at + name_size + record_size]
        at += name_size + record_size
        place = Location(segment, end + start, size) if there else None
        yield Record(kind, name, record), place
