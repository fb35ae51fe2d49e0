"""A volume in a Redis server, or one that speaks its protocol.

Everything of a storage lies under names that begin with `<prefix>:<storage>:`

    values      a hash: the payload of each key, which other programs can read
    entries     a hash: the times, encoding and attachment of each key, deleted ones included
    wide        a hash: updates with wildcards
    samples:<key>   a sorted set of the history of a key, in the order of time
    order       a sorted set of all samples in the order of time, with their sizes

A batch is one MULTI … EXEC. What was written is as durable as the server makes it: it survives a
loss of power with `appendonly yes` and `appendfsync always`.
"""

from __future__ import annotations

import itertools
import struct
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, Final, TypeVar
from urllib.parse import urlsplit

import redis

from zenlake.newest import Batch, Entry, WideUpdate
from zenlake.volumes.contract import (
    Capability,
    Option,
    RecordsRefused,
    Volume,
    VolumeError,
    VolumeUnreachable,
)
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

__all__ = ["Redis"]

T = TypeVar("T")

_LAST: Final = (1 << 64) - 1
_SIZE: Final = struct.Struct(">Q")
#: Samples and keys in one question to the server.
_SOME: Final = 1000


class Redis(Volume, Trimming):
    """Keeps everything in a Redis server."""

    CAPABILITY: ClassVar[Capability] = Capability("durable", "all")
    OPTIONS: ClassVar[Mapping[str, Option]] = {
        "url": Option(
            str,
            "The server, redis://host:port/database, rediss:// or unix:///path.",
            "redis://127.0.0.1:6379/0",
        ),
        "username": Option(str, "Who logs in."),
        "password": Option(str, "With which password; write it under `private`.", secret=True),
        "prefix": Option(str, "What the names of all that is written begin with.", "zenlake"),
        "timeout": Option(float, "Seconds that the server may take to answer.", 10.0),
    }

    def __init__(self, storage: str, options: Mapping[str, object]) -> None:
        """Connect to the server."""
        Volume.__init__(self, storage, options)
        Trimming.__init__(self)
        url = str(options["url"])
        parts = urlsplit(url)
        if parts.password is not None:
            raise VolumeError("the url has a password in it: write private: {password: …} instead")
        self._where = f"redis at {parts.netloc or parts.path}"
        self._prefix = f"{options['prefix']}:{storage}:".encode()
        patience = float(str(options["timeout"]))
        login = {name: options[name] for name in ("username", "password") if options.get(name)}
        try:
            self._client: Any = redis.Redis.from_url(
                url,
                socket_timeout=patience,
                socket_connect_timeout=patience,
                health_check_interval=30,
                decode_responses=False,
                **login,
            )
        except ValueError as error:
            raise VolumeError(
                f"the url of storage '{storage}' is not understood: {error}"
            ) from None
        try:
            self._request(self._client.ping)
        except BaseException:
            self._client.close()
            raise

    def _name(self, kind: str, key: str = "") -> bytes:
        return self._prefix + kind.encode() + key.encode()

    def _request(self, call: Callable[[], T]) -> T:
        try:
            return call()
        except (redis.exceptions.ConnectionError, redis.exceptions.TimeoutError) as error:
            raise VolumeUnreachable(f"{self._where}: {error}") from error
        except redis.exceptions.ResponseError as error:
            # More than `proto-max-bulk-len` in one value, of which 512 MiB is the default.
            never = "invalid bulk length" in str(error) or "exceeds maximum allowed size" in str(
                error
            )
            kind = RecordsRefused if never else VolumeError
            raise kind(f"{self._where}: {error}") from error
        except redis.exceptions.RedisError as error:
            raise VolumeError(f"{self._where}: {error}") from error

    # ----------------------------------------------------------------------------------- read

    def _hash(self, name: bytes) -> Iterator[tuple[bytes, bytes]]:
        """All of a hash, some at a time; each member once."""
        cursor, seen = 0, set[bytes]()
        while True:
            at = cursor
            cursor, some = self._request(lambda at=at: self._client.hscan(name, at, count=_SOME))  # type: ignore[misc]
            for key, record in some.items():
                if key not in seen:
                    seen.add(key)
                    yield key, record
            if not cursor:
                return

    def entries(self) -> Iterable[Entry]:
        """The entry of every key, without payloads."""
        for key, record in self._hash(self._name("entries")):
            yield unpack_entry(key.decode(), record)

    def wide(self) -> Iterable[WideUpdate]:
        """The updates of key expressions with wildcards."""
        for key, record in self._hash(self._name("wide")):
            yield unpack_wide(key.decode(), record)

    def read(self, keys: Sequence[str]) -> list[Entry | None]:
        """The entries of some keys with their payloads."""
        if not keys:
            return []
        names = [key.encode() for key in keys]
        # In one transaction, so that both are of one batch.
        questions = self._client.pipeline(transaction=True)
        questions.hmget(self._name("entries"), names)
        questions.hmget(self._name("values"), names)
        records, payloads = self._request(questions.execute)
        return [
            None if record is None else unpack_entry(key, record, payload)
            for key, record, payload in zip(keys, records, payloads, strict=True)
        ]

    def count(self) -> int:
        """How many keys have a value."""
        return int(self._request(lambda: self._client.hlen(self._name("values"))))

    def check(self) -> Iterator[str]:
        """Keys whose payload is missing."""
        for entry in self.entries():
            value = entry.value
            there = self._request(
                lambda key=entry.key: self._client.hexists(self._name("values"), key)  # type: ignore[misc]
            )
            if value is not None and not there:
                yield f"{entry.key}: its payload is missing in {self._where}"

    # ---------------------------------------------------------------------------------- write

    def write(self, batch: Batch) -> None:
        """Write a batch in one transaction."""
        writes = self._client.pipeline(transaction=True)
        entries, values, gone = {}, {}, []
        for entry in batch.entries:
            value = entry.value
            entries[entry.key] = pack_entry(entry, False)
            if value is None:
                gone.append(entry.key)
            elif value.payload is not None:
                values[entry.key] = value.payload
        gone += batch.removed
        if entries:
            writes.hset(self._name("entries"), mapping=entries)
        if values:
            writes.hset(self._name("values"), mapping=values)
        if gone:
            writes.hdel(self._name("values"), *gone)
        if batch.removed:
            writes.hdel(self._name("entries"), *batch.removed)
        if batch.wide:
            wide = {update.expr: pack_wide(update) for update in batch.wide}
            writes.hset(self._name("wide"), mapping=wide)
        if batch.forgotten:
            writes.hdel(self._name("wide"), *batch.forgotten)
        first = len(writes.command_stack)
        sizes = [self._add_sample(writes, sample) for sample in batch.samples]
        if not writes.command_stack:
            return
        done = self._request(writes.execute)
        for number, (sample, size) in enumerate(zip(batch.samples, sizes, strict=True)):
            self._noted(sample.key, size if done[first + 2 * number] else 0)

    def _add_sample(self, writes: Any, sample: Entry) -> int:
        at = pack_moment(sample.time, sample.id)
        record = pack_entry(sample, True)
        size = len(record) + len(sample.key)
        # All scores are equal: the members, which begin with the moment, give the order.
        writes.zadd(self._name("samples:", sample.key), {at + record: 0})
        writes.zadd(self._name("order"), {at + _SIZE.pack(size) + sample.key.encode(): 0})
        return size

    # -------------------------------------------------------------------------------- history

    def _members(self, name: bytes, first: bytes, end: bytes) -> Iterator[bytes]:
        """The members of a sorted set from one up to another, some at a time."""
        low = b"[" + first
        while True:
            some: list[bytes] = self._request(
                lambda low=low: self._client.zrangebylex(name, low, end, 0, _SOME)  # type: ignore[misc]
            )
            yield from some
            if len(some) < _SOME:
                return
            low = b"(" + some[-1]

    def history(
        self, keys: Sequence[str], start: int | None, end: int | None, limit: int | None
    ) -> Iterator[Entry]:
        """Every sample of some keys in a range of time."""
        first = pack_moment(start or 0, b"")
        last = b"+" if end is None or end >= _LAST else b"(" + pack_moment(end + 1, b"")
        for key in keys:
            name = self._name("samples:", key)
            for member in itertools.islice(self._members(name, first, last), limit):
                yield unpack_entry(key, member[MOMENT_SIZE:])

    def history_keys(self) -> Iterable[str]:
        """The keys that have samples."""
        seen: set[str] = set()
        for one in self._in_order(0):
            if one.key not in seen:
                seen.add(one.key)
                yield one.key

    def trim(self, before: int | None, count: int | None, size: int | None) -> int:
        """Drop samples that are too old or too many; the newest of a key stays."""
        return self.trimmed(before, count, size)

    def _sample_keys(self) -> Iterable[str]:
        return self.history_keys()

    def _in_order(self, since: int) -> Iterator[Placed]:
        for member in self._members(self._name("order"), pack_moment(since, b""), b"+"):
            time, id = moment(member)
            (size,) = _SIZE.unpack_from(member, MOMENT_SIZE)
            yield Placed(time, id, member[MOMENT_SIZE + _SIZE.size :].decode(), size)

    def _of_key(self, key: str, before: int | None, beyond: int) -> list[Placed]:
        name = self._name("samples:", key)
        # From the oldest up to the one before the newest ones that stay.
        members = self._request(lambda: self._client.zrange(name, 0, -1 - beyond))
        entries = []
        for member in members:
            time, id = moment(member)
            if before is None or time < before:
                entries.append(Placed(time, id, key, len(member) - MOMENT_SIZE + len(key)))
        return entries

    def _drop(self, samples: list[Placed]) -> None:
        for first in range(0, len(samples), _SOME):
            writes = self._client.pipeline(transaction=True)
            for one in samples[first : first + _SOME]:
                at = pack_moment(one.time, one.id)
                member = at + _SIZE.pack(one.size) + one.key.encode()
                writes.zrem(self._name("order"), member)
                name = self._name("samples:", one.key)
                writes.zremrangebylex(name, b"[" + at, b"(" + at + b"\xff")
            self._request(writes.execute)

    def close(self) -> None:
        """Let the connections go."""
        self._client.close()
