"""A volume in a RocksDB: many keys and much traffic on one machine.

Everything lies in one store, under keys that begin with a letter:

    e<key>                        the entry of a key, without its payload
    p<key>                        the moment of its value, and the payload
    w<expr>                       an update with wildcards
    h<key> 00 00 <moment>         a sample of the history, with its payload
    o<moment> <key>               the size of that sample: samples in the order of time

A batch is one write batch, synced before it counts as written.
"""

from __future__ import annotations

import itertools
import struct
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, ClassVar, Final

from rocksdict import AccessType, Options, Rdict, WriteBatch, WriteOptions

from zenlake.newest import Batch, Entry, WideUpdate
from zenlake.volumes.contract import Capability, Option, Volume, VolumeError
from zenlake.volumes.place import folder_of
from zenlake.volumes.records import (
    MOMENT_SIZE,
    moment,
    pack_entry,
    pack_moment,
    pack_wide,
    unpack_entry,
    unpack_wide,
)
from zenlake.volumes.trimming import Placed, Trimming

__all__ = ["RocksDb"]

_LAST: Final = (1 << 64) - 1
_SIZE: Final = struct.Struct(">Q")
#: How often a value is read again that was written while it was read.
_TRIES: Final = 100


class RocksDb(Volume, Trimming):
    """Keeps everything in a folder of RocksDB, `<dir>/<storage>.rocksdb`."""

    CAPABILITY: ClassVar[Capability] = Capability("durable", "all")
    OPTIONS: ClassVar[Mapping[str, Option]] = {
        "dir": Option(str, "The folder of the store; a relative one lies in the volumes' root."),
        "fsync": Option(bool, "Whether a written batch survives a loss of power.", True),
    }

    def __init__(self, storage: str, options: Mapping[str, object]) -> None:
        """Open or create the store."""
        Volume.__init__(self, storage, options)
        Trimming.__init__(self)
        self.folder = folder_of("rocksdb", options.get("dir")) / f"{storage}.rocksdb"
        self.folder.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        settings = Options(raw_mode=True)
        settings.create_if_missing(True)
        self._written = WriteOptions()
        self._written.sync = bool(options.get("fsync", True))
        with self._as_volume_errors():
            self._store: Any = Rdict(
                str(self.folder), settings, access_type=AccessType.read_write()
            )

    # ----------------------------------------------------------------------------------- read

    def entries(self) -> Iterable[Entry]:
        """The entry of every key, without payloads."""
        for key, record in self._range(b"e", b"f"):
            yield unpack_entry(key[1:].decode(), record)

    def wide(self) -> Iterable[WideUpdate]:
        """The updates of key expressions with wildcards."""
        for key, record in self._range(b"w", b"x"):
            yield unpack_wide(key[1:].decode(), record)

    def _range(self, first: bytes, end: bytes) -> Iterator[tuple[bytes, bytes]]:
        """Keys and records from one key up to and without another, in order."""
        with self._as_volume_errors():
            for key, record in self._store.items(from_key=first):
                if key >= end:
                    return
                yield key, record

    def _get(self, keys: list[bytes]) -> Any:
        """The records of some keys."""
        with self._as_volume_errors():
            return self._store.get(keys)

    @contextmanager
    def _as_volume_errors(self) -> Iterator[None]:
        """Failures of the binding, which raises bare exceptions, as those of a volume."""
        try:
            yield
        except VolumeError:
            raise
        except Exception as error:
            raise VolumeError(f"{self.folder}: {error}") from error

    def read(self, keys: Sequence[str]) -> list[Entry | None]:
        """The entries of some keys with their payloads."""
        names = [key.encode() for key in keys]
        records = self._get([b"e" + name for name in names])
        payloads = self._get([b"p" + name for name in names])
        entries: list[Entry | None] = []
        for key, record, payload in zip(keys, records, payloads, strict=True):
            entry = _joined(key, record, payload)
            tries = _TRIES
            while entry is False and tries:
                # A batch was written between the two questions.
                name = key.encode()
                entry = _joined(key, *self._get([b"e" + name, b"p" + name]))
                tries -= 1
            if isinstance(entry, bool):
                raise VolumeError(f"{self.folder}: the payload of '{key}' is missing")
            entries.append(entry)
        return entries

    def count(self) -> int:
        """How many keys have a value."""
        return sum(1 for _ in self._range(b"p", b"q"))

    def check(self) -> Iterator[str]:
        """Keys whose payload is missing; reads everything, which checks RocksDB's own sums."""
        with_payload = {key[1:] for key, _ in self._range(b"p", b"q")}
        for entry in self.entries():
            if entry.value is not None and entry.key.encode() not in with_payload:
                yield f"{entry.key}: its payload is missing in {self.folder}"

    # ---------------------------------------------------------------------------------- write

    def write(self, batch: Batch) -> None:
        """Write a batch in one go."""
        writes: Any = WriteBatch(raw_mode=True)
        for entry in batch.entries:
            name, value = entry.key.encode(), entry.value
            writes.put(b"e" + name, pack_entry(entry, False))
            if value is None:
                writes.delete(b"p" + name)
            elif value.payload is not None:
                writes.put(b"p" + name, pack_moment(entry.time, entry.id) + value.payload)
        for key in batch.removed:
            writes.delete(b"e" + key.encode())
            writes.delete(b"p" + key.encode())
        for update in batch.wide:
            writes.put(b"w" + update.expr.encode(), pack_wide(update))
        for expr in batch.forgotten:
            writes.delete(b"w" + expr.encode())
        places = [_place(sample.key, sample.time, sample.id) for sample in batch.samples]
        there = self._get(places) if places else []
        sizes = []
        for sample, place, before in zip(batch.samples, places, there, strict=True):
            record = pack_entry(sample, True)
            writes.put(place, record)
            size = len(record) + len(place)
            writes.put(_order(sample.time, sample.id, sample.key), _SIZE.pack(size))
            sizes.append(size if before is None else 0)
        self._commit(writes)
        for sample, size in zip(batch.samples, sizes, strict=True):
            self._noted(sample.key, size)

    def _commit(self, writes: Any) -> None:
        with self._as_volume_errors():
            self._store.write(writes, self._written)

    # -------------------------------------------------------------------------------- history

    def history(
        self, keys: Sequence[str], start: int | None, end: int | None, limit: int | None
    ) -> Iterator[Entry]:
        """Every sample of some keys in a range of time."""
        for key in keys:
            first = _place(key, start or 0, b"")
            last = _place(key, _LAST if end is None else end, b"\xff" * 16) + b"\xff"
            for _, record in itertools.islice(self._range(first, last), limit):
                yield unpack_entry(key, record)

    def history_keys(self) -> Iterable[str]:
        """The keys that have samples."""
        at = b"h"
        while True:
            place = next(self._range(at, b"i"), None)
            if place is None:
                return
            name = place[0][1 : -MOMENT_SIZE - 2]
            yield name.replace(b"\x00\xff", b"\x00").decode()
            at = b"h" + name + b"\x00\x01"

    def trim(self, before: int | None, count: int | None, size: int | None) -> int:
        """Drop samples that are too old or too many; the newest of a key stays."""
        return self.trimmed(before, count, size)

    def _sample_keys(self) -> Iterable[str]:
        return self.history_keys()

    def _in_order(self, since: int) -> Iterator[Placed]:
        for place, size in self._range(b"o" + pack_moment(since, b""), b"p"):
            time, id = moment(place[1:])
            key = place[1 + MOMENT_SIZE :].decode()
            yield Placed(time, id, key, _SIZE.unpack(size)[0])

    def _of_key(self, key: str, before: int | None, beyond: int) -> list[Placed]:
        last = _place(key, _LAST, b"\xff" * 16) + b"\xff"
        entries = []
        for place, record in self._range(_place(key, 0, b""), last):
            time, id = moment(place[-MOMENT_SIZE:])
            entries.append(Placed(time, id, key, len(record) + len(place)))
        older = entries[: max(0, len(entries) - beyond)]
        return older if before is None else [one for one in older if one.time < before]

    def _drop(self, samples: list[Placed]) -> None:
        writes: Any = WriteBatch(raw_mode=True)
        for one in samples:
            writes.delete(_place(one.key, one.time, one.id))
            writes.delete(_order(one.time, one.id, one.key))
        self._commit(writes)

    def close(self) -> None:
        """Close the store."""
        self._store.close()


def _joined(key: str, record: bytes | None, payload: bytes | None) -> Entry | bool | None:
    """An entry with its payload; False if the two are not of one batch."""
    if record is None:
        return None
    entry = unpack_entry(key, record)
    if entry.value is None:
        return entry
    if payload is None or moment(payload) != (entry.time, entry.id):
        return False
    return unpack_entry(key, record, payload[MOMENT_SIZE:])


def _place(key: str, time: int, id: bytes) -> bytes:
    name = key.encode().replace(b"\x00", b"\x00\xff")
    return b"".join((b"h", name, b"\x00\x00", pack_moment(time, id)))


def _order(time: int, id: bytes, key: str) -> bytes:
    return b"".join((b"o", pack_moment(time, id), key.encode()))
