"""The tables of a lake, opened once and shared by all questions.

A table is opened when a question first names it. After that its log is looked at again with each
question that names it, which costs nothing if no commit came: a lake of five hundred topics costs a
question about one of them no more than a lake of one. What a question gets is one version of a
table, which never changes: others may ask meanwhile, and see later ones.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Final, TypeVar, final

from zenlake.lake.query.document_column import columns_in_sql
from zenlake.lake.query.document_files import files_that_may_be_binary, has_binary
from zenlake.lake.table.delta import Table
from zenlake.lake.table.features import UnreadableTable
from zenlake.lake.table.location import LakeLocation
from zenlake.lake.table.table_version import TableVersion

__all__ = ["Catalog", "CatalogColumns"]

MOST_LOOKED_AT: Final = 100
"""Files that one question has looked at for their encodings."""
MOST_REMEMBERED: Final = 10_000
"""Files of which it is known whether they have payloads of CBOR or MessagePack."""

T = TypeVar("T")

Found = tuple[dict[str, T], dict[str, UnreadableTable]]
"""Tables by name, and why others cannot be read."""


@final
class Catalog:
    """The tables by name, as they are now."""

    def __init__(self, place: LakeLocation) -> None:
        """`place`: where the lake lies."""
        self.place = place
        #: Held while a log is looked at.
        self._lock = threading.RLock()
        self._open: dict[str, tuple[Table, TableVersion]] = {}
        #: Whether a file, which never changes, has payloads of CBOR or MessagePack.
        self._binary: dict[tuple[str, str], bool] = {}

    def names(self) -> list[str]:
        """Return the names that tables may have; nothing is opened."""
        return self.place.folders()

    def table(self, name: str) -> TableVersion | None:
        """Return a table as it is now; None if there is none of this name.

        Raises `UnreadableTable` if its log cannot be read or is not understood.
        """
        found = self._look(name)
        return None if found is None else found[1]

    def table_with_offsets(
        self, name: str, apps: Collection[str]
    ) -> tuple[TableVersion, dict[str, int]] | None:
        """Return a table as `table` does, and how far applications had written to it by then."""
        with self._lock:
            found = self._look(name)
            if found is None:
                return None
            table, version = found
            return version, {app: table.committed(app) or 0 for app in apps}

    def _look(self, name: str) -> tuple[Table, TableVersion] | None:
        with self._lock:
            known = self._open.pop(name, None)
            if known is not None and known[0].is_where_it_was():
                known[0].refresh()
                if known[1].version != known[0].version:
                    known = known[0], known[0].snapshot()
            else:
                table = self.private(name)
                known = None if table is None else (table, table.snapshot())
            if known is not None:
                self._open[name] = known
            return known

    def tables(self) -> Found[TableVersion]:
        """Return all tables as they are now, and those that cannot be read."""
        names = self.names()
        found = self._all(names, self.table)
        with self._lock:
            for gone in self._open.keys() - set(names):
                del self._open[gone]
        return found

    def table_at(self, name: str, instant: datetime) -> TableVersion | None:
        """Return a table as it was at a time; None if there was none of this name then.

        Raises `UnreadableTable` if its log cannot be read or is not understood.
        """
        table = self.private(name)
        return table.snapshot() if table is not None and table.at_time(instant) else None

    def tables_at(self, instant: datetime) -> Found[TableVersion]:
        """Return all tables as they were at a time, and those that cannot be read."""
        return self._all(self.names(), lambda name: self.table_at(name, instant))

    def private(self, name: str) -> Table | None:
        """Return a table opened for the caller alone, who may commit to it or go to a version.

        None if there is no table of this name. Raises `UnreadableTable` if its log cannot be read
        or is not understood.
        """
        return Table.open(self.place, name)

    def opened(self) -> Found[Table]:
        """Return all tables as `private` does, and those that cannot be read."""
        return self._all(self.names(), self.private)

    def _all(self, names: Iterable[str], open: Callable[[str], T | None]) -> Found[T]:
        found: dict[str, T] = {}
        corrupt: dict[str, UnreadableTable] = {}
        for name in names:
            try:
                table = open(name)
            except UnreadableTable as error:
                corrupt[name] = error
                continue
            if table is not None:
                found[name] = table
        return found, corrupt

    def is_empty(self) -> bool:
        """Return True if there is no table. Tables are opened up to the first that there is."""
        for name in self.names():
            try:
                if self.table(name) is not None:
                    return False
            except UnreadableTable:
                return False
        return True

    def binary_files(self, table: TableVersion, paths: Sequence[str]) -> list[str]:
        """Return those of these files of samples that have payloads of CBOR or MessagePack.

        A file is looked at once. If many would have to be, the rest count as having them.
        """
        wanted = set(paths)
        found: list[str] = []
        looked = 0
        for path in files_that_may_be_binary(table.actions):
            if path not in wanted:
                continue
            known = self._binary.get((table.name, path))
            if known is None and looked < MOST_LOOKED_AT:
                looked += 1
                known = has_binary(table, path)
                with self._lock:
                    while len(self._binary) >= MOST_REMEMBERED:
                        del self._binary[next(iter(self._binary))]
                    self._binary[table.name, path] = known
            if known is not False:
                found.append(path)
        return found


@final
class CatalogColumns(Mapping[str, list[str]]):
    """The columns of tables by name; a table is opened when its columns are asked for."""

    def __init__(
        self, catalog: Catalog, at: datetime | None = None, names: Sequence[str] | None = None
    ) -> None:
        """`catalog`: whose tables; `at`: as they were at a time, opened for the caller alone.

        `names`: those that the caller is told of; without them all.
        """
        self._catalog = catalog
        self._at = at
        self._names = catalog.names() if names is None else names
        self._opened: dict[str, TableVersion] = {}

    def __getitem__(self, name: str) -> list[str]:
        return list(columns_in_sql(name, self.table(name).schema))

    def table(self, name: str) -> TableVersion:
        """Return a table as it was when its columns were first asked for.

        Raises `KeyError` if there is no such table, or was none then.
        """
        if name not in self._opened:
            catalog, at = self._catalog, self._at
            table = catalog.table(name) if at is None else catalog.table_at(name, at)
            if table is None:
                raise KeyError(name)
            self._opened[name] = table
        return self._opened[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)
