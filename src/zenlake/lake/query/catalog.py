"""The tables of a lake, opened once and shared by all questions.

A table is opened when a question first names it. After that its log is looked at again with each
question that names it, which costs nothing if no commit came: a lake of five hundred topics costs a
question about one of them no more than a lake of one.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Final, final

import pyarrow as pa

from zenlake.lake.query.document_column import columns_in_sql
from zenlake.lake.query.document_files import files_that_may_be_binary, has_binary
from zenlake.lake.table.delta import Table
from zenlake.lake.table.features import UnreadableTable
from zenlake.lake.table.location import LakeLocation

__all__ = ["Catalog", "CatalogColumns"]

MOST_LOOKED_AT: Final = 100
"""Files that one question has looked at for their encodings."""
MOST_REMEMBERED: Final = 10_000
"""Files of which it is known whether they have payloads of CBOR or MessagePack."""

Found = tuple[dict[str, Table], dict[str, UnreadableTable]]
"""Tables by name, and why others cannot be read."""


@final
class Catalog:
    """The tables by name, as they are now."""

    def __init__(self, place: LakeLocation) -> None:
        """`place`: where the lake lies."""
        self.place = place
        #: Held while a question is planned: a look at a log changes a table for everybody.
        self.lock = threading.RLock()
        self._open: dict[str, Table] = {}
        self._actions: dict[str, tuple[Table, int, pa.Table]] = {}
        #: Whether a file, which never changes, has payloads of CBOR or MessagePack.
        self._binary: dict[tuple[str, str], bool] = {}

    def names(self) -> list[str]:
        """Return the names that tables may have; nothing is opened."""
        return self.place.folders()

    def table(self, name: str) -> Table | None:
        """Return a table as it is now; None if there is none of this name.

        Raises `UnreadableTable` if its log cannot be read or is not understood.
        """
        with self.lock:
            known = self._open.pop(name, None)
            if known is not None and known.is_where_it_was():
                known.refresh()
            else:
                known = Table.open(self.place, name)
            if known is not None:
                self._open[name] = known
            return known

    def tables(self) -> Found:
        """Return all tables as they are now, and those that cannot be read."""
        with self.lock:
            found: dict[str, Table] = {}
            corrupt: dict[str, UnreadableTable] = {}
            names = self.names()
            for name in names:
                try:
                    table = self.table(name)
                except UnreadableTable as error:
                    corrupt[name] = error
                    continue
                if table is not None:
                    found[name] = table
            for gone in self._open.keys() - set(names):
                del self._open[gone]
                self._actions.pop(gone, None)
            return found, corrupt

    def private(self, name: str, at: datetime | None = None) -> Table | None:
        """Return a table opened for the caller alone, who may commit to it or go to a version.

        `at`: the table as it was at a time. None if there is no table of this name, or was none
        then. Raises `UnreadableTable` if its log cannot be read or is not understood.
        """
        table = Table.open(self.place, name)
        return table if table is None or at is None or table.at_time(at) else None

    def opened(self, at: datetime | None = None) -> Found:
        """Return all tables as `private` does, and those that cannot be read."""
        found: dict[str, Table] = {}
        corrupt: dict[str, UnreadableTable] = {}
        for name in self.names():
            try:
                table = self.private(name, at)
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

    def actions(self, table: Table) -> pa.Table:
        """Return the files of a table with their statistics, read once for each version."""
        with self.lock:
            known = self._actions.get(table.name)
            if known is None or known[0] is not table or known[1] != table.version:
                known = table, table.version, table.actions()
                if self._open.get(table.name) is table:
                    self._actions[table.name] = known
            return known[2]

    def binary_files(self, table: Table, paths: Sequence[str]) -> list[str]:
        """Return those of these files of samples that have payloads of CBOR or MessagePack.

        A file is looked at once. If many would have to be, the rest count as having them.
        """
        with self.lock:
            wanted = set(paths)
            found: list[str] = []
            looked = 0
            for path in files_that_may_be_binary(self.actions(table)):
                if path not in wanted:
                    continue
                known = self._binary.get((table.name, path))
                if known is None and looked < MOST_LOOKED_AT:
                    looked += 1
                    known = has_binary(table, path)
                    while len(self._binary) >= MOST_REMEMBERED:
                        del self._binary[next(iter(self._binary))]
                    self._binary[table.name, path] = known
                if known is not False:
                    found.append(path)
            return found


@final
class CatalogColumns(Mapping[str, list[str]]):
    """The columns of tables by name; a table is opened when its columns are asked for."""

    def __init__(self, catalog: Catalog, at: datetime | None = None) -> None:
        """`catalog`: whose tables; `at`: as they were at a time, opened for the caller alone."""
        self._catalog = catalog
        self._at = at
        self._names = catalog.names()
        self._opened: dict[str, Table] = {}

    def __getitem__(self, name: str) -> list[str]:
        return list(columns_in_sql(name, self.table(name).schema))

    def table(self, name: str) -> Table:
        """Return a table as it was when its columns were first asked for.

        Raises `KeyError` if there is no such table, or was none then.
        """
        if name not in self._opened:
            catalog, at = self._catalog, self._at
            table = catalog.table(name) if at is None else catalog.private(name, at)
            if table is None:
                raise KeyError(name)
            self._opened[name] = table
        return self._opened[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)
