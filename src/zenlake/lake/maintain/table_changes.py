"""Typed tables that are made, changed, renamed, merged and removed by command.

A table is filled from `samples`, so it has all of history that is kept. While a lake runs, its
pipelines take a change between two steps; each command can be interrupted anywhere and given again.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, Protocol, final

from zenlake.config.nearest import nearest
from zenlake.errors import ConfigError, LocalError
from zenlake.lake.decode.config_file import read_table_entry
from zenlake.lake.decode.table_description import described_as
from zenlake.lake.decode.table_store import StoredTable, TableStore
from zenlake.lake.ingest.quarantine import Quarantine
from zenlake.lake.ingest.spark_tasks import Tasks
from zenlake.lake.maintain.definition_store import ContinuousQueryStore
from zenlake.lake.maintain.rebuild import Rebuilt, rebuild
from zenlake.lake.maintain.suggest import readable_keys, suggest
from zenlake.lake.model.config import FIXED, LakeConfig
from zenlake.lake.model.key_families import chunks_of, format_of
from zenlake.lake.table.delta import CommitConflict, Table
from zenlake.lake.table.location import LakeLocation

__all__ = ["ChangedTable", "TableChanges", "TableRegistry", "purge"]

log = logging.getLogger("zenlake.lake")

MOST_TRIES: Final = 20
MEMBERS: Final = (
    "format", "encoding", "decoder", "type", "columns", "rename", "drop", "comment", "comments",
)  # fmt: skip


class TableRegistry(Protocol):
    """Keeps which tables there are: the store of a lake, or that of a running one."""

    def all(self) -> dict[str, StoredTable]:
        """Return the tables by name, those that were removed too."""

    def put(self, one: StoredTable) -> None:
        """Keep a table."""

    def remove(self, name: str) -> None:
        """Note that a table was removed."""


@dataclass(frozen=True, slots=True)
class ChangedTable:
    """A table as it is after a command."""

    name: str
    format: str
    rows: int = 0
    refused: int = 0
    """Its rows in quarantine."""


@final
class TableChanges:
    """The commands, on one lake."""

    def __init__(self, place: LakeLocation, config: LakeConfig, tables: TableRegistry) -> None:
        """`config` names tables that only its file can change."""
        self._place = place
        self._config = config
        self._tables = tables

    def listed(self) -> list[StoredTable]:
        """Return the tables that commands may change, by name."""
        return [one for _, one in sorted(self._tables.all().items()) if not one.removed]

    def add(self, name: str, entry: Mapping[str, Any], tasks: Tasks) -> ChangedTable:
        """Make a table of the keys of a format, and fill it with what `samples` has of them."""
        self._demand_free(name)
        new = StoredTable(name, _entry(name, entry), found=False)
        done = self._filled(new, tasks)
        self._tables.put(new)
        return _changed(new, done)

    def set(self, name: str, changes: Mapping[str, Any], tasks: Tasks) -> ChangedTable:
        """Change how the payloads of a table are read, and read all of them again."""
        one = self._one(name)
        kept = {member: value for member, value in one.entry.items() if member not in changes}
        given = {member: value for member, value in changes.items() if value is not None}
        new = replace(one, entry=_entry(name, kept | given))
        self._tables.put(new)
        return _changed(new, self._filled(new, tasks))

    def rename(self, name: str, to: str, tasks: Tasks) -> ChangedTable:
        """Make a table again under another name, and remove the old one."""
        one = self._one(name)
        self._demand_unused(name)
        self._demand_free(to)
        new = StoredTable(to, _entry(to, one.entry), one.found)
        done = self._filled(new, tasks)
        self._tables.put(new)
        self.remove(name, tasks)
        return _changed(new, done)

    def merge(self, name: str, other: str, tasks: Tasks, format: str | None = None) -> ChangedTable:
        """Let a table have the keys of another one too, which is removed."""
        one, gone = self._one(name), self._one(other)
        self._demand_unused(other)
        both = format or _merged(one.spec.format, gone.spec.format)
        changed = self.set(name, {"format": both}, tasks)
        self.remove(other, tasks)
        return changed

    def remove(self, name: str, tasks: Tasks) -> None:
        """Remove a table with its rows, those in quarantine too. Its samples stay in `samples`."""
        self._one(name)
        self._demand_unused(name)
        self._tables.remove(name)
        purge(self._place, name, tasks)

    def adopt(self, store: TableStore, tasks: Tasks) -> list[str]:
        """Make tables of families of keys that a lake had before tables appeared by themselves.

        Return their names. It is done once; an interrupted one goes on.
        """
        if store.has_begun or Table.open(self._place, "latest") is None:
            return []
        said = suggest(self._place, self._config, readable_keys(self._place))
        new = [one for one in said.tables if not one.made]
        for one in new:
            stored = StoredTable(one.name, {"format": one.format})
            self._filled(stored, tasks)
            self._tables.put(stored)
        store.begin()
        return [one.name for one in new]

    def finish(self, tasks: Tasks) -> None:
        """Finish removals that were cut off: tables that were noted as removed, and are there."""
        folders = set(self._place.folders()) - {one.name for one in self._config.tables}
        for name, one in self._tables.all().items():
            if one.removed and name in folders and _is_of(self._place, name, one):
                purge(self._place, name, tasks)

    def _filled(self, one: StoredTable, tasks: Tasks) -> Rebuilt | None:
        """Fill a table from `samples`; None if nothing was recorded yet."""
        if Table.open(self._place, "samples") is None:
            return None
        return rebuild(self._place, one.spec, tasks)

    def _one(self, name: str) -> StoredTable:
        if name in {one.name for one in self._config.tables}:
            raise LocalError(f"the table '{name}' is in lake.json5; change it there")
        every = {one.name: one for one in self.listed()}
        if name not in every:
            near = nearest(name, every)
            advice = (
                f"did you mean '{near}'?" if near else f"there are {', '.join(every) or 'none'}"
            )
            raise LocalError(f"there is no table '{name}' that a command can change; {advice}")
        return every[name]

    def _demand_free(self, name: str) -> None:
        taken = {*FIXED, *(one.name for one in self._config.tables)}
        taken |= {one.name for one in self.listed()}
        if name in taken or name in self._place.folders():
            raise LocalError(f"there is a table '{name}' already; choose another name")

    def _demand_unused(self, name: str) -> None:
        if "://" in self._place.uri:
            return
        for one in ContinuousQueryStore(self._place).all().values():
            if re.search(rf"\b{re.escape(name)}\b", one.sql, re.IGNORECASE):
                raise LocalError(
                    f"the {one.kind} '{one.name}' asks '{name}'; drop it first: "
                    f"`zenlake lake {one.kind} drop {one.name}`"
                )


def purge(place: LakeLocation, name: str, tasks: Tasks) -> None:
    """Delete the rows of a table that was removed, and what it refused; again does nothing more."""
    table = Table.open(place, name)
    for left in reversed(range(MOST_TRIES)):
        if table is None:
            break
        try:
            Quarantine(place, {}, tasks).forget(name, table.applications())
            break
        except CommitConflict as error:  # the pipeline was faster
            if not left:
                raise
            log.info("%s; looking again", error)
    place.remove_folder(name)


def _is_of(place: LakeLocation, name: str, one: StoredTable) -> bool:
    """Return True if the folder of a name is that of the table, not of another one made since."""
    table = Table.open(place, name)
    return table is not None and table.described == described_as(one.spec)


def _entry(name: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the members of a table that are given, once they were found to be right."""
    entry = {member: given[member] for member in MEMBERS if given.get(member)}
    for member in given:
        if member not in MEMBERS:
            raise ConfigError(f"a table has no '{member}'; it has {', '.join(MEMBERS)}")
    read_table_entry(name, entry)
    return entry


def _changed(one: StoredTable, done: Rebuilt | None) -> ChangedTable:
    form = one.spec.format
    return (
        ChangedTable(one.name, form)
        if done is None
        else ChangedTable(one.name, form, done.rows, done.refused)
    )


def _merged(one: str, other: str) -> str:
    """Return the format of the keys of two formats; raises if they differ in more than names."""
    mine, theirs = chunks_of(one), chunks_of(other)
    both = (
        tuple(a if a == b else None for a, b in zip(mine, theirs, strict=True))
        if mine is not None and theirs is not None and len(mine) == len(theirs)
        else ()
    )
    if not any(both):  # one of nothing but parts would have every key of this length
        raise LocalError(
            f"'{one}' and '{other}' have no format in common; say which by --format "
            "'plant/${line}/${rest:**}', or as \"format\" over HTTP"
        )
    return format_of(both)
