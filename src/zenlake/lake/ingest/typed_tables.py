"""The typed tables that a pipeline feeds, and how they come and go.

Some are named by the configuration, others come along: tables of topics of ROS 2, tables of
families of keys, and those that a command makes, changes or removes.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping, Sequence
from typing import final

from zenlake.lake.decode.ros2_tables import LearntTypes, Ros2Tables, configured_types, demand_own
from zenlake.lake.decode.table_description import described_as
from zenlake.lake.decode.table_store import FoundTables
from zenlake.lake.ingest.deletions import purge
from zenlake.lake.ingest.spark_tasks import Tasks
from zenlake.lake.ingest.stopped_tables import StoppedTables
from zenlake.lake.ingest.table_offsets import TableOffsets
from zenlake.lake.ingest.task import IngestResult
from zenlake.lake.ingest.widening import reconciled
from zenlake.lake.model.config import LakeConfig
from zenlake.lake.model.sample_rows import DAY
from zenlake.lake.model.typed_table import TypedTable, typed_schema
from zenlake.lake.table.delta import Table
from zenlake.lake.table.location import LakeLocation

__all__ = ["TypedTables"]

log = logging.getLogger("zenlake.lake")


@final
class TypedTables:
    """The typed tables of one pipeline: what each should be, and those that are open."""

    def __init__(
        self,
        place: LakeLocation,
        config: LakeConfig,
        tasks: Tasks,
        offsets: TableOffsets,
        stopped: StoppedTables,
        beside: TypedTables | None = None,
    ) -> None:
        """`beside`: the tables of another journal; topics and types that one of them learns are
        known to both.
        """
        self._place = place
        self._config = config
        self._tasks = tasks
        self._offsets = offsets
        self._stopped = stopped
        self.types = LearntTypes(place, configured_types(config.ros2))
        """What is known of ROS 2 beside what is installed."""
        self._ros2 = Ros2Tables(place, config.tables)
        self.found = FoundTables(place, config)
        """Tables that no configuration names, for families of keys or made by command."""
        self._version = 0
        if beside is not None:
            self.types, self._ros2, self.found = beside.types, beside._ros2, beside.found
        self.specs: list[TypedTable] = []
        """What each table should be: those of the configuration, and those that came along."""
        self.open: dict[str, Table] = {}
        """The tables that could be opened, by name."""
        self.problems: list[str] = []
        """What the configuration and the tables disagree about, and what to do."""

    def begin(self, *, new_lake: bool) -> None:
        """Open all tables that are known; in a new lake all keys are looked at for families."""
        if self.found.automatic and new_lake and not self.found.store.has_begun:
            self.found.store.begin()
        self._version = self.found.take(id(self))
        self.specs = [
            *self._config.tables, *self._ros2.found.values(), *self.found.specs.values(),
        ]  # fmt: skip
        self.open_missing(0.0)

    def open_missing(self, now: float) -> None:
        """Open the tables that are not open, as far as it is time to try."""
        for spec in self.specs:
            if spec.name not in self.open and self._stopped.due(spec.name, now):
                with self._stopped.alone(spec.name, now):
                    self._open(spec)

    def _open(self, spec: TypedTable) -> None:
        schema = typed_schema(spec, spec.columns)
        table = Table.create(self._place, spec.name, schema, DAY, described=described_as(spec))
        described = described_as(spec, table.described)
        purge(table, self._tasks)
        demand_own(table, described)
        table.grow({n: schema.field(n).type for n in schema.names})
        table.remember(self._config.history)
        table.comment(spec.comments, described)
        self._begin_at(table, self.found.since(spec.name))
        self.open[spec.name] = table
        self.problems += reconciled(spec, table, self._tasks, self._offsets.committed(table))

    def _close(self, name: str) -> None:
        self.open.pop(name, None)
        self._offsets.forget(name)

    def _begin_at(self, table: Table, since: Mapping[str, int]) -> None:
        """Have a new table begin where the first of its keys came, not with the whole journal."""
        moved: dict[str, tuple[int | None, int]] = {
            app: (None, since[app])
            for app in self._offsets.apps
            if since.get(app) and table.committed(app) is None
        }
        if moved:
            ends = {app: end for app, (_, end) in moved.items()}
            note = {"kind": "append", "quarantine": [], "moved": ends}
            table.append([], moved, note, rewrites=table.rewrites)

    @property
    def has_changes(self) -> bool:
        """Return True if tables were found, or changed by command, since the last step."""
        return self._version != self.found.version

    def take_changes(self, now: float) -> None:
        """Take what was found, or changed by command, since the last step."""
        if not self.has_changes:
            return
        wanted = self.found.specs
        before = {spec.name: spec for spec in self.specs}
        fixed = {spec.name for spec in self._config.tables} | self._ros2.found.keys()
        for name in before.keys() - fixed - wanted.keys():
            self.specs = [one for one in self.specs if one.name != name]
            self._close(name)
            self._stopped.went_on(name)
        for name, spec in wanted.items():
            if name in fixed or before.get(name) == spec:
                continue
            self.specs = [*(one for one in self.specs if one.name != name), spec]
            self._close(name)
            with self._stopped.alone(name, now):
                self._open(spec)
        self._version = self.found.take(id(self))

    def meet(self, topics: set[str], tables: Mapping[str, Table], now: float) -> None:
        """Make tables for topics of ROS 2 that are new; they catch up from the journal.

        `tables`: all that there are.
        """
        if self._config.ros2.tables:
            topics = topics | self.types.bridged_topics()
        for spec in self._ros2.met(topics, tables):
            log.info("topic /%s gets the table '%s'", spec.format, spec.name)
        mine = {spec.name for spec in self.specs}
        for spec in [one for name, one in self._ros2.found.items() if name not in mine]:
            self.specs.append(spec)
            with self._stopped.alone(spec.name, now):
                self._open(spec)

    def observe(
        self, written: Sequence[IngestResult], before: Mapping[str, int], now: float
    ) -> None:
        """Look for families among the keys of rows that were read from `before` on."""
        keys: dict[str, bool] = {}
        bridged = self.types.bridged_topics() if self.found.automatic else set()
        for one in written:
            for key, read in one.keys.items():
                if f"/{key}" not in bridged:
                    keys[key] = keys.get(key, False) or read
        self.found.observe(keys, before, before, now)

    def find(self, tables: Collection[str], now: float, *, all: bool = False) -> None:
        """Make tables for families of keys that are due; `tables`: the names that there are."""
        if not all and not self.found.is_due(now):
            return
        taken = {*tables, *(spec.name for spec in self.specs), *self._place.folders()}
        for one in self.found.find(taken, now, all=all):
            log.info("keys %s get the table '%s'", one.format, one.name)
        self.take_changes(now)
