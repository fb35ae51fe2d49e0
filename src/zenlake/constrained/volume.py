"""Where values stay that outlive the broker: one sqlite file, written as they come.

A volume has three operations: put the newest value of a path, give those that match, and close.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from pathlib import Path
from typing import Final, Protocol

from zenlake.errors import LocalError
from zenlake.xrce.names import matches
from zenlake.xrce.outside import Values

#: Paths that one file holds; new ones beyond are refused and counted.
PATHS_MAX: Final = 1_000_000


class Volume(Values, Protocol):
    """The contract: values by path, on something that lasts."""

    def close(self) -> None:
        """Let go of it; what was put is there the next time."""


class SqliteValues:
    """The last values of persistent resources in one sqlite file.

    Every value is a transaction of its own in a write-ahead log: after a crash the file has what
    was put before, or all but the last of it.
    """

    def __init__(self, path: str) -> None:
        """Open the file, or make it."""
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        try:
            self._file = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
            self._file.execute("PRAGMA journal_mode=WAL")
            self._file.execute("PRAGMA synchronous=NORMAL")
            self._file.execute(
                "CREATE TABLE IF NOT EXISTS resources"
                " (path TEXT PRIMARY KEY, durability INTEGER NOT NULL, payload BLOB NOT NULL)"
                " WITHOUT ROWID"
            )
            (self._count,) = self._file.execute("SELECT count(*) FROM resources").fetchone()
        except sqlite3.DatabaseError as error:
            raise LocalError(f"'{path}' holds no values of resources: {error}") from error
        self.refused = 0

    def put(self, path: str, durability: int, payload: bytes) -> None:
        """Keep the newest value of a path."""
        known = self._file.execute("SELECT 1 FROM resources WHERE path = ?", (path,)).fetchone()
        if known is None:
            if self._count >= PATHS_MAX:
                self.refused += 1
                return
            self._count += 1
        self._file.execute(
            "INSERT OR REPLACE INTO resources VALUES (?, ?, ?)", (path, durability, payload)
        )

    def matching(self, path: str) -> Iterable[tuple[str, int, bytes]]:
        """The values at paths that match."""
        literal = path.split("*")[0].split("?")[0]
        rows = self._file.execute(
            "SELECT path, durability, payload FROM resources WHERE path >= ? AND path < ?",
            (literal, literal + "\U0010ffff"),
        )
        return [(at, durability, payload) for at, durability, payload in rows if matches(path, at)]

    def close(self) -> None:
        """Let go of the file."""
        self._file.close()


class TieredValues:
    """Transient values here, persistent ones there."""

    def __init__(self, transient: Values, persistent: Values) -> None:
        """A value is in one of the two."""
        self._transient = transient
        self._persistent = persistent

    def put(self, path: str, durability: int, payload: bytes) -> None:
        """Keep the newest value of a path."""
        (self._persistent if durability == 2 else self._transient).put(path, durability, payload)

    def matching(self, path: str) -> Iterable[tuple[str, int, bytes]]:
        """The values at paths that match."""
        return [*self._persistent.matching(path), *self._transient.matching(path)]
