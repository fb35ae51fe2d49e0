"""Values that outlive the broker, in a volume as the storages of a router have them.

What came with one read of a link is one transaction, written before anything is acknowledged: what
a device knows to have arrived is there after a crash.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from pathlib import Path
from typing import Final, Protocol

from zenlake.clock.ntp64 import NTP64
from zenlake.newest import Batch, Entry, Value
from zenlake.volumes.sqlite import SqliteFile
from zenlake.xrce.names import matches
from zenlake.xrce.outside import Values

#: Paths that one volume holds; new ones beyond are refused and counted.
PATHS_MAX: Final = 1_000_000
#: Who gave the values their times.
_ID: Final = b"\x18"


class Kept(Protocol):
    """What is asked of a volume here: a part of `zenlake.volumes.Volume`."""

    def entries(self) -> Iterable[Entry]:
        """The entry of every key."""

    def read(self, keys: list[str]) -> list[Entry | None]:
        """The entries of some keys with their payloads."""

    def write(self, batch: Batch) -> None:
        """Write all of a batch, or nothing."""

    def close(self) -> None:
        """Let go of it."""


class VolumeValues:
    """The last values of persistent resources in a volume."""

    def __init__(self, volume: Kept) -> None:
        """What the volume holds is known from now on."""
        self._volume = volume
        self._paths: dict[str, None] = {}
        self._time = 0
        for entry in volume.entries():
            self._time = max(self._time, entry.time)
            if entry.value is not None:
                self._paths[entry.key] = None
        self._fresh: dict[str, bytes] = {}
        self.refused = 0

    @classmethod
    def in_file(cls, path: str) -> VolumeValues:
        """Values in one SQLite file, which is made if it is not there."""
        return cls(SqliteFile(Path(path)))

    def put(self, path: str, durability: int, payload: bytes) -> None:
        """Keep the newest value of a path; it lasts after `commit`."""
        if path not in self._paths:
            if len(self._paths) >= PATHS_MAX:
                self.refused += 1
                return
            self._paths[path] = None
        self._fresh[path] = payload

    def commit(self) -> None:
        """Write what was put since, in one transaction."""
        if not self._fresh:
            return
        self._time = max(self._time + 1, int(NTP64.from_nanos(time.time_ns())))
        entries = [
            Entry(path, self._time, _ID, self._time, _ID, Value(payload))
            for path, payload in self._fresh.items()
        ]
        self._volume.write(Batch(entries, [], [], [], []))
        self._fresh.clear()

    def matching(self, path: str) -> Iterable[tuple[str, int, bytes]]:
        """The values at paths that match."""
        self.commit()
        if "*" in path or "?" in path:
            keys = [at for at in self._paths if matches(path, at)]
        else:
            keys = [path] if path in self._paths else []
        values: list[tuple[str, int, bytes]] = []
        for entry in self._volume.read(keys):
            if entry is not None and entry.value is not None and entry.value.payload is not None:
                values.append((entry.key, 2, entry.value.payload))
        return values

    def close(self) -> None:
        """Write what was put, and let go of the volume."""
        self.commit()
        self._volume.close()


class TieredValues:
    """Transient values here, persistent ones there."""

    def __init__(self, transient: Values, persistent: Values) -> None:
        """A value is in one of the two."""
        self._transient = transient
        self._persistent = persistent

    @property
    def refused(self) -> int:
        """How many values there was no room for."""
        return self._transient.refused + self._persistent.refused

    def put(self, path: str, durability: int, payload: bytes) -> None:
        """Keep the newest value of a path."""
        (self._persistent if durability == 2 else self._transient).put(path, durability, payload)

    def commit(self) -> None:
        """Make what was put last."""
        self._persistent.commit()

    def matching(self, path: str) -> Iterable[tuple[str, int, bytes]]:
        """The values at paths that match."""
        return [*self._persistent.matching(path), *self._transient.matching(path)]
