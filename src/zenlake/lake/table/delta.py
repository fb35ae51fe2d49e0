"""One Delta table: what it holds, how far it is, and atomic changes to it.

Progress is kept where the rows are: each commit names the journal's partition and the offset
after its last row, as an application transaction of the Delta log. A commit says from where it
went on, and is refused if the table is somewhere else by now. So rows are in the table once,
however many drivers try, and there is nothing beside the table that could be lost.

A change that removes files is committed to the very version in which each of them was seen: where
deltalake may try again behind another commit, it removes files that an `OPTIMIZE` of another
program has already replaced, and their rows are there twice. After a lost race the files are looked
for again. Appends remove nothing, so deltalake tries those again by itself.
"""

from __future__ import annotations

import json
import os
import re
import time
import uuid
from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final, final
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import CommitProperties, DeltaTable, Field, Schema, Transaction
from deltalake.exceptions import CommitFailedError, DeltaError, TableNotFoundError
from deltalake.transaction import AddAction, PostCommitHookProperties, RemoveAction

from zenlake.errors import ZError
from zenlake.lake.model.column_comments import ABOUT, commented, meaning_of
from zenlake.lake.table.commit_log import NOTE, commit_lines, newest_note
from zenlake.lake.table.data_files import DataFile, read_checkpoint
from zenlake.lake.table.features import (
    DELETIONS,
    LOG,
    UnreadableTable,
    UnsupportedTable,
    deletions_refusal_of,
    demands_in_log,
    demands_of,
    refusal_of,
)
from zenlake.lake.table.location import LakeLocation
from zenlake.lake.table.table_version import TableVersion, file_columns, is_of_query

__all__ = [
    "LOG",
    "MADE",
    "CommitConflict",
    "CorruptTable",
    "Table",
    "Totals",
    "VersionTooOld",
]

REWRITES: Final = "zenlake/rewrites"
TOUCHED: Final = "zenlake.touched"
"""The property that changes when files are merged."""
WRITER: Final = "zenlake.writer"
"""The property that says who fills a table; without it the pipeline does, or a view."""
PROGRAMS: Final = "programs"
MADE: Final = "zenlake/made"
"""Moves when a table was made again from `samples`."""

CONFIGURATION: Final = {
    "delta.enableExpiredLogCleanup": "true",
    "delta.checkpointInterval": "50",
}
_VERSION: Final = re.compile(r"\d{20}\.json")
SHORTEST: Final = 3600.0
"""Seconds that the log remembers versions and files that were replaced, if nothing is said."""

MOST_RACES: Final = 16
"""Times that a commit tries again behind others that left all as it needs it."""


def _remembering(seconds: float) -> dict[str, str]:
    interval = f"interval {int(max(SHORTEST, seconds))} seconds"
    return {"delta.logRetentionDuration": interval, "delta.deletedFileRetentionDuration": interval}


@dataclass(frozen=True, slots=True)
class Totals:
    """What a version of a table holds."""

    rows: int
    files: int
    bytes: int


class CorruptTable(UnreadableTable):
    """A table whose log cannot be read; the message says what to do."""


class VersionTooOld(CorruptTable):
    """A time that the log of a table does not go back to."""


class CommitConflict(ZError):
    """Another writer changed the table meanwhile; look again, and decide again."""


@final
class Table:
    """A table of the lake."""

    def __init__(self, name: str, place: LakeLocation, table: DeltaTable) -> None:
        """`place`: the table's folder."""
        self.name = name
        self.place = place
        self._table = table
        self._transactions: dict[str, int | None] = {}
        self._transactions_version = -1
        self._totals: tuple[int, Totals] | None = None
        #: When the log's folder changed last, before it was read last.
        self._log_seen: int | None = None
        self._commit_seen = self._commit_file()
        #: The pipeline, a view or an alert opened it to fill it.
        self._is_lakes = False
        self.refusal = ""
        """Why nothing in it is read or written; empty if it is understood."""
        self.has_deletions = False
        """True if deletion vectors are all that it is refused for."""
        self._judge()

    @classmethod
    def open(cls, lake: LakeLocation, name: str, *, refused: bool = False) -> Table | None:
        """The table of this name, or None if the lake has none.

        Raises `UnreadableTable` if its log cannot be read, or demands what is not understood; with
        `refused` such a table is given, which refuses to be looked into.
        """
        place = lake / name
        try:
            found = cls(name, place, DeltaTable(place.bare, storage_options=place.options))
        except TableNotFoundError:
            return None
        except DeltaError as error:
            raise _unreadable(name, place, error) from error
        if not refused:
            found.demand_understood()
        return found

    def _judge(self) -> None:
        """Find out whether the version that was read last is understood."""
        demands = demands_of(self._table)
        self.refusal = refusal_of(self.name, demands)
        self.has_deletions = False
        if not self.refusal and DELETIONS in demands.features:
            try:
                self.has_deletions = bool(self._vectors().num_rows)
            except (DeltaError, OSError, pa.ArrowException) as error:
                self.refusal = (
                    f"table '{self.name}' has deletion vectors that cannot be read: {error}"
                )
            if self.has_deletions:
                self.refusal = deletions_refusal_of(self.name)
        if not self.refusal and self._is_lakes and self.is_by_programs:
            self.refusal = (
                f"table '{self.name}' is filled by programs with format(\"zenlake\"), so the lake "
                "writes nothing into it; give one of the two another name"
            )

    def _vectors(self) -> pa.Table:
        return pa.table(self._table.deletion_vectors())

    def demand_understood(self) -> None:
        """Raise `UnsupportedTable` if the table has a feature that is not understood."""
        if self.refusal:
            raise UnsupportedTable(self.refusal)

    @classmethod
    def create(
        cls,
        lake: LakeLocation,
        name: str,
        schema: pa.Schema,
        partitions: str | tuple[str, ...],
        described: str = "",
        *,
        by_programs: bool = False,
    ) -> Table:
        """The table of this name, made if it is not there.

        `partitions`: the columns that its files are partitioned by; `by_programs`: programs of
        users fill the table, and the comments of its columns are theirs.

        One with a feature that is not understood says where it is and how large; it refuses to be
        looked into or changed until that feature is gone.
        """
        existing = cls.open(lake, name, refused=True)
        if existing is not None:
            existing._is_lakes = not by_programs
            existing._judge()
            if not existing.refusal:
                existing._configure()
            return existing
        place = lake / name
        place.make("")
        properties = {**CONFIGURATION, **_remembering(SHORTEST)}
        if by_programs:
            properties[WRITER] = PROGRAMS
        else:
            described = described or ABOUT.get(name, "")
            schema = commented(name, schema)
        table = DeltaTable.create(
            place.bare,
            Schema.from_arrow(schema),
            mode="ignore",
            partition_by=[partitions] if isinstance(partitions, str) else list(partitions),
            description=described or None,
            configuration=properties,
            raise_if_key_not_exists=False,  # delta-rs knows no properties but those of Delta
            storage_options=place.options,
        )
        return cls(name, place, table)

    def _configure(self) -> None:
        """Tell a table of an earlier release what tables are told today."""
        self._tell(CONFIGURATION)

    def remember(self, seconds: float) -> None:
        """Let the log keep old versions for so long."""
        self._tell(_remembering(seconds))

    def set_properties(self, properties: Mapping[str, str]) -> None:
        """Set properties of the table: those of Delta, and others that only their writers know."""
        self._tell(properties, known=False)

    def _tell(self, properties: Mapping[str, str], *, known: bool = True) -> None:
        self.demand_understood()
        if properties.items() - self._table.metadata().configuration.items():
            try:
                self._table.alter.set_table_properties(dict(properties), known)
            except CommitFailedError as error:
                raise CommitConflict(f"table '{self.name}': {error}") from error
            self.refresh()

    # --- what it holds --------------------------------------------------------------------------

    @property
    def version(self) -> int:
        """The version that was read last."""
        return int(self._table.version())

    @property
    def id(self) -> str:
        """The number that the table got when it was made."""
        return str(self._table.metadata().id)

    @property
    def schema(self) -> pa.Schema:
        """The columns."""
        return pa.schema(self._table.schema())

    @property
    def file_schema(self) -> pa.Schema:
        """The columns of data files: all but those that the table is partitioned by."""
        return file_columns(self.schema, self.partitions)

    @property
    def partitions(self) -> tuple[str, ...]:
        """The columns that the files are partitioned by; none in many tables of other programs."""
        return tuple(self._table.metadata().partition_columns)

    @property
    def is_by_programs(self) -> bool:
        """Return True if programs of users made the table and fill it."""
        return self._table.metadata().configuration.get(WRITER) == PROGRAMS

    @property
    def properties(self) -> Mapping[str, str]:
        """The properties of the table."""
        return dict(self._table.metadata().configuration)

    @property
    def described(self) -> str:
        """The description that the table was made with."""
        return str(self._table.metadata().description or "")

    @property
    def is_continuous(self) -> bool:
        """Whether a view or an alert fills it, and not the pipeline."""
        return not self.is_by_programs and is_of_query(self.described)

    def snapshot(self) -> TableVersion:
        """Return the version that was read last; nothing that happens here changes it."""
        return TableVersion(
            self.name,
            self.place,
            self.version,
            self.schema,
            self.partitions,
            self.described,
            self.is_by_programs,
            self.actions(),
        )

    def at(self, version: int) -> None:
        """Go to an older version."""
        self._log_seen = None
        try:
            self._table.load_as_version(version)
        except DeltaError as error:
            raise CommitConflict(
                f"table '{self.name}' has no version {version}: {error}"
            ) from error
        self._judge()
        self.demand_understood()

    def at_time(self, instant: datetime) -> bool:
        """Go to the version that was the newest one then; False if there was no table yet.

        Raises `VersionTooOld` if the log does not go back so far.
        """
        there = self._versions()
        wanted = int(instant.timestamp() * 1000)
        after = bisect_right(there, wanted, key=self._committed_at)
        if not after:
            if not there or there[0] == 0:
                return False
            raise self._too_old(there[0])
        self.at(there[after - 1])
        return True

    def first_version_since(self, instant: datetime) -> int:
        """Return the first version that was made then or later; the next one if there is none.

        Raises `VersionTooOld` if the log does not go back so far.
        """
        there = self._versions()
        wanted = int(instant.timestamp() * 1000)
        first = bisect_left(there, wanted, key=self._committed_at)
        if first == 0 and there and there[0] > 0:
            raise self._too_old(there[0])
        return there[first] if first < len(there) else self.version + 1

    def _versions(self) -> list[int]:
        """The versions whose commits the log still has, in order."""
        # Of the log alone: below the table's folder are all its data files.
        names = (name for name, _, _ in (self.place / LOG).files())
        return sorted(int(name[:-5]) for name in names if _VERSION.fullmatch(name))

    def _too_old(self, version: int) -> VersionTooOld:
        first = datetime.fromtimestamp(self._committed_at(version) / 1000, UTC)
        return VersionTooOld(
            f"the log of table '{self.name}' goes back to {first:%Y-%m-%dT%H:%M:%SZ}; "
            "to keep more from now on, say `history: '7d'` in lake.json5"
        )

    def _committed_at(self, version: int) -> int:
        """When a version was made, in milliseconds."""
        path = self.place.path(f"{LOG}/{version:020}.json")
        with self.place.filesystem.open_input_stream(path) as page:
            for line in page.read().splitlines():
                if b'"commitInfo"' in line:
                    return int(json.loads(line)["commitInfo"]["timestamp"])
        return 0

    def refresh(self) -> None:
        """Look at the newest version; raises `UnsupportedTable` if it is not understood."""
        self.look()
        self.demand_understood()

    def look(self) -> None:
        """Look at the newest version, whether it is understood or not."""
        changed = self._log_changed()
        if changed is None or changed != self._log_seen or self._has_next():
            self._log_seen = changed
            try:
                self._table.update_incremental()
            except DeltaError as error:
                self._log_seen = None
                raise _unreadable(self.name, self.place, error) from error
            self._commit_seen = self._commit_file()
            self._judge()

    def _log_changed(self) -> int | None:
        """When a file came to the log or left it, where a filesystem tells that at once."""
        if self.place.remote:
            return None
        try:
            return os.stat(self.place.path(LOG)).st_mtime_ns
        except OSError:
            return None

    def _commit_file(self) -> tuple[int, int] | None:
        """The number and the time of the commit that was read last, where a filesystem has them."""
        if self.place.remote:
            return None
        try:
            found = os.stat(self.place.path(f"{LOG}/{self.version:020}.json"))
        except OSError:
            return None
        return found.st_ino, found.st_mtime_ns

    def is_where_it_was(self) -> bool:
        """Return False if the table was deleted, and perhaps another made under its name."""
        if self.place.remote:
            return True
        now = self._commit_file()
        return now is not None and now == self._commit_seen

    def _has_next(self) -> bool:
        """Whether there is a commit behind the version that was read last.

        One that came in the same tick of the clock as the one before does not change the time.
        """
        return os.path.exists(self.place.path(f"{LOG}/{self.version + 1:020}.json"))

    def actions(self) -> pa.Table:
        """The files with their statistics, a row each; `path` is the file's name in the folder."""
        self.demand_understood()
        return self._actions()

    def _actions(self) -> pa.Table:
        actions = pa.table(self._table.get_add_actions(flatten=True))
        paths = actions["path"].to_pylist()
        if any("%" in path for path in paths):
            # The log has paths as they stand in addresses; actions are made with names of files.
            column = pa.array([unquote(path) for path in paths], pa.string())
            at = actions.schema.get_field_index("path")
            actions = actions.set_column(at, "path", column)
        for place, field in enumerate(actions.schema):
            if field.name.startswith("max.") and pa.types.is_timestamp(field.type):
                actions = actions.set_column(place, field, _at_most(actions[field.name]))
        return actions

    def files(self) -> list[DataFile]:
        """The files; their statistics are left out."""
        return self._listed(self.actions())

    def _listed(self, actions: pa.Table) -> list[DataFile]:
        by = self.partitions
        texts = [_partition_texts(actions[f"partition.{name}"]) for name in by]
        values = list(zip(*texts, strict=True)) if by else [()] * actions.num_rows
        return [
            DataFile(path, size, rows or 0, dict(zip(by, value, strict=True)), "", modified)
            for path, size, rows, modified, value in zip(
                actions["path"].to_pylist(),
                actions["size_bytes"].to_pylist(),
                actions["num_records"].to_pylist(),
                actions["modification_time"].to_pylist(),
                values,
                strict=True,
            )
        ]

    def deletions(self) -> dict[str, list[tuple[DataFile, pa.Array | None]]]:
        """Return the files of each partition in which deletion vectors delete rows, by its value:
        with each file which of its rows are left, or None for all of them.

        A table that is not partitioned by one column is one partition, whose value is empty.
        """
        parts: dict[str, list[tuple[DataFile, pa.Array | None]]] = {}
        vectors = self._vectors()
        left = {
            unquote(address): selected.values
            for address, selected in zip(
                vectors["filepath"].to_pylist(), vectors["selection_vector"], strict=True
            )
        }
        by_name = {address.rpartition("/")[2]: address for address in left}
        touched = set()
        for file in self._listed(self._actions()):
            alone = len(self.partitions) == 1
            value = str(file.partition[self.partitions[0]]) if alone else ""
            path = unquote(file.path)
            address = by_name.get(path.rpartition("/")[2], "")
            selected = left.pop(address, None) if address.endswith(f"/{path}") else None
            if selected is not None:
                touched.add(value)
            parts.setdefault(value, []).append((file, selected))
        if left:
            raise UnsupportedTable(
                f"table '{self.name}' has the deletion vector of an unknown file: {min(left)}"
            )
        return {value: files for value, files in parts.items() if value in touched}

    def committed(self, app: str) -> int | None:
        """How far an application got, or None if it never wrote."""
        # deltalake looks through the log for it each time, and it is asked for all the time.
        if self._transactions_version != self.version:
            self._transactions.clear()
            self._transactions_version = self.version
        if app not in self._transactions:
            version = self._table.transaction_version(app)
            self._transactions[app] = None if version is None else int(version)
        return self._transactions[app]

    def applications(self) -> set[str]:
        """All that have written to the table, as far as its log knows of them."""
        found: set[str] = set()
        for version in range(self.version, -1, -1):
            lines = commit_lines(self.place, version)
            if lines is None:
                break
            found |= {
                str(json.loads(line)["txn"]["appId"]) for line in lines if b'"txn"' in line[:20]
            }
        names = [name for name, _, _ in self.place.files() if name.startswith(f"{LOG}/")]
        for name in names:
            if name.endswith(".checkpoint.parquet"):
                pages = read_checkpoint(self.place, name, "txn")
                found |= {str(page["appId"]) for page in pages if page is not None}
        return found

    @property
    def rewrites(self) -> int:
        """How often files were replaced."""
        return self.committed(REWRITES) or 0

    def totals(self) -> Totals:
        """Rows, files and bytes of the version that was read last."""
        if self._totals is None or self._totals[0] != self.version:
            actions = self._actions()
            self._totals = (
                self.version,
                Totals(
                    pc.sum(actions["num_records"]).as_py() or 0,
                    actions.num_rows,
                    pc.sum(actions["size_bytes"]).as_py() or 0,
                ),
            )
        return self._totals[1]

    def last_note(self, kind: str) -> dict[str, Any] | None:
        """What the newest commit of this kind noted, as far back as the log goes."""
        found = newest_note(self.place, self.version, kind)
        return None if found is None else found[1]

    def last_noted(self, kind: str) -> int | None:
        """The newest version that one of our commits of this kind made."""
        found = newest_note(self.place, self.version, kind)
        return None if found is None else found[0]

    def commit_actions(self, version: int) -> list[dict[str, Any]] | None:
        """Return the actions of one commit; None if the log does not have it any more."""
        lines = commit_lines(self.place, version)
        return None if lines is None else [json.loads(line) for line in lines if line.strip()]

    # --- changes --------------------------------------------------------------------------------

    def comment(self, comments: Mapping[str, str], described: str = "") -> None:
        """Let the table and its columns say what they mean, where they do not say so yet."""
        self.demand_understood()
        try:
            if described and self.described != described:
                self._table.alter.set_table_description(described)
            for field in self.schema:
                text = comments.get(field.name) or meaning_of(self.name, field.name)
                if text and _comment_of(field) != text:
                    self._table.alter.set_column_metadata(field.name, {"comment": text})
        except CommitFailedError as error:
            raise CommitConflict(f"table '{self.name}': {error}") from error
        self.refresh()

    def grow(self, columns: Mapping[str, pa.DataType]) -> None:
        """Add columns that are not there yet."""
        self.refresh()
        had = {name.lower() for name in self.schema.names}
        new = [
            Field.from_arrow(pa.field(name, kind))
            for name, kind in columns.items()
            if name.lower() not in had
        ]
        if new:
            try:
                self._table.alter.add_columns(new)
            except CommitFailedError as error:
                raise CommitConflict(f"table '{self.name}': {error}") from error
            self.refresh()

    def append(
        self,
        files: Sequence[DataFile],
        moved: Mapping[str, tuple[int | None, int]],
        note: Mapping[str, Any] | None = None,
        removed: Sequence[DataFile] = (),
        rewrites: int | None = None,
        version: int | None = None,
    ) -> None:
        """Add files, and move each application on: `{id: (from, to)}`; all or nothing.

        `rewrites`: refuse if files were replaced since there were so many rewrites; `version`:
        refuse if there was any commit since this version.
        """
        self._commit(files, removed, moved, note, True, rewrites, version)

    def rewrite(self, files: Sequence[DataFile], removed: Sequence[DataFile], change: bool) -> None:
        """Put files in the place of others; `change` says whether the rows differ.

        Where they do not, delta-rs lets an `OPTIMIZE` that is under way remove the same files, and
        the rows are there twice. A change of properties it does notice: one before the commit, for
        those that began earlier, and one after it, for those that begin between the two.
        """
        if not change:
            self._touch()
        self._commit(files, removed, {}, {"kind": "rewrite"}, change)
        if not change:
            self._touch()

    def _touch(self) -> None:
        """Make whatever is under way in the table look again."""
        for _ in range(MOST_RACES):
            self.refresh()
            try:
                self._table.alter.set_table_properties(
                    {TOUCHED: uuid.uuid4().hex}, raise_if_not_exists=False
                )
            except CommitFailedError:
                continue  # somebody else's change of properties does the same
            break
        self.refresh()

    def replace(
        self,
        files: Sequence[DataFile],
        schema: pa.Schema,
        moved: Mapping[str, tuple[int | None, int]],
        note: Mapping[str, Any],
        version: int,
    ) -> None:
        """Put these files and columns in the place of all that it has; all or nothing.

        `version`: the one that the files were made from. A commit since then is a conflict, for
        its rows would be lost. Applications that are named with the offset where they are already
        must still be there.
        """
        self.refresh()
        self._demand(moved, version=version)
        transactions = {app: end for app, (_, end) in moved.items()}
        transactions[REWRITES] = self.rewrites + 1
        if "rebuilt" in note:
            transactions[MADE] = self.version + 1
        had = {field.name: _comment_of(field) for field in self.schema}
        if self.is_by_programs:
            schema = pa.schema([_with_comment(field, had.get(field.name, "")) for field in schema])
        else:
            schema = commented(self.name, schema, had)
        self._write(self._added(files, True), transactions, note, schema)

    def replace_partition(self, value: str, files: Sequence[DataFile], version: int) -> None:
        """Put these files, with the same rows, in the place of all files of a partition.

        deltalake removes the old files together with their deletion vectors. `version`: the one
        that the files were made from; a commit since then is a conflict.
        """
        self.look()
        if self.version != version:
            raise CommitConflict(f"table '{self.name}' was changed meanwhile")
        transactions = {REWRITES: self.rewrites + 1}
        note = {"kind": "rewrite"}
        self._write(self._added(files, False), transactions, note, partition=value)

    def end_past(self) -> None:
        """Forget every version before the newest one, and what the log says of it."""
        self.refresh()
        self._table.create_checkpoint()
        for name, _, _ in list((self.place / LOG).files()):
            digits = name[:20]
            if digits.isdecimal() and int(digits) < self.version:
                self.place.remove(f"{LOG}/{name}")

    def _demand(
        self,
        moved: Mapping[str, tuple[int | None, int]],
        removed: Sequence[DataFile] = (),
        rewrites: int | None = None,
        version: int | None = None,
    ) -> None:
        """Raise `CommitConflict` unless the table is as the caller saw it."""
        for app, (start, _) in moved.items():
            if self.committed(app) != start:
                raise CommitConflict(
                    f"table '{self.name}' is at {self.committed(app)} for {app}, not at {start}"
                )
        if rewrites is not None and self.rewrites != rewrites:
            raise CommitConflict(f"table '{self.name}' was written anew meanwhile")
        if version is not None and self.version != version:
            raise CommitConflict(
                f"table '{self.name}' was changed meanwhile: it is at version {self.version}, "
                f"not at {version}"
            )
        if removed:
            gone = {f.path for f in removed} - set(self.actions()["path"].to_pylist())
            if gone:
                raise CommitConflict(f"table '{self.name}' has no file {min(gone)} any more")

    def _commit(
        self,
        files: Sequence[DataFile],
        removed: Sequence[DataFile],
        moved: Mapping[str, tuple[int | None, int]],
        note: Mapping[str, Any] | None,
        change: bool,
        rewrites: int | None = None,
        version: int | None = None,
    ) -> None:
        columns: pa.Schema | None = None
        for left in reversed(range(MOST_RACES)):
            self.refresh()
            self._demand(moved, removed, rewrites, version)
            if columns is not None and self.schema != columns:
                raise CommitConflict(f"table '{self.name}' has other columns now")
            columns = self.schema
            now = int(time.time() * 1000)
            actions = self._added(files, change)
            transactions = {app: end for app, (_, end) in moved.items()}
            if removed:
                transactions[REWRITES] = self.rewrites + 1
                actions += [
                    RemoveAction(f.path, change, now, f.size, dict(f.partition)) for f in removed
                ]
            try:
                exact = bool(removed) or version is not None
                self._write(actions, transactions, note, exact=exact)
            except CommitConflict:
                if not left:
                    raise
            else:
                return

    def _added(self, files: Sequence[DataFile], change: bool) -> list[Any]:
        return [
            AddAction(f.path, f.size, dict(f.partition), f.modified, change, f.stats) for f in files
        ]

    def _write(
        self,
        actions: list[Any],
        transactions: dict[str, int],
        note: Mapping[str, Any] | None,
        schema: pa.Schema | None = None,
        *,
        exact: bool = True,
        partition: str | None = None,
    ) -> None:
        """Commit actions; with a schema, in the place of all that the table has, with the value of
        a partition in the place of all that is in that one.

        `exact`: to the version behind the one that was read last, and to no other.
        """
        # A rewrite must not clean away the note of an append that nobody has settled yet.
        clean = note is None or note.get("kind") == "append"
        try:
            self._table.create_write_transaction(
                actions,
                mode="append" if schema is None and partition is None else "overwrite",
                partition_filters=[(self.partitions[0], "=", partition)] if partition else None,
                schema=self._table.schema() if schema is None else Schema.from_arrow(schema),
                partition_by=list(self.partitions),
                commit_properties=CommitProperties(
                    app_transactions=[Transaction(app, to) for app, to in transactions.items()],
                    custom_metadata=None if note is None else {NOTE: dict(note)},
                    max_commit_retries=0 if exact else None,
                ),
                post_commithook_properties=PostCommitHookProperties(
                    create_checkpoint=True, cleanup_expired_logs=clean
                ),
            )
        except CommitFailedError as error:
            raise CommitConflict(f"table '{self.name}': {error}") from error
        finally:
            self.look()


def _partition_texts(values: pa.ChunkedArray) -> list[str | None]:
    """Return the values of a partition column as the log writes them."""
    if pa.types.is_boolean(values.type):
        return [None if value is None else str(value).lower() for value in values.to_pylist()]
    if pa.types.is_timestamp(values.type):
        return list(values.cast(pa.timestamp("us")).cast(pa.string()).to_pylist())
    return [None if value is None else str(value) for value in values.to_pylist()]


def _at_most(times: pa.ChunkedArray) -> pa.ChunkedArray:
    """The greatest times that there may be in files: programs cut them to milliseconds."""
    micros = times.cast(pa.int64())
    is_cut = pc.equal(pc.multiply(pc.divide(micros, 1000), 1000), micros)
    return pc.if_else(is_cut, pc.add(micros, 999), micros).cast(times.type)


def _comment_of(field: pa.Field) -> str:
    return str((field.metadata or {}).get(b"comment", b"").decode())


def _with_comment(field: pa.Field, text: str) -> pa.Field:
    return field.with_metadata({"comment": text}) if text else field


def _unreadable(name: str, place: LakeLocation, error: DeltaError) -> UnreadableTable:
    """Why a table cannot be opened: it demands what is not understood, or its log is damaged."""
    try:
        refusal = refusal_of(name, demands_in_log(place))
    except (OSError, pa.ArrowException, ValueError, TypeError, KeyError, AttributeError):
        refusal = ""  # the log is damaged
    if refusal:
        return UnsupportedTable(refusal)
    first = " ".join(str(error).partition("\n")[0].split())[:200]
    return CorruptTable(
        f"the log of table '{name}' cannot be read: {first}; "
        f"`zenlake lake repair {name}` says what can be done"
    )
