"""A volume of files: the value of a key is a file that other programs can read.

    <dir>/robot/7/pose          the payload, nothing else
    <dir>/.zenlake.sqlite       timestamps, encodings, tombstones, updates with wildcards, history
    <dir>/.zenlake.new/         files on their way to their names

A batch is written in three steps: new files beside the old ones, records in one transaction that
names those files, then renames. A crash before the transaction leaves the old state; after it,
the next start renames what is left. A key whose path the system does not take has a file that is
named by a digest, so that no key stops those that are written with it. Files that other programs
put there, or changed, are found at the start and count as put when they were changed.
"""

from __future__ import annotations

import contextlib
import errno
import os
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import ClassVar, Final

from zenlake.clock import NTP64
from zenlake.errors import KeyExprError
from zenlake.keys import is_wild
from zenlake.keys.matching import check
from zenlake.newest import Batch, Entry, Value, WideUpdate
from zenlake.volumes.contract import Capability, Option, Volume, VolumeUnreachable
from zenlake.volumes.file_names import BESIDE, digest_of, is_digest, key_of, path_of
from zenlake.volumes.place import folder_of
from zenlake.volumes.sqlite import SqliteFile, volume_error

__all__ = ["Files"]

RECORDS: Final = ".zenlake.sqlite"
NEW: Final = ".zenlake.new"
#: The id of the clock that told when another program changed a file.
FILE_CLOCK: Final = b"\x01"

#: What a system says of a path that it can never take. A disk that is full says something else.
NEVER_TAKEN: Final = frozenset({errno.ENAMETOOLONG, errno.EINVAL, errno.EILSEQ})
#: How deep folders may be, so that programs can still walk through them.
MOST_DEPTH: Final = 100

_TABLES: Final = """
CREATE TABLE IF NOT EXISTS files (
    key TEXT PRIMARY KEY, changed INTEGER NOT NULL, size INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS moves (key TEXT PRIMARY KEY, new TEXT);
"""


class Files(Volume):
    """Keeps each value in a file of its own below one folder."""

    CAPABILITY: ClassVar[Capability] = Capability("durable", "all")
    OPTIONS: ClassVar[Mapping[str, Option]] = {
        "dir": Option(str, "The folder; a relative one lies in the volumes' root.", required=True),
        "read_only": Option(bool, "Whether the storage only answers, and never writes.", False),
        "fsync": Option(bool, "Whether a written batch survives a loss of power.", True),
    }

    def __init__(self, storage: str, options: Mapping[str, object]) -> None:
        """Open or create the folder, and finish what a crash interrupted."""
        super().__init__(storage, options)
        self.folder = folder_of("fs", options["dir"])
        self._fsync = bool(options.get("fsync", True))
        try:
            self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            (self.folder / NEW).mkdir(exist_ok=True)
        except OSError as error:
            why = f"{self.folder} cannot be written: {error.strerror}"
            raise VolumeUnreachable(why) from error
        self._records = SqliteFile(self.folder / RECORDS, self._fsync)
        try:
            with self._records.connection() as connection:
                connection.executescript(_TABLES)
        except sqlite3.DatabaseError as error:
            raise volume_error(error, self.folder / RECORDS) from error
        self._number = 0
        self._finish()
        self._take_in()

    # ----------------------------------------------------------------------------------- read

    def entries(self) -> Iterable[Entry]:
        """The entry of every key, without payloads."""
        return self._records.entries()

    def wide(self) -> Iterable[WideUpdate]:
        """The updates of key expressions with wildcards."""
        return self._records.wide()

    def read(self, keys: Sequence[str]) -> list[Entry | None]:
        """The entries of some keys, with what their files hold."""
        entries: list[Entry | None] = []
        for entry in self._records.read(keys):
            if entry is None or entry.value is None:
                entries.append(entry)
                continue
            payload = self._payload(entry.key)
            if payload is None:  # another program removed it
                entries.append(None)
                continue
            value = entry.value
            entries.append(
                entry._replace(
                    value=Value(payload, value.encoding_id, value.schema, value.attachment)
                )
            )
        return entries

    def count(self) -> int:
        """How many keys have a value."""
        return self._records.count()

    def history(
        self, keys: Sequence[str], start: int | None, end: int | None, limit: int | None
    ) -> Iterator[Entry]:
        """Every sample of some keys in a range of time."""
        return self._records.history(keys, start, end, limit)

    def history_keys(self) -> Iterable[str]:
        """The keys that have samples."""
        return self._records.history_keys()

    def trim(self, before: int | None, count: int | None, size: int | None) -> int:
        """Drop samples that are too old or too many."""
        return self._records.trim(before, count, size)

    def _payload(self, key: str) -> bytes | None:
        for path in self._places(key):
            if _is_file(path):
                with contextlib.suppress(FileNotFoundError):
                    return path.read_bytes()
        return None

    def _places(self, key: str) -> tuple[Path, Path, Path]:
        """Where a key's file may lie: under its name, beside the folder of that name, or apart."""
        path = path_of(key)
        return self.folder / path, self.folder / f"{path}{BESIDE}", self.folder / digest_of(key)

    def check(self) -> Iterator[str]:
        """Keys whose file is missing, and what SQLite finds wrong."""
        yield from self._records.check()
        for entry in self._records.entries():
            if entry.value is not None and self._payload(entry.key) is None:
                yield f"{entry.key}: its file {self._places(entry.key)[0]} is missing"

    # ---------------------------------------------------------------------------------- write

    def write(self, batch: Batch) -> None:
        """Write a batch: files first, then records, then names."""
        new: dict[str, str | None] = {}
        try:
            for entry in batch.entries:
                value = entry.value
                if value is None:
                    new[entry.key] = None
                elif value.payload is not None:
                    new[entry.key] = self._write_new(value.payload)
            for key in batch.removed:
                new[key] = None
            if self._fsync:
                _sync_folder(self.folder / NEW)
            with self._records.connection() as connection:
                self._records.write_in(connection, batch, False)
                connection.executemany("INSERT OR REPLACE INTO moves VALUES (?, ?)", new.items())
        except sqlite3.DatabaseError as error:
            raise volume_error(error, self.folder / RECORDS) from error
        self._finish()

    def _write_new(self, payload: bytes) -> str:
        self._number += 1
        name = f"{os.getpid()}-{self._number}"
        with (self.folder / NEW / name).open("wb") as file:
            file.write(payload)
            if self._fsync:
                file.flush()
                os.fsync(file.fileno())
        return name

    def _finish(self) -> None:
        """Give files the names that committed records say, and forget that it was to be done."""
        connection = self._records.connection()
        moves = connection.execute("SELECT key, new FROM moves").fetchall()
        folders: set[Path] = set()
        for key, new in moves:
            folders.add(self._remove(key) if new is None else self._move(key, new))
        if self._fsync:
            for folder in folders:
                if folder.is_dir():
                    _sync_folder(folder)
        with connection:
            for key, new in moves:
                if new is None:
                    connection.execute("DELETE FROM files WHERE key = ?", (key,))
                else:
                    self._remember(connection, key)
            connection.execute("DELETE FROM moves")
        for left in (self.folder / NEW).iterdir():
            left.unlink()

    def _move(self, key: str, new: str) -> Path:
        source = self.folder / NEW / new
        plain, beside, apart = self._places(key)
        try:
            if key.count("/") < MOST_DEPTH or _is_file(plain) or _is_file(beside):
                target = beside if plain.is_dir() else plain
                if source.exists():  # else it was moved before a crash
                    self._make_folders(target.parent)
                    source.replace(target)
                return target.parent
        except OSError as error:
            if error.errno not in NEVER_TAKEN:
                raise
            self._remove_empty(plain.parent)
        if source.exists():
            source.replace(apart)
        return self.folder

    def _make_folders(self, folder: Path) -> None:
        """Make the folders of a file; a value that has the name of one steps beside it."""
        missing: list[Path] = []
        at = folder
        while at != self.folder and not at.is_dir():
            missing.append(at)
            at = at.parent
        for each in reversed(missing):
            if each.is_file():
                each.rename(each.with_name(each.name + BESIDE))
            each.mkdir()

    def _remove(self, key: str) -> Path:
        places = self._places(key)
        for path in places:
            if _is_file(path):
                path.unlink(missing_ok=True)
        return self._remove_empty(places[0].parent)

    def _remove_empty(self, folder: Path) -> Path:
        """Remove a folder and those above it that are empty then; the first that stays."""
        while folder != self.folder:
            try:
                folder.rmdir()
            except FileNotFoundError:
                pass
            except OSError as error:
                if error.errno not in NEVER_TAKEN:
                    break  # it is not empty
            folder = folder.parent
        return folder

    # -------------------------------------------------------------- what other programs wrote

    def _remember(self, connection: sqlite3.Connection, key: str) -> None:
        for path in self._places(key):
            with contextlib.suppress(OSError):
                if _is_file(path):
                    facts = path.stat()
                    connection.execute(
                        "INSERT OR REPLACE INTO files VALUES (?, ?, ?)",
                        (key, facts.st_mtime_ns, facts.st_size),
                    )

    def _take_in(self) -> None:
        """Find files that other programs added, changed or removed since the last time."""
        connection = self._records.connection()
        known = {
            key: (changed, size)
            for key, changed, size in connection.execute("SELECT key, changed, size FROM files")
        }
        seen: set[str] = set()
        changed: list[Entry] = []
        for path, facts in self._walk():
            key = key_of(path)
            if key is None or not _is_key(key):
                continue
            seen.add(key)
            if known.get(key) == (facts.st_mtime_ns, facts.st_size):
                continue
            time = NTP64.from_nanos(facts.st_mtime_ns)
            changed.append(Entry(key, int(time), FILE_CLOCK, int(time), FILE_CLOCK, Value(None)))
        gone = [
            key
            for key in known
            if key not in seen
            and not is_digest(path_of(key))
            and not _is_file(self._places(key)[2])
        ]
        with connection:
            self._records.write_in(connection, Batch(changed, gone, [], [], []), False)
            connection.executemany("DELETE FROM files WHERE key = ?", ((key,) for key in gone))
            for entry in changed:
                self._remember(connection, entry.key)

    def _walk(self) -> Iterator[tuple[str, os.stat_result]]:
        # Not by os.walk, which calls itself for each folder: files of others may lie too deep.
        waiting = [self.folder]
        while waiting:
            folder = waiting.pop()
            for one in _listed(folder):
                if folder == self.folder and (one.name == NEW or one.name.startswith(RECORDS)):
                    continue
                path = folder / one.name
                if one.is_dir(follow_symlinks=False):
                    waiting.append(path)
                elif not one.is_dir():
                    with contextlib.suppress(FileNotFoundError):
                        yield path.relative_to(self.folder).as_posix(), path.stat()

    def close(self) -> None:
        """Close the records."""
        self._records.close()


def _is_key(text: str) -> bool:
    """Whether a file of another program has a name that a key can have."""
    try:
        check(text)
    except KeyExprError:
        return False
    return not is_wild(text)


def _listed(folder: Path) -> list[os.DirEntry[str]]:
    """What lies in a folder; of one that may not be looked into, nothing."""
    try:
        with os.scandir(folder) as entries:
            return list(entries)
    except OSError as error:
        if error.errno not in {errno.ENOENT, errno.EACCES, *NEVER_TAKEN}:
            raise  # not "empty": the records of its files would be forgotten
        return []


def _is_file(path: Path) -> bool:
    """Whether a file lies there; a path that the system does not take has none."""
    try:
        return path.is_file()
    except OSError as error:
        if error.errno not in NEVER_TAKEN:
            raise
        return False


def _sync_folder(folder: Path) -> None:
    number = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(number)
    finally:
        os.close(number)
