"""A table as a stream: the rows that each commit added, each of them once.

    {"table": id, "version": 7, "index": 2, "snapshot": False}

is the offset before the third file that version 7 added. A new query begins with a snapshot: all
files of one version, in the order of their names. Files of a commit are counted in the order of its
log entry. Neither changes, so rows between two offsets are the same whenever they are read.

Compaction writes no data: its files are marked so in the log (`dataChange`), and are passed over.
Commits in which the lake writes files anew, with wider columns or without rows that are too old,
have nothing to give either, and say so in their note. Any other commit that removes and adds rows
has changed some, and nobody could tell which are new: it ends the stream with an error, or is
passed over with `skipChangeCommits`.
"""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, final
from urllib.parse import unquote

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)

from zenlake.errors import ZError
from zenlake.lake.spark_source.options import TableOptions
from zenlake.lake.spark_source.tasks import TableColumns, TableFile, files_of, open_table, packed
from zenlake.lake.table.commit_log import is_rewrite
from zenlake.lake.table.delta import Table
from zenlake.spark.offsets import DataLoss

__all__ = ["LakeTableStream", "RowsChanged", "TableOffset"]

REMEMBERED_COMMITS: Final = 256
MOST_IDLE_COMMITS: Final = 20
"""After so many commits without data the offset moves on, at the price of an empty micro-batch:
the log forgets old commits, and a checkpoint must not stay behind there."""


class RowsChanged(ZError):
    """A commit that changed rows which a stream may have given already."""


@dataclass(frozen=True, slots=True, order=True)
class TableOffset:
    """Before which file of which version a stream is."""

    version: int
    index: int = 0
    #: Whether the files are all of the version, or those that it added.
    snapshot: bool = False

    def after(self) -> TableOffset:
        """Return the offset after the last file of the version."""
        return TableOffset(self.version + 1)


@final
class LakeTableStream(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Reads a table as it grows."""

    def __init__(self, options: TableOptions, columns: TableColumns) -> None:
        """`columns`: those that Spark expects."""
        self.options = options
        self.columns = columns
        self.rows = options.count("maxRowsPerTrigger")
        self.skip = options.flag("skipChangeCommits", False)
        self._until: int | None = None
        self._opened: Table | None = None
        self._added: OrderedDict[tuple[int, bool], list[TableFile]] = OrderedDict()

    def __getstate__(self) -> dict[str, Any]:
        # What is open stays here.
        return {**self.__dict__, "_opened": None, "_added": OrderedDict()}

    def initialOffset(self) -> dict[str, Any]:
        """Where a new query begins."""
        table = self._table()
        instant = self.options.time("startingTimestamp")
        if self.options.text("startingVersion").lower() == "latest":
            return self._json(TableOffset(table.version + 1))
        version = self.options.version("startingVersion")
        if version is not None:
            return self._json(TableOffset(version))
        if instant is not None:
            return self._json(TableOffset(table.first_version_since(instant)))
        return self._json(TableOffset(table.version, 0, snapshot=True))

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        """Where the next micro-batch ends, so that it is no larger than the limit."""
        begin = self._offset(start)
        end = self._end()
        most = limit.max_rows if isinstance(limit, ReadMaxRows) else None
        rows = idle = 0
        place = begin
        any_file = False
        while place.version < end.version:
            files = self._files(place)[place.index :]
            for file in files:
                # Without a count it may be any number: such a file is a micro-batch of its own.
                rows += most + 1 if most and file.rows is None else file.rows or 0
                if most and any_file and rows > most:
                    return self._json(place)
                any_file = True
                place = TableOffset(place.version, place.index + 1, place.snapshot)
            idle = 0 if files else idle + 1
            place = place.after()
        moved = any_file or idle >= MOST_IDLE_COMMITS or begin.snapshot
        return self._json(max(begin, place)) if moved else start

    def getDefaultReadLimit(self) -> ReadLimit:
        """The limit that the options set."""
        return ReadMaxRows(self.rows) if self.rows else ReadAllAvailable()

    def reportLatestOffset(self) -> dict[str, Any]:
        """How far the table is, whatever the limit: progress events show the lag by it."""
        self._table().refresh()
        return self._json(TableOffset(self._table().version + 1))

    def prepareForTriggerAvailableNow(self) -> None:
        """From now on there is nothing new."""
        self._table().refresh()
        self._until = self._table().version

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        """The tasks of a micro-batch."""
        table = self._table()
        table.refresh()
        self.columns.demand_of(table)
        files = self._between(self._offset(start), self._offset(end))
        return [InputPartition((table.place.uri, parts)) for parts in packed(files)]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        """The rows of one task."""
        if partition.value is None:
            return iter(())
        place, parts = partition.value
        return self.columns.rows(place, parts)

    def commit(self, end: dict[str, Any]) -> None:
        """Nothing: a table has other readers."""

    def stop(self) -> None:
        """Let go of the table."""
        self._opened = None
        self._added.clear()

    def _table(self) -> Table:
        if self._opened is None:
            self._opened = open_table(self.options)
        return self._opened

    def _end(self) -> TableOffset:
        table = self._table()
        table.refresh()
        newest = table.version if self._until is None else min(table.version, self._until)
        return TableOffset(newest + 1)

    def _between(self, start: TableOffset, end: TableOffset) -> Iterator[TableFile]:
        place = start
        while (place.version, place.index) < (end.version, end.index):
            stop = end.index if place.version == end.version else None
            yield from self._files(place)[place.index : stop]
            if place.version == end.version:
                return
            place = place.after()

    def _files(self, place: TableOffset) -> list[TableFile]:
        """Return the files of a version: all of them, or those that it added."""
        known = self._added.get((place.version, place.snapshot))
        if known is None:
            known = self._snapshot(place.version) if place.snapshot else self._commit(place.version)
            self._added[place.version, place.snapshot] = known
            if len(self._added) > REMEMBERED_COMMITS:
                self._added.popitem(last=False)
        return known

    def _snapshot(self, version: int) -> list[TableFile]:
        table = open_table(self.options)
        table.at(version)
        return list(files_of(table.actions()))

    def _commit(self, version: int) -> list[TableFile]:
        table = self._table()
        actions = table.commit_actions(version)
        if actions is None:
            raise DataLoss(
                f"the log of table '{table.name}' no longer has version {version}, so the rows "
                "that it added are not known; start again with a new checkpoint, which first reads "
                "all rows that are there"
            )
        adds = [one["add"] for one in actions if "add" in one]
        added = [one for one in adds if one.get("dataChange", True)]
        removes = [one["remove"] for one in actions if "remove" in one]
        is_changed = any(one.get("dataChange", True) for one in removes)
        if added and (is_changed or any(one.get("deletionVector") for one in added)):
            if not self.skip and not is_rewrite(actions):
                raise RowsChanged(
                    f"version {version} of table '{table.name}' changed rows that were there, and "
                    "which of its rows are new is not known; skipChangeCommits=true passes over "
                    "such versions, a new checkpoint reads all rows again"
                )
            return []
        return [
            # The log has paths as they stand in addresses.
            TableFile(unquote(one["path"]), one["size"], _rows(one), one["partitionValues"])
            for one in added
        ]

    def _offset(self, document: dict[str, Any]) -> TableOffset:
        table = self._table()
        if document["table"] != table.id:
            raise DataLoss(
                f"the checkpoint is of another table than {table.place.uri}: its id is "
                f"{document['table']}, that of the table {table.id}; begin with a new checkpoint"
            )
        return TableOffset(document["version"], document["index"], document["snapshot"])

    def _json(self, offset: TableOffset) -> dict[str, Any]:
        return {
            "table": self._table().id,
            "version": offset.version,
            "index": offset.index,
            "snapshot": offset.snapshot,
        }


def _rows(add: dict[str, Any]) -> int | None:
    """Return how many rows the log says that a file has."""
    stats = json.loads(add.get("stats") or "{}")
    count = stats.get("numRecords")
    return count if isinstance(count, int) else None
