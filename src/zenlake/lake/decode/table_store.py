"""The typed tables that no configuration file names: found by themselves, or made by command.

One file each in the lake's folder, `.tables/NAME.json`, with the words that `lake.json5` has for a
table, and from which positions in the journals on it is read. The file of a table that was removed
stays, so that the table is not found again.
"""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, final

import pyarrow as pa

from zenlake.errors import LocalError, ZError
from zenlake.keys import KeyFormat
from zenlake.keys.matching import includes
from zenlake.lake.decode.config_file import read_table_entry
from zenlake.lake.model.config import LakeConfig
from zenlake.lake.model.key_families import FamilyFinder, KeyFamily, Positions, Refusal, earliest
from zenlake.lake.model.typed_table import TypedTable
from zenlake.lake.table.location import LakeLocation

__all__ = ["FoundTables", "StoredTable", "TableStore", "key_tables", "stored_tables"]

log = logging.getLogger("zenlake.lake")

FOLDER: Final = ".tables"
BEGUN: Final = "begun"
WAITING: Final = "waiting"
"""The keys that wait for their siblings, over a restart too."""
PATIENCE_SECONDS: Final = 60.0
"""How long a command waits for the step of a pipeline that is under way."""
UNREAD: Final = "payloads that no decoder reads; name one in the table's `encoding` or `decoder`"


@dataclass(frozen=True, slots=True)
class StoredTable:
    """A typed table of the store."""

    name: str
    entry: Mapping[str, Any]
    """The members that an entry of `lake.json5` would have."""
    found: bool = True
    """True for a table that was found by itself, False for one made by command."""
    since: Positions = field(default_factory=dict)
    """From where on each partition of a journal is read; where nothing stands, from its start."""
    removed: bool = False

    @property
    def spec(self) -> TypedTable:
        """The table as the configuration would have it; raises `ConfigError`."""
        return read_table_entry(self.name, self.entry)

    def plain(self) -> dict[str, Any]:
        """Return it as JSON can write it."""
        return {
            "table": dict(self.entry),
            "found": self.found,
            "since": dict(self.since),
            "removed": self.removed,
        }


@final
class TableStore:
    """The files of a lake's typed tables."""

    def __init__(self, place: LakeLocation) -> None:
        """Use the folder of the lake in this place."""
        self._place = place / FOLDER

    def all(self) -> dict[str, StoredTable]:
        """Return the tables by name, those that were removed too, but none that cannot be read."""
        found: dict[str, StoredTable] = {}
        for file, _, _ in self._place.files():
            name = file.removesuffix(".json")
            if name == file or "/" in name:
                continue
            try:
                page: Mapping[str, Any] = json.loads(self._place.read(file))
                one = StoredTable(
                    name,
                    dict(page["table"]),
                    bool(page["found"]),
                    {str(app): int(at) for app, at in page["since"].items()},
                    bool(page["removed"]),
                )
                _ = one.spec
            except (OSError, ValueError, KeyError, TypeError, AttributeError, ZError) as error:
                log.warning("what the table '%s' is cannot be read: %s", name, error)
                continue
            found[name] = one
        return found

    def specs(self) -> tuple[TypedTable, ...]:
        """Return the tables that were not removed."""
        return tuple(one.spec for one in self.all().values() if not one.removed)

    def put(self, one: StoredTable) -> None:
        """Keep a table, over a restart too."""
        self._place.make("")
        self._place.write(f"{one.name}.json", json.dumps(one.plain(), indent=1).encode())

    def remove(self, name: str) -> None:
        """Note that a table was removed; its keys make no new one."""
        self.put(replace(self.all()[name], removed=True))

    def discard(self, name: str) -> None:
        """Forget a table, as if it had never been."""
        self._place.remove(f"{name}.json")

    def forget(self, expr: str) -> list[str]:
        """Discard the tables all of whose keys a key expression includes; return their names."""
        gone = [
            name
            for name, one in self.all().items()
            if includes(expr, str(KeyFormat(one.spec.format).key_expr))
        ]
        for name in gone:
            self.discard(name)
        waiting = self.waiting()
        if waiting:
            self.keep_waiting({k: at for k, at in waiting.items() if not includes(expr, k)})
        return gone

    @property
    def has_begun(self) -> bool:
        """Return True if all keys of the lake have been looked at for families."""
        return self._place.exists(BEGUN)

    def begin(self) -> None:
        """Note that all keys of the lake have been looked at for families."""
        self._place.make("")
        self._place.write(BEGUN, b"")

    def waiting(self) -> dict[str, dict[str, int]]:
        """Return the keys that waited for their siblings, and from where on each is read."""
        try:
            page: Mapping[str, Any] = json.loads(self._place.read(WAITING))
            return {
                str(key): {str(app): int(at) for app, at in since.items()}
                for key, since in page.items()
            }
        except (OSError, ValueError, TypeError, AttributeError):
            return {}

    def keep_waiting(self, keys: Mapping[str, Positions]) -> None:
        """Keep the keys that wait for their siblings."""
        if keys:
            self._place.make("")
            plain = {key: dict(since) for key, since in keys.items()}
            self._place.write(WAITING, json.dumps(plain).encode())
        else:
            self._place.remove(WAITING)


@final
class FoundTables:
    """The tables of the store in a running lake, and the keys that may make more.

    The pipelines of a lake share one. Commands change it from other threads; each pipeline takes
    what changed at the beginning of its next step (`version`).
    """

    def __init__(self, place: LakeLocation, config: LakeConfig) -> None:
        """Begin with the tables that earlier runs have made."""
        self.store = TableStore(place)
        self.automatic = config.families
        self._lock = threading.RLock()
        self._given = {one.name for one in config.tables}
        self._stored = self.store.all()
        self._positions: dict[str, int] = {}
        self.version = 0
        """Counts changes."""
        self._taken: dict[int, int] = {}
        self._changed = threading.Condition(self._lock)
        self._finder = FamilyFinder(
            one.spec.format for one in self._stored.values() if not one.spec.ros2
        )
        for key, since in self.store.waiting().items() if self.automatic else ():
            self._finder.observe([key], since, float("-inf"))
        self._kept = set(self._finder.pending)

    @property
    def specs(self) -> dict[str, TypedTable]:
        """The tables by name, without those that the configuration names too."""
        with self._lock:
            return {
                name: one.spec
                for name, one in self._stored.items()
                if not one.removed and name not in self._given
            }

    @property
    def passed_over(self) -> tuple[TypedTable, ...]:
        """Tables that were removed: their keys make no new ones."""
        with self._lock:
            return tuple(one.spec for one in self._stored.values() if one.removed)

    @property
    def refusals(self) -> tuple[Refusal, ...]:
        """The keys that get no table, by reason."""
        with self._lock:
            return self._finder.refusals

    @property
    def refused(self) -> dict[str, tuple[str, ...]]:
        """The keys that get no table and are remembered, by reason."""
        with self._lock:
            return self._finder.refused

    @property
    def pending(self) -> tuple[str, ...]:
        """The keys that wait for their siblings."""
        with self._lock:
            return tuple(self._finder.pending)

    @property
    def waiting(self) -> int:
        """Return the number of keys that wait for their siblings."""
        with self._lock:
            return len(self._finder.pending)

    def wanted_from(self) -> dict[str, int]:
        """Return the first offset that a key which waits for a table needs, by partition."""
        with self._lock:
            return earliest(self._finder.pending.values())

    def since(self, name: str) -> Positions:
        """Return from where on a table is read."""
        with self._lock:
            one = self._stored.get(name)
            return {} if one is None else one.since

    def observe(
        self, keys: Mapping[str, bool], at: Positions, positions: Positions, now: float
    ) -> None:
        """Take keys that have no table, and whether their payloads can be read.

        `at`: from where on the rows were read that have them; `positions`: how far `samples` is.
        """
        if not self.automatic:
            return
        with self._lock:
            self._positions.update(positions)
            for key, read in sorted(keys.items()):
                if read:
                    self._finder.observe([key], at, now)
                elif key not in self._finder.pending:
                    self._finder.refuse(key, UNREAD)
            self._keep()

    def _keep(self) -> None:
        waiting = self._finder.pending
        if waiting.keys() == self._kept:
            return
        try:
            self.store.keep_waiting(waiting)
            self._kept = set(waiting)
        except (OSError, pa.ArrowException) as error:
            log.warning("keys that wait for a table cannot be kept: %s", error)

    def is_due(self, now: float) -> bool:
        """Return True if a family may be found now."""
        with self._lock:
            at = self._finder.due_at() if self.automatic else None
            return at is not None and now >= at

    def find(self, taken: Collection[str], now: float, *, all: bool = False) -> list[KeyFamily]:
        """Make tables of the families that are due; `taken`: names that there are.

        A table is in the store before it is made, so that a restart goes on with it.
        """
        if not self.automatic:
            return []
        with self._lock:
            names = {*taken, *self._given, *self._stored}
            families = self._finder.find(names, now, all=all)
            for one in families:
                since = {**self._positions, **one.since}
                stored = StoredTable(one.name, {"format": one.format}, since=since)
                self.store.put(stored)
                self._stored[one.name] = stored
                self.version += 1
            if families:
                self._keep()
            return families

    def all(self) -> dict[str, StoredTable]:
        """Return the tables by name, those that were removed too."""
        with self._lock:
            return dict(self._stored)

    def put(self, one: StoredTable) -> None:
        """Keep a table that a command made or changed, and wait until the pipelines know it."""
        with self._lock:
            self.store.put(one)
            self._stored[one.name] = one
            if not one.removed and not one.spec.ros2:
                self._finder.forgive(KeyFormat(one.spec.format).matches)
            self.version += 1
            self._wait_until_taken()

    def remove(self, name: str) -> None:
        """Take a table away, and wait until no pipeline has it; its keys make no new one."""
        with self._lock:
            self.put(replace(self._stored[name], removed=True))

    def take(self, pipeline: int) -> int:
        """Note that a pipeline takes all changes now; return the version that it has then."""
        with self._lock:
            self._taken[pipeline] = self.version
            self._changed.notify_all()
            return self.version

    def _wait_until_taken(self) -> None:
        wanted = self.version
        if not self._changed.wait_for(
            lambda: all(version >= wanted for version in self._taken.values()), PATIENCE_SECONDS
        ):
            raise LocalError(
                f"the pipeline has not come to the change in {PATIENCE_SECONDS:.0f} s; it is kept, "
                "and is made as soon as the pipeline goes on: `zenlake lake status` says how it is"
            )


def key_tables(place: LakeLocation, config: LakeConfig) -> tuple[TypedTable, ...]:
    """Return the typed tables of keys: those of the configuration, and those of the store.

    Those of topics of ROS 2 that came along are in `decode/ros2_tables`.
    """
    return (*config.tables, *(one.spec for one in stored_tables(place, config)))


def stored_tables(place: LakeLocation, config: LakeConfig) -> tuple[StoredTable, ...]:
    """Return the tables of the store that commands may change.

    Removed tables, and those that the configuration names too, are left out.
    """
    given = {one.name for one in config.tables}
    every = TableStore(place).all()
    return tuple(one for name, one in every.items() if not one.removed and name not in given)
