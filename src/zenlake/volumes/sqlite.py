"""A volume in one SQLite file: what must survive, on any machine, with nothing to install.

The file is in WAL mode: one thread writes, any number read meanwhile, and a crash loses nothing
that was committed. Times are stored as signed integers, NTP64 less 2⁶³, which keeps their order.
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice
from operator import attrgetter
from pathlib import Path
from typing import ClassVar, Final

from zenlake.newest import Batch, Entry, Value, WideUpdate
from zenlake.volumes.contract import (
    Capability,
    Option,
    RecordsRefused,
    Volume,
    VolumeError,
    VolumeUnreachable,
)
from zenlake.volumes.place import folder_of

__all__ = ["Sqlite", "SqliteFile", "volume_error"]

#: NTP64 has 64 bits without a sign.
_SHIFT: Final = 1 << 63
_VERSION: Final = 1
#: Keys in one question to SQLite.
_KEYS: Final = 500

_TABLES: Final = """
CREATE TABLE IF NOT EXISTS entries (
    key TEXT PRIMARY KEY, time INTEGER NOT NULL, id BLOB NOT NULL,
    base_time INTEGER NOT NULL, base_id BLOB NOT NULL, deleted INTEGER NOT NULL,
    encoding INTEGER NOT NULL, schema BLOB, attachment BLOB, payload BLOB);
CREATE TABLE IF NOT EXISTS wide (
    expr TEXT PRIMARY KEY, put_time INTEGER NOT NULL, put_id BLOB NOT NULL,
    deleted_time INTEGER NOT NULL, deleted_id BLOB NOT NULL,
    encoding INTEGER NOT NULL, schema BLOB, attachment BLOB, payload BLOB);
CREATE TABLE IF NOT EXISTS history (
    key TEXT NOT NULL, time INTEGER NOT NULL, id BLOB NOT NULL, deleted INTEGER NOT NULL,
    encoding INTEGER NOT NULL, schema BLOB, attachment BLOB, payload BLOB,
    PRIMARY KEY (key, time, id)) WITHOUT ROWID;
"""

_Row = tuple[object, ...]


class _Insertion:
    """Inserts rows, many with one statement.

    Python lets go of its lock and takes it again for every statement. Where other threads are at
    work, that takes longer than the row.
    """

    #: Rows of one statement.
    TOGETHER: Final = 50

    def __init__(self, words: str, columns: int, more: str = "") -> None:
        """`words` before the values of so many columns, `more` behind them."""
        row = f"({', '.join('?' * columns)})"
        self._one = f"{words} VALUES {row}{more}"
        self._many = f"{words} VALUES {', '.join([row] * self.TOGETHER)}{more}"

    def into(self, connection: sqlite3.Connection, rows: Iterator[_Row]) -> None:
        """Insert them all."""
        while len(some := list(islice(rows, self.TOGETHER))) == self.TOGETHER:
            connection.execute(self._many, tuple(chain.from_iterable(some)))
        connection.executemany(self._one, some)


_ENTRIES: Final = _Insertion(
    "INSERT INTO entries",
    10,
    " ON CONFLICT (key) DO UPDATE SET"
    " time = excluded.time, id = excluded.id, base_time = excluded.base_time,"
    " base_id = excluded.base_id, deleted = excluded.deleted,"
    " encoding = excluded.encoding, schema = excluded.schema,"
    " attachment = excluded.attachment, payload = CASE excluded.deleted WHEN 1 THEN NULL"
    " ELSE coalesce(excluded.payload, payload) END",
)
_HISTORY: Final = _Insertion("INSERT OR REPLACE INTO history", 8)


class SqliteFile:
    """A file with the records of one storage, and a connection to it for each thread."""

    def __init__(self, path: Path, fsync: bool = True) -> None:
        """Open or create it."""
        self.path = path
        self._fsync = fsync
        self._threads = threading.local()
        self._connections: list[sqlite3.Connection] = []
        self._lock = threading.Lock()
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        try:
            with self.connection() as connection:
                connection.executescript(_TABLES)
                (version,) = connection.execute("PRAGMA user_version").fetchone()
                if version > _VERSION:
                    raise VolumeError(
                        f"{path} was written by a newer zenlake (version {version} of its "
                        f"tables, {_VERSION} is known here): update zenlake"
                    )
                connection.execute(f"PRAGMA user_version = {_VERSION}")
        except sqlite3.DatabaseError as error:
            raise volume_error(error, path) from error

    def connection(self) -> sqlite3.Connection:
        """The connection of this thread."""
        mine: sqlite3.Connection | None = getattr(self._threads, "connection", None)
        if mine is None:
            mine = sqlite3.connect(self.path, timeout=10, check_same_thread=False)
            mine.execute("PRAGMA journal_mode = WAL")
            # FULL syncs the log at every commit; NORMAL may lose the last ones with the power.
            mine.execute(f"PRAGMA synchronous = {'FULL' if self._fsync else 'OFF'}")
            mine.execute("PRAGMA busy_timeout = 10000")
            self._threads.connection = mine
            with self._lock:
                self._connections.append(mine)
        return mine

    def close(self) -> None:
        """Close it for all threads."""
        with self._lock:
            for connection in self._connections:
                connection.close()
            self._connections.clear()
        self._threads = threading.local()

    # ---------------------------------------------------------------------------------- read

    def _select(self, sql: str, parameters: Sequence[object] = ()) -> Iterator[_Row]:
        """The rows of a question."""
        try:
            yield from self.connection().execute(sql, parameters)
        except sqlite3.DatabaseError as error:
            raise volume_error(error, self.path) from error

    def entries(self) -> Iterator[Entry]:
        """The entry of every key, without payloads."""
        rows = self._select(
            "SELECT key, time, id, base_time, base_id, deleted, encoding, schema, attachment, NULL"
            " FROM entries"
        )
        return map(_entry, rows)

    def wide(self) -> list[WideUpdate]:
        """The updates of key expressions with wildcards."""
        return [
            _wide(row)
            for row in self._select(
                "SELECT expr, put_time, put_id, deleted_time, deleted_id, encoding, schema,"
                " attachment, payload FROM wide"
            )
        ]

    def read(self, keys: Sequence[str]) -> list[Entry | None]:
        """The entries of some keys."""
        entries: dict[str, Entry] = {}
        for first in range(0, len(keys), _KEYS):
            some = keys[first : first + _KEYS]
            rows = self._select(
                "SELECT key, time, id, base_time, base_id, deleted, encoding, schema, attachment,"
                f" payload FROM entries WHERE key IN ({', '.join('?' * len(some))})",
                some,
            )
            entries.update((entry.key, entry) for entry in map(_entry, rows))
        return [entries.get(key) for key in keys]

    def count(self) -> int:
        """How many keys have a value."""
        ((number,),) = self._select("SELECT count(*) FROM entries WHERE NOT deleted")
        assert isinstance(number, int)
        return number

    def history(
        self, keys: Sequence[str], start: int | None, end: int | None, limit: int | None
    ) -> Iterator[Entry]:
        """Every sample of some keys in a range of time."""
        low = -_SHIFT if start is None else start - _SHIFT
        high = _SHIFT - 1 if end is None else end - _SHIFT
        for key in keys:
            rows = self._select(
                "SELECT key, time, id, time, id, deleted, encoding, schema, attachment, payload"
                " FROM history WHERE key = ? AND time BETWEEN ? AND ? ORDER BY time, id LIMIT ?",
                (key, low, high, -1 if limit is None else limit),
            )
            yield from map(_entry, rows)

    def history_keys(self) -> list[str]:
        """The keys that have samples."""
        return [str(key) for (key,) in self._select("SELECT DISTINCT key FROM history")]

    def check(self) -> Iterator[str]:
        """What SQLite finds wrong."""
        for (line,) in self._select("PRAGMA integrity_check"):
            if line != "ok":
                yield f"{self.path}: {line}"

    # --------------------------------------------------------------------------------- write

    def write(self, batch: Batch, payloads: bool = True) -> None:
        """Write a batch in one transaction."""
        try:
            # KiB: a large batch must not be written out and read again before it is committed.
            # Connections that read need no such cache, and there may be many of them.
            self.connection().execute("PRAGMA cache_size = -32768")
            with self.connection() as connection:
                self.write_in(connection, batch, payloads)
        except sqlite3.DatabaseError as error:
            raise volume_error(error, self.path) from error

    def write_in(self, connection: sqlite3.Connection, batch: Batch, payloads: bool) -> None:
        """Write a batch in a transaction that is open."""
        # In the order of the index: neighbours lie in one page, which is written once.
        _ENTRIES.into(connection, _rows(sorted(batch.entries, key=_key), payloads))
        connection.executemany(
            "DELETE FROM entries WHERE key = ?", ((key,) for key in batch.removed)
        )
        connection.executemany(
            "INSERT OR REPLACE INTO wide VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
            map(_wide_row, batch.wide),
        )
        connection.executemany(
            "DELETE FROM wide WHERE expr = ?", ((expr,) for expr in batch.forgotten)
        )
        _HISTORY.into(connection, map(_sample_row, batch.samples))

    def trim(self, before: int | None, count: int | None, size: int | None) -> int:
        """Drop samples that are too old or too many; the newest of a key stays."""
        try:
            with self.connection() as connection:
                return self._trim(connection, before, count, size)
        except sqlite3.DatabaseError as error:
            raise volume_error(error, self.path) from error

    def _trim(
        self,
        connection: sqlite3.Connection,
        before: int | None,
        count: int | None,
        size: int | None,
    ) -> int:
        changes = connection.total_changes
        newest = "(SELECT max(time) FROM history newer WHERE newer.key = history.key)"
        if before is not None:
            connection.execute(
                f"DELETE FROM history WHERE time < ? AND time < {newest}", (before - _SHIFT,)
            )
        if count is not None:
            connection.execute(
                "DELETE FROM history WHERE (key, time, id) IN (SELECT key, time, id FROM ("
                "SELECT key, time, id, row_number() OVER"
                " (PARTITION BY key ORDER BY time DESC, id DESC) AS place FROM history)"
                " WHERE place > ?)",
                (count,),
            )
        if size is not None:
            connection.execute(
                "DELETE FROM history WHERE (key, time, id) IN (SELECT key, time, id FROM ("
                "SELECT key, time, id, sum(length(coalesce(payload, '')) + 128) OVER"
                " (ORDER BY time DESC, id DESC ROWS UNBOUNDED PRECEDING) AS size,"
                " row_number() OVER (PARTITION BY key ORDER BY time DESC, id DESC) AS place"
                " FROM history) WHERE size > ? AND place > 1)",
                (size,),
            )
        return connection.total_changes - changes


class Sqlite(Volume):
    """Keeps everything in one file, `<dir>/<storage>.sqlite`."""

    CAPABILITY: ClassVar[Capability] = Capability("durable", "all")
    OPTIONS: ClassVar[Mapping[str, Option]] = {
        "dir": Option(str, "The folder of the file; a relative one lies in the volumes' root."),
        "fsync": Option(bool, "Whether a written batch survives a loss of power.", True),
    }

    def __init__(self, storage: str, options: Mapping[str, object]) -> None:
        """Open or create the file."""
        super().__init__(storage, options)
        folder = folder_of("sqlite", options.get("dir"))
        self._file = SqliteFile(folder / f"{storage}.sqlite", bool(options.get("fsync", True)))

    def entries(self) -> Iterable[Entry]:
        """The entry of every key, without payloads."""
        return self._file.entries()

    def wide(self) -> Iterable[WideUpdate]:
        """The updates of key expressions with wildcards."""
        return self._file.wide()

    def read(self, keys: Sequence[str]) -> list[Entry | None]:
        """The entries of some keys."""
        return self._file.read(keys)

    def write(self, batch: Batch) -> None:
        """Write a batch in one transaction."""
        self._file.write(batch)

    def count(self) -> int:
        """How many keys have a value."""
        return self._file.count()

    def history(
        self, keys: Sequence[str], start: int | None, end: int | None, limit: int | None
    ) -> Iterator[Entry]:
        """Every sample of some keys in a range of time."""
        return self._file.history(keys, start, end, limit)

    def history_keys(self) -> Iterable[str]:
        """The keys that have samples."""
        return self._file.history_keys()

    def trim(self, before: int | None, count: int | None, size: int | None) -> int:
        """Drop samples that are too old or too many."""
        return self._file.trim(before, count, size)

    def check(self) -> Iterator[str]:
        """What SQLite finds wrong."""
        return self._file.check()

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def volume_error(error: sqlite3.DatabaseError, path: Path) -> VolumeError:
    """The error of a volume that an error of SQLite is."""
    text = f"{path}: {error}"
    if isinstance(error, sqlite3.DataError):  # a value, or a row, that is longer than SQLite takes
        return RecordsRefused(text)
    if isinstance(error, sqlite3.OperationalError):  # what the system refuses: a full disk, a lock
        return VolumeUnreachable(text)
    return VolumeError(text)


# ----------------------------------------------------------------------------------- as rows


_key: Final = attrgetter("key")


def _rows(entries: Iterable[Entry], payloads: bool) -> Iterator[_Row]:
    # Written out, because every value that is stored comes this way.
    for key, time, id, base_time, base_id, value in entries:
        at, base = time - _SHIFT, base_time - _SHIFT
        if value is None:
            yield (key, at, id, base, base_id, 1, 0, None, None, None)
        else:
            payload = value.payload if payloads else None
            schema = value.schema or None
            encoding, attachment = value.encoding_id, value.attachment
            yield (key, at, id, base, base_id, 0, encoding, schema, attachment, payload)


def _sample_row(entry: Entry) -> _Row:
    value = entry.value
    return (entry.key, entry.time - _SHIFT, entry.id, int(value is None), *_columns(value, True))


def _wide_row(update: WideUpdate) -> _Row:
    return (
        update.expr,
        update.put_time - _SHIFT,
        update.put_id,
        update.deleted_time - _SHIFT,
        update.deleted_id,
        *_columns(update.value, True),
    )


def _columns(value: Value | None, payloads: bool) -> _Row:
    if value is None:
        return (0, None, None, None)
    payload = value.payload if payloads else None
    return (value.encoding_id, value.schema or None, value.attachment, payload)


def _entry(row: _Row) -> Entry:
    key, time, id, base_time, base_id, deleted, *columns = row
    assert isinstance(key, str)
    assert isinstance(time, int)
    assert isinstance(id, bytes)
    assert isinstance(base_time, int)
    assert isinstance(base_id, bytes)
    value = None if deleted else _value(columns)
    return Entry(key, time + _SHIFT, id, base_time + _SHIFT, base_id, value)


def _wide(row: _Row) -> WideUpdate:
    expr, put_time, put_id, deleted_time, deleted_id, *columns = row
    assert isinstance(expr, str)
    assert isinstance(put_time, int)
    assert isinstance(put_id, bytes)
    assert isinstance(deleted_time, int)
    assert isinstance(deleted_id, bytes)
    value = _value(columns) if put_id else None
    return WideUpdate(expr, put_time + _SHIFT, put_id, value, deleted_time + _SHIFT, deleted_id)


def _value(columns: Sequence[object]) -> Value:
    encoding, schema, attachment, payload = columns
    assert isinstance(encoding, int)
    assert schema is None or isinstance(schema, bytes)
    assert attachment is None or isinstance(attachment, bytes)
    assert payload is None or isinstance(payload, bytes)
    return Value(payload, encoding, schema or b"", attachment)
