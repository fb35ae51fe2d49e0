"""A volume in a PostgreSQL database, where other programs can join it with what they have.

All storages of one schema share three tables, `entries`, `wide` and `history`. A batch is one
transaction with a statement for each table: arrays go in, rows come out. Times are stored as
signed integers, NTP64 less 2⁶³, which keeps their order.
"""

from __future__ import annotations

import contextlib
import os
import socket
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, Final, TypeVar

import psycopg
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict

from zenlake.newest import Batch, Entry, Value, WideUpdate
from zenlake.volumes.contract import (
    Capability,
    Option,
    RecordsRefused,
    Volume,
    VolumeError,
    VolumeUnreachable,
)

__all__ = ["Postgres"]

T = TypeVar("T")

#: NTP64 has 64 bits without a sign.
_SHIFT: Final = 1 << 63
#: Bytes of a key and the name of its storage: a row of an index has at most a third of a page of
#: 8 KiB, with a time and an id. PostgreSQL compresses some longer keys, but who knows which.
_LONGEST: Final = 2600
#: Rows that are fetched at a time.
_SOME: Final = 5000

_TABLES: Final = """
CREATE SCHEMA IF NOT EXISTS {schema};
CREATE TABLE IF NOT EXISTS {schema}.entries (
    storage text NOT NULL, key text COLLATE "C" NOT NULL, time bigint NOT NULL, id bytea NOT NULL,
    base_time bigint NOT NULL, base_id bytea NOT NULL, deleted boolean NOT NULL,
    encoding integer NOT NULL, schema bytea, attachment bytea, payload bytea,
    PRIMARY KEY (storage, key));
CREATE TABLE IF NOT EXISTS {schema}.wide (
    storage text NOT NULL, expr text COLLATE "C" NOT NULL, put_time bigint NOT NULL,
    put_id bytea NOT NULL, deleted_time bigint NOT NULL, deleted_id bytea NOT NULL,
    encoding integer NOT NULL, schema bytea, attachment bytea, payload bytea,
    PRIMARY KEY (storage, expr));
CREATE TABLE IF NOT EXISTS {schema}.history (
    storage text NOT NULL, key text COLLATE "C" NOT NULL, time bigint NOT NULL, id bytea NOT NULL,
    deleted boolean NOT NULL, encoding integer NOT NULL, schema bytea, attachment bytea,
    payload bytea, PRIMARY KEY (storage, key, time, id));
CREATE INDEX IF NOT EXISTS history_time ON {schema}.history (storage, time);
"""

_ENTRY_TYPES: Final = (
    "text", "bigint", "bytea", "bigint", "bytea", "boolean", "integer", "bytea", "bytea", "bytea",
)  # fmt: skip
_WIDE_TYPES: Final = (
    "text", "bigint", "bytea", "bigint", "bytea", "integer", "bytea", "bytea", "bytea",
)  # fmt: skip
_SAMPLE_TYPES: Final = (
    "text", "bigint", "bytea", "boolean", "integer", "bytea", "bytea", "bytea",
)  # fmt: skip

_PUT_ENTRIES: Final = """
INSERT INTO {schema}.entries SELECT {storage}, * FROM unnest({arrays})
ON CONFLICT (storage, key) DO UPDATE SET time = excluded.time, id = excluded.id,
    base_time = excluded.base_time, base_id = excluded.base_id, deleted = excluded.deleted,
    encoding = excluded.encoding, schema = excluded.schema, attachment = excluded.attachment,
    payload = CASE WHEN excluded.deleted THEN NULL
              ELSE coalesce(excluded.payload, entries.payload) END
"""
_PUT_WIDE: Final = """
INSERT INTO {schema}.wide SELECT {storage}, * FROM unnest({arrays})
ON CONFLICT (storage, expr) DO UPDATE SET put_time = excluded.put_time, put_id = excluded.put_id,
    deleted_time = excluded.deleted_time, deleted_id = excluded.deleted_id,
    encoding = excluded.encoding, schema = excluded.schema, attachment = excluded.attachment,
    payload = excluded.payload
"""
_PUT_SAMPLES: Final = """
INSERT INTO {schema}.history SELECT {storage}, * FROM unnest({arrays}) ON CONFLICT DO NOTHING
"""
_NEWEST: Final = """
(SELECT max(time) FROM {schema}.history newer
 WHERE newer.storage = history.storage AND newer.key = history.key)
"""
_TRIM_COUNT: Final = """
DELETE FROM {schema}.history USING (
    SELECT key, time, id, row_number() OVER (PARTITION BY key ORDER BY time DESC, id DESC) AS place
    FROM {schema}.history WHERE storage = {storage}) AS old
WHERE history.storage = {storage} AND old.place > %s
    AND (history.key, history.time, history.id) = (old.key, old.time, old.id)
"""
_TRIM_SIZE: Final = """
DELETE FROM {schema}.history USING (
    SELECT key, time, id,
        sum(coalesce(length(payload), 0) + 128) OVER
            (ORDER BY time DESC, id DESC, key ROWS UNBOUNDED PRECEDING) AS size,
        row_number() OVER (PARTITION BY key ORDER BY time DESC, id DESC) AS place
    FROM {schema}.history WHERE storage = {storage}) AS old
WHERE history.storage = {storage} AND old.size > %s AND old.place > 1
    AND (history.key, history.time, history.id) = (old.key, old.time, old.id)
"""


class _Patience:
    """Cuts connections whose server has not answered in time: libpq itself waits for ever."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._lock = threading.Lock()
        self._waiting: dict[psycopg.Connection[Any], float] = {}
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="zenlake postgres", daemon=True)
        self._thread.start()

    @contextlib.contextmanager
    def waiting(self, connection: psycopg.Connection[Any]) -> Iterator[None]:
        """Something is asked of a server."""
        with self._lock:
            self._waiting[connection] = time.monotonic() + self._seconds
        try:
            yield
        finally:
            with self._lock:
                del self._waiting[connection]

    def _watch(self) -> None:
        while not self._end.wait(self._seconds / 4):
            now = time.monotonic()
            with self._lock:
                for connection, deadline in self._waiting.items():
                    if now > deadline:
                        with contextlib.suppress(OSError, psycopg.Error):
                            # A thread that waits on it is told that the connection is over.
                            cut = socket.socket(fileno=os.dup(connection.fileno()))
                            with cut:
                                cut.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Watch no more."""
        self._end.set()
        self._thread.join()


class Postgres(Volume):
    """Keeps everything in tables of a PostgreSQL server."""

    CAPABILITY: ClassVar[Capability] = Capability("durable", "all")
    OPTIONS: ClassVar[Mapping[str, Option]] = {
        "url": Option(
            str,
            "The database, postgresql://host:port/database, with any parameter of libpq.",
            required=True,
        ),
        "user": Option(str, "Who logs in."),
        "password": Option(str, "With which password; write it under `private`.", secret=True),
        "schema": Option(str, "The schema of the tables; made if it is not there.", "zenlake"),
        "timeout": Option(float, "Seconds that the server may take to answer.", 10.0),
    }

    def __init__(self, storage: str, options: Mapping[str, object]) -> None:
        """Connect, and make the tables if they are not there."""
        super().__init__(storage, options)
        url = str(options["url"])
        try:
            parts = conninfo_to_dict(url)
        except psycopg.Error as error:
            raise VolumeError(
                f"the url of storage '{storage}' is not understood: {error}"
            ) from None
        if parts.get("password") is not None:
            raise VolumeError("the url has a password in it: write private: {password: …} instead")
        self._url = url
        self._login = {name: options[name] for name in ("user", "password") if options.get(name)}
        self._patience = float(str(options["timeout"]))
        self._where = f"postgres at {parts.get('host', 'the default')}/{parts.get('dbname', '')}"
        self._names = {
            "schema": sql.Identifier(str(options["schema"])),
            "storage": sql.Literal(storage),
        }
        self._threads = threading.local()
        self._connections: list[psycopg.Connection[Any]] = []
        self._lock = threading.Lock()
        # A little longer than the server's own bound, which says more about why.
        self._watch = _Patience(self._patience * 1.25)
        try:
            self._in_transaction(self._make_tables)
        except BaseException:
            self.close()
            raise

    def _make_tables(self, connection: psycopg.Connection[Any]) -> None:
        row = connection.execute("SHOW server_encoding").fetchone()
        if row is None or row[0] != "UTF8":
            raise VolumeError(f"{self._where}: keys need a database in UTF8; create one with it")
        # Two storages may start at the same moment: the tables are made by one after the other.
        connection.execute("SELECT pg_advisory_xact_lock(8315168)")
        connection.execute(self._sql(_TABLES))

    def _sql(self, text: str, types: Sequence[str] = ()) -> sql.Composed:
        arrays = sql.SQL(", ".join(f"%b::{kind}[]" for kind in types))
        return sql.SQL(text).format(**self._names, arrays=arrays)

    # ----------------------------------------------------------------------------- connections

    def _connection(self) -> psycopg.Connection[Any]:
        """The connection of this thread."""
        mine: psycopg.Connection[Any] | None = getattr(self._threads, "connection", None)
        if mine is None or mine.closed:
            milliseconds = int(self._patience * 1000)
            mine = psycopg.connect(
                self._url,
                autocommit=True,
                connect_timeout=max(2, round(self._patience)),
                tcp_user_timeout=milliseconds,
                application_name=f"zenlake storage {self.storage}",
                options=f"-c statement_timeout={milliseconds}",
                **self._login,  # type: ignore[arg-type]
            )
            self._threads.connection = mine
            with self._lock:
                self._connections = [one for one in self._connections if not one.closed]
                self._connections.append(mine)
        return mine

    def _in_transaction(self, work: Callable[[psycopg.Connection[Any]], T]) -> T:
        """Do some work in one transaction; once more if only the connection was old."""
        while True:
            fresh = getattr(self._threads, "connection", None) is None
            try:
                with self._as_volume_errors():
                    connection = self._connection()
                    with self._watch.waiting(connection), connection.transaction():
                        return work(connection)
            except VolumeUnreachable:
                self._forget()
                if fresh:
                    raise

    def _forget(self) -> None:
        connection = getattr(self._threads, "connection", None)
        if connection is not None:
            connection.close()
            self._threads.connection = None

    @contextlib.contextmanager
    def _as_volume_errors(self) -> Iterator[None]:
        try:
            yield
        except psycopg.errors.QueryCanceled as error:
            raise VolumeError(f"{self._where}: {error}") from error
        except (psycopg.DataError, psycopg.errors.ProgramLimitExceeded) as error:
            raise RecordsRefused(f"{self._where}: {error}") from error
        except (psycopg.OperationalError, psycopg.InterfaceError) as error:
            raise VolumeUnreachable(f"{self._where}: {error}") from error
        except psycopg.Error as error:
            raise VolumeError(f"{self._where}: {error}") from error

    def close(self) -> None:
        """Let the connections of all threads go."""
        self._watch.close()
        with self._lock:
            for connection in self._connections:
                connection.close()
            self._connections.clear()
        self._threads = threading.local()

    # ------------------------------------------------------------------------------------ read

    def _rows(self, text: str, *parameters: object) -> list[tuple[Any, ...]]:
        def fetch(connection: psycopg.Connection[Any]) -> list[tuple[Any, ...]]:
            return connection.execute(self._sql(text), parameters, binary=True).fetchall()

        return self._in_transaction(fetch)

    def entries(self) -> Iterable[Entry]:
        """The entry of every key, without payloads, some at a time."""
        after = ""
        while True:
            rows = self._rows(
                "SELECT key, time, id, base_time, base_id, deleted, encoding, schema, attachment,"
                " NULL::bytea FROM {schema}.entries WHERE storage = {storage} AND key > %s"
                f" ORDER BY key LIMIT {_SOME}",
                after,
            )
            yield from map(_entry, rows)
            if len(rows) < _SOME:
                return
            after = rows[-1][0]

    def wide(self) -> Iterable[WideUpdate]:
        """The updates of key expressions with wildcards."""
        rows = self._rows(
            "SELECT expr, put_time, put_id, deleted_time, deleted_id, encoding, schema,"
            " attachment, payload FROM {schema}.wide WHERE storage = {storage}"
        )
        return [_wide(row) for row in rows]

    def read(self, keys: Sequence[str]) -> list[Entry | None]:
        """The entries of some keys with their payloads."""
        rows = self._rows(
            "SELECT key, time, id, base_time, base_id, deleted, encoding, schema, attachment,"
            " payload FROM {schema}.entries WHERE storage = {storage} AND key = ANY(%s)",
            [_text(key) for key in keys],
        )
        entries = {entry.key: entry for entry in map(_entry, rows)}
        return [entries.get(key) for key in keys]

    def count(self) -> int:
        """How many keys have a value."""
        ((number,),) = self._rows(
            "SELECT count(*) FROM {schema}.entries WHERE storage = {storage} AND NOT deleted"
        )
        return int(number)

    def history(
        self, keys: Sequence[str], start: int | None, end: int | None, limit: int | None
    ) -> Iterator[Entry]:
        """Every sample of some keys in a range of time."""
        low = -_SHIFT if start is None else start - _SHIFT
        high = _SHIFT - 1 if end is None else end - _SHIFT
        for key in keys:
            rows = self._rows(
                "SELECT key, time, id, time, id, deleted, encoding, schema, attachment, payload"
                " FROM {schema}.history WHERE storage = {storage} AND key = %s"
                " AND time BETWEEN %s AND %s ORDER BY time, id LIMIT %s",
                _text(key),
                low,
                high,
                limit,
            )
            yield from map(_entry, rows)

    def history_keys(self) -> Iterable[str]:
        """The keys that have samples."""
        rows = self._rows("SELECT DISTINCT key FROM {schema}.history WHERE storage = {storage}")
        return [_key(key) for (key,) in rows]

    def check(self) -> Iterator[str]:
        """Keys whose payload is missing."""
        for (key,) in self._rows(
            "SELECT key FROM {schema}.entries"
            " WHERE storage = {storage} AND NOT deleted AND payload IS NULL"
        ):
            yield f"{_key(key)}: its payload is missing in {self._where}"

    # ----------------------------------------------------------------------------------- write

    def write(self, batch: Batch) -> None:
        """Write a batch in one transaction."""
        room = _LONGEST - len(self.storage.encode())
        long = [one for one in (*batch.entries, *batch.samples) if _is_longer(one.key, room)]
        wide = [one for one in batch.wide if _is_longer(one.expr, room)]
        if long or wide:
            why = f"{self._where}: a key has at most {room} bytes, which an index of it can have"
            raise RecordsRefused(why, [*long, *wide])

        def work(connection: psycopg.Connection[Any]) -> None:
            for text, types, rows in (
                (_PUT_ENTRIES, _ENTRY_TYPES, [_row(entry) for entry in batch.entries]),
                (_PUT_WIDE, _WIDE_TYPES, [_wide_row(update) for update in batch.wide]),
                (_PUT_SAMPLES, _SAMPLE_TYPES, [_sample_row(one) for one in batch.samples]),
            ):
                if rows:
                    columns = [list(column) for column in zip(*rows, strict=True)]
                    connection.execute(self._sql(text, types), columns)
            for table, column, names in (
                ("entries", "key", batch.removed),
                ("wide", "expr", batch.forgotten),
            ):
                if names:
                    connection.execute(
                        self._sql(
                            f"DELETE FROM {{schema}}.{table} WHERE storage = {{storage}}"
                            f" AND {column} = ANY(%s)"
                        ),
                        ([_text(name) for name in names],),
                    )

        self._in_transaction(work)

    def trim(self, before: int | None, count: int | None, size: int | None) -> int:
        """Drop samples that are too old or too many; the newest of a key stays."""

        def work(connection: psycopg.Connection[Any]) -> int:
            dropped = 0
            for text, bound in (
                (
                    "DELETE FROM {schema}.history WHERE storage = {storage} AND time < %s"
                    f" AND time < {_NEWEST}",
                    None if before is None else before - _SHIFT,
                ),
                (_TRIM_COUNT, count),
                (_TRIM_SIZE, size),
            ):
                if bound is not None:
                    dropped += connection.execute(self._sql(text), (bound,)).rowcount
            return dropped

        return self._in_transaction(work)


# ------------------------------------------------------------------------------------ as rows


def _text(key: str) -> str:
    """A key as PostgreSQL can store it, which knows no NUL."""
    return key.replace("\\", "\\\\").replace("\0", "\\0") if "\\" in key or "\0" in key else key


def _is_longer(key: str, size: int) -> bool:
    """Whether a key has more bytes there."""
    # Most are so short that their bytes need not be counted: four of a letter, or two escaped.
    return len(key) * 4 > size and len(_text(key).encode()) > size


def _key(text: str) -> str:
    if "\\" not in text:
        return text
    return "\\".join(part.replace("\\0", "\0") for part in text.split("\\\\"))


def _row(entry: Entry) -> tuple[object, ...]:
    return (
        _text(entry.key),
        entry.time - _SHIFT,
        entry.id,
        entry.base_time - _SHIFT,
        entry.base_id,
        entry.value is None,
        *_columns(entry.value),
    )


def _sample_row(entry: Entry) -> tuple[object, ...]:
    moment = (_text(entry.key), entry.time - _SHIFT, entry.id)
    return (*moment, entry.value is None, *_columns(entry.value))


def _wide_row(update: WideUpdate) -> tuple[object, ...]:
    return (
        _text(update.expr),
        update.put_time - _SHIFT,
        update.put_id,
        update.deleted_time - _SHIFT,
        update.deleted_id,
        *_columns(update.value),
    )


def _columns(value: Value | None) -> tuple[object, ...]:
    if value is None:
        return (0, None, None, None)
    return (value.encoding_id, value.schema or None, value.attachment, value.payload)


def _entry(row: tuple[Any, ...]) -> Entry:
    key, time, id, base_time, base_id, deleted, *columns = row
    value = None if deleted else _value(columns)
    return Entry(_key(key), time + _SHIFT, id, base_time + _SHIFT, base_id, value)


def _wide(row: tuple[Any, ...]) -> WideUpdate:
    expr, put_time, put_id, deleted_time, deleted_id, *columns = row
    value = _value(columns) if put_id else None
    moments = (put_time + _SHIFT, put_id, value, deleted_time + _SHIFT, deleted_id)
    return WideUpdate(_key(expr), *moments)


def _value(columns: Sequence[Any]) -> Value:
    encoding, schema, attachment, payload = columns
    return Value(payload, encoding, schema or b"", attachment)
