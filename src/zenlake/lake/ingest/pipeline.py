"""From the journal into the tables, batch after batch, each sample once.

A step of the loop: ask every table how far it is, plan the ranges that some table lacks, let
Spark's tasks read them and write files, commit the files table by table. The tables are the only
memory: a driver that is killed at any point left some of them ahead of others, and the next one
sees that and gives each what it lacks.

    samples     appended
    typed       appended; the commit names the files of the quarantine that belong to it, and
                the next step commits those that are not yet there: the two tables agree
    latest      folded from `samples` when there is enough to fold (`lake/ingest/derived_tables`)
    gaps        folded from the journal, on time
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final, final

from zenlake.errors import ConfigError
from zenlake.journal import Journal
from zenlake.lake.decode.ros2_tables import LearntTypes, Ros2Tables, configured_types, demand_own
from zenlake.lake.decode.table_description import described_as
from zenlake.lake.decode.table_store import FoundTables
from zenlake.lake.ingest.crashes import MOST_CRASHES, Crashes
from zenlake.lake.ingest.derived_tables import GapsTable, LatestTable
from zenlake.lake.ingest.failure_reason import WorkFailed, is_disk_full, reason_of
from zenlake.lake.ingest.narrowing import Narrowing, SearchResult
from zenlake.lake.ingest.network_tables import OBSERVED, observed_tables
from zenlake.lake.ingest.plan import JournalRange, RowSizes, cut, ranges
from zenlake.lake.ingest.quarantine import Quarantine
from zenlake.lake.ingest.rollups import ROLLUPS, RollupsTable
from zenlake.lake.ingest.schema_agreement import agreed, demand_written, only
from zenlake.lake.ingest.spark_tasks import Tasks
from zenlake.lake.ingest.step_note import NotedStep, StepNote
from zenlake.lake.ingest.step_size import StepSize
from zenlake.lake.ingest.stopped_tables import StoppedTables
from zenlake.lake.ingest.task import QUARANTINED, IngestResult, IngestTask, TypedFiles
from zenlake.lake.ingest.widening import columns_of, inexact_columns, reconciled, widen
from zenlake.lake.model.column_types import ARROW
from zenlake.lake.model.config import LakeConfig
from zenlake.lake.model.sample_rows import DAY, SAMPLES
from zenlake.lake.model.status import TableStatus
from zenlake.lake.model.typed_table import Columns, TypedTable, typed_schema
from zenlake.lake.table.data_files import DataFile
from zenlake.lake.table.delta import CommitConflict, Table
from zenlake.lake.table.iceberg import IcebergMirror, demand_pyiceberg, unpublish
from zenlake.lake.table.location import LakeLocation, absolute

__all__ = ["MADE_OTHERWISE", "Pipeline", "Step"]

log = logging.getLogger("zenlake.lake")

MADE_OTHERWISE: Final = (QUARANTINED, ROLLUPS, *OBSERVED)
"""Tables that want no offsets of a journal."""

FOREVER: Final = 1 << 62
"""An offset beyond all others."""

FAR: Final = 1_000_000
"""Offsets that a table may be ahead of its log when a stretch had nothing for it."""


@dataclass(slots=True)
class Step:
    """What one step did."""

    planned: int = 0
    """Rows that the step was to read."""
    rows: int = 0
    behind: int = 0
    """Durable rows that some table has not yet."""
    lost: int = 0
    """Rows that the journal had dropped before they were read."""
    quarantined: int = 0
    seconds: float = 0.0
    told: list[str] = field(default_factory=list)
    """What went wrong and was dealt with, in sentences."""
    commits: dict[str, int] = field(default_factory=dict)
    """The version of each table that this step made."""


@dataclass(frozen=True, slots=True)
class _Death:
    """A job that a worker died of, and the ranges that it read."""

    error: WorkFailed
    ranges: Sequence[JournalRange]


@final
class Pipeline:
    """One journal on its way into one lake."""

    def __init__(
        self,
        lake: str,
        journal: str,
        tasks: Tasks,
        config: LakeConfig | None = None,
        beside: Pipeline | None = None,
    ) -> None:
        """`lake` and `journal` are folders or addresses; the lake is made if it is not there.

        `beside`: the pipeline of another journal into this lake; topics and types of ROS 2 that
        one of them learns are known to both.
        """
        self.config = config or LakeConfig()
        self.place = LakeLocation(lake)
        # Absolute, for tasks that run elsewhere.
        self.journal = Journal.open(absolute(journal))
        self._tasks = tasks
        self.samples = Table.create(self.place, "samples", SAMPLES, DAY)
        self.latest = LatestTable(self.place, self.samples, self.journal, tasks, self.config)
        self.gaps = GapsTable(self.place, self.samples, self.journal, tasks, self.config)
        self.types = LearntTypes(self.place, configured_types(self.config.ros2))
        """What is known of ROS 2 beside what is installed."""
        self._ros2 = Ros2Tables(self.place, self.config.tables)
        self.found = FoundTables(self.place, self.config)
        """Typed tables that no configuration names, for families of keys or made by command."""
        if beside is not None:
            self.types, self._ros2, self.found = beside.types, beside._ros2, beside.found
        if self.found.automatic and not self.samples.version and not self.found.store.has_begun:
            self.found.store.begin()
        self._found_version = self.found.take(id(self))
        self.specs: list[TypedTable] = [
            *self.config.tables, *self._ros2.found.values(), *self.found.specs.values(),
        ]  # fmt: skip
        """The typed tables: those of the configuration, and those that came along."""
        self.typed: dict[str, Table] = {}
        self.problems: list[str] = []
        """What the configuration and the tables disagree about, and what to do."""
        self.stopped = StoppedTables()
        """Tables that cannot go on; the others do."""
        self.quarantine: Quarantine | None = None
        for spec in self.specs:
            with self._alone(spec.name, 0.0):
                self._open(spec)
        with self._alone(QUARANTINED, 0.0):
            self._quarantining()
        self.rollups: RollupsTable | None = None
        """Counts minutes and hours, if it is told to."""
        if self.config.rollups is not None:
            self.rollups = RollupsTable(self.place, tasks, self.config.rollups)
        self.observed = {} if self.config.network is None else observed_tables(self.place)
        """What `lake/service/network` fills."""
        self.iceberg: IcebergMirror | None = None
        """Publishes what is committed as tables of Iceberg too, if it is told to."""
        if self.config.iceberg:
            demand_pyiceberg()
            self.iceberg = IcebergMirror()
        for table in self.tables.values():
            with self._alone(table.name, 0.0):
                table.remember(self.config.history)
                if table.name not in self.typed:
                    table.comment({})
                if self.iceberg is None:
                    unpublish(table)
        # Columns of each table that were found to have numbers that no double holds.
        self._inexact: dict[str, frozenset[str]] = {}
        # Stretches that had nothing for a table; the log need not hear of each.
        self._ahead: dict[tuple[str, int], int] = {}
        self._sizes: dict[int, RowSizes] = {}
        self.step_size = StepSize(self.config.batch_rows, self.config.batch_bytes)
        """Rows and bytes that the next step may take."""
        self._step_note = StepNote(self.place, self.journal.id)
        self._crashes = Crashes(self.place)
        self._narrowing = Narrowing()
        died = self._step_note.found
        if died is not None:
            self.step_size.died(died.rows)
            self._narrowing = Narrowing(died.suspects)

    @contextmanager
    def _alone(self, name: str, now: float) -> Iterator[None]:
        """What goes wrong in here stops one table and no other."""
        try:
            yield
        except (CommitConflict, ConfigError):
            raise
        except Exception as error:
            log.debug("table '%s' stops", name, exc_info=error)
            self.stopped.stop(name, reason_of(error), now)

    def _open(self, spec: TypedTable) -> None:
        schema = typed_schema(spec, spec.columns)
        table = Table.create(self.place, spec.name, schema, DAY, described=described_as(spec))
        described = described_as(spec, table.described)
        demand_own(table, described)
        table.grow({n: schema.field(n).type for n in schema.names})
        table.remember(self.config.history)
        table.comment(spec.comments, described)
        self._begin(table, self.found.since(spec.name))
        self.typed[spec.name] = table
        self.problems += reconciled(spec, table, self._tasks, self._apps(table))

    def _begin(self, table: Table, since: Mapping[str, int]) -> None:
        """Have a new table begin where the first of its keys came, not with the whole journal."""
        apps = [self.app(p) for p in range(len(self.ends()))]
        moved: dict[str, tuple[int | None, int]] = {
            app: (None, since[app])
            for app in apps
            if since.get(app) and table.committed(app) is None
        }
        if moved:
            ends = {app: end for app, (_, end) in moved.items()}
            note = {"kind": "append", "quarantine": [], "moved": ends}
            table.append([], moved, note, rewrites=table.rewrites)

    def _take_changes(self, now: float) -> None:
        """Take what was found, or changed by command, since the last step."""
        if self._found_version == self.found.version:
            return
        wanted = self.found.specs
        before = {spec.name: spec for spec in self.specs}
        fixed = {spec.name for spec in self.config.tables} | self._ros2.found.keys()
        for name in before.keys() - fixed - wanted.keys():
            self.specs = [one for one in self.specs if one.name != name]
            self.typed.pop(name, None)
            self.stopped.went_on(name)
        for name, spec in wanted.items():
            if name in fixed or before.get(name) == spec:
                continue
            self.specs = [*(one for one in self.specs if one.name != name), spec]
            self.typed.pop(name, None)
            with self._alone(name, now):
                self._open(spec)
        self._found_version = self.found.take(id(self))

    def _quarantining(self) -> Quarantine:
        """The quarantine; it may have to be tried again until it can be opened."""
        if self.quarantine is None:
            self.quarantine = Quarantine(self.place, self.typed, self._tasks)
            self.stopped.went_on(QUARANTINED)
        return self.quarantine

    @property
    def tables(self) -> dict[str, Table]:
        """Every table that could be opened, by its name."""
        fixed = {table.name: table for table in (self.samples, self.latest.table, self.gaps.table)}
        if self.quarantine is not None:
            fixed[QUARANTINED] = self.quarantine.table
        if self.rollups is not None:
            fixed[ROLLUPS] = self.rollups.table
        return fixed | self.observed | self.typed

    def app(self, partition: int) -> str:
        """The name under which the log of each table knows a partition of the journal."""
        return f"{self.journal.id}/{partition}"

    @property
    def _lost_app(self) -> str:
        """The transaction of `samples` that counts rows which the journal dropped unread."""
        return f"{self.journal.id}/lost"

    def _apps(self, table: Table) -> dict[str, int]:
        """Who writes to a table, as far as we know, and where it is."""
        offsets = {}
        for p in range(len(self.journal.watermark().offsets)):
            at = table.committed(self.app(p))
            if at is not None:
                offsets[self.app(p)] = at
        return offsets

    # --- one step -------------------------------------------------------------------------------

    def step(self, now: float = 0.0) -> Step:
        """Read what is new, up to a bound, and commit it to `samples` and the typed tables.

        A typed table that cannot go on stops alone, and is tried again later. The bound is halved
        when a step fails, and doubled when one succeeds.
        """
        done = Step()
        try:
            self._step(done, now)
        except CommitConflict:  # another driver commits, and a smaller step would meet it as well
            self._noted()
            raise
        except Exception as error:
            if not is_disk_full(error):
                self.step_size.failed(done.planned)
                self._step_note.failed(NotedStep(done.planned, self._narrowing.plain()))
            raise
        self._noted()
        done.behind = self.behind()
        return done

    def _noted(self) -> None:
        """Take the note of the step away, unless it says where a search goes on."""
        if self._narrowing.trial(self._lacking) is None:
            self._step_note.succeeded()
        else:
            self._step_note.failed(NotedStep(self.step_size.rows, self._narrowing.plain()))

    def _step(self, done: Step, now: float) -> None:
        self._take_changes(now)
        tried = self._retried(now)
        for spec in self.specs:
            if spec.name not in self.typed and self.stopped.due(spec.name, now):
                with self._alone(spec.name, now):
                    self._open(spec)
        if self.quarantine is None and self.stopped.due(QUARANTINED, now):
            with self._alone(QUARANTINED, now):
                self._quarantining()
        plan = self._plan(done, now)
        if plan:
            died = self._run(plan, done, now)
            if died is None:
                self.step_size.succeeded()
            else:
                self.step_size.failed(done.planned)
                self._narrowing.accuse(died.ranges)
                done.told.append(f"{died.error}; tables and rows are tried apart to find which")
        self._try_suspect(done, now)
        for name in tried:
            if name in self.typed and self.stopped.due(name, now):  # and did not stop again
                self.stopped.went_on(name)
        self._find(now)

    def settle(self, now: float) -> bool:
        """Make tables for all keys that wait for their siblings; True if there are more to fill."""
        self._find(now, all=True)
        return self.behind() > 0

    def _positions(self) -> dict[str, int]:
        """How far `samples` is in each partition of the journal."""
        return {self.app(p): self._at(self.samples, p) for p in range(len(self.ends()))}

    def _observe(
        self, written: Sequence[IngestResult], before: Mapping[str, int], now: float
    ) -> None:
        keys: dict[str, bool] = {}
        bridged = self.types.bridged_topics() if self.found.automatic else set()
        for one in written:
            for key, read in one.keys.items():
                if f"/{key}" not in bridged:
                    keys[key] = keys.get(key, False) or read
        self.found.observe(keys, before, before, now)

    def _find(self, now: float, *, all: bool = False) -> None:
        """Make tables for families of keys that are due."""
        if not all and not self.found.is_due(now):
            return
        taken = {*self.tables, *(spec.name for spec in self.specs), *self.place.folders()}
        for one in self.found.find(taken, now, all=all):
            log.info("keys %s get the table '%s'", one.format, one.name)
        self._take_changes(now)

    def _run(
        self, plan: Sequence[JournalRange], done: Step, now: float, pieces: int = 1
    ) -> _Death | None:
        """Read the ranges of a plan and commit them; return of what a worker died, if one did.

        `pieces`: tasks to cut it into, at least.
        """
        done.planned += sum(span.rows for span in plan)
        self._step_note.begin(NotedStep(done.planned, self._narrowing.plain()))
        items = self._items(plan, pieces)
        before = self._positions()
        try:
            written = self._tasks.run(items, "journal to tables")
        except WorkFailed as error:
            if not error.died:
                raise
            task = error.failure.task
            known = task is not None and task < len(items)
            return _Death(error, items[task or 0].stretches if known else tuple(plan))
        done.rows += sum(span.rows for span in plan)
        # Before `samples` has them: keys that wait for a table are known after a crash, too.
        self._observe(written, before, now)
        self._commit_samples(plan, written, done)
        topics = {topic for one in written for topic in one.topics}
        if self.config.ros2.tables:
            topics |= self.types.bridged_topics()
        self._meet(topics, now)
        for spec in self.specs:
            if any(spec.name in span.starts for span in plan):
                with self._alone(spec.name, now):
                    self._commit_typed(spec, plan, items, written, done)
                    self.stopped.went_on(spec.name)
        return None

    # --- a worker that dies each time -----------------------------------------------------------

    @property
    def narrows(self) -> bool:
        """Whether a row is being searched that a worker died of."""
        return bool(self._narrowing.tables)

    def _lacking(self, name: str, partition: int) -> int | None:
        """Return the first offset that a table lacks; None if there is no table that goes on."""
        table = self.samples if name == self.samples.name else self.typed.get(name)
        if table is None or table.name in self.stopped:
            return None
        return max(self._at(table, partition), self.journal.earliest()[partition])

    def _try_suspect(self, done: Step, now: float) -> None:
        """Run one range by itself of which a worker died together with others."""
        for name in self._narrowing.tables & self.typed.keys():
            with self._alone(name, now):
                self.typed[name].refresh()
        trial = self._narrowing.trial(self._lacking)
        if trial is None:
            return
        span = trial.range
        if self.samples.name in span.starts:
            self._start(self.samples, span.partition, span.first, done)
        blocks = self.journal.sizes(span.partition, span.first, span.end)
        self._sizes = {span.partition: RowSizes(sorted(set(blocks)))}
        died = self._run([span], done, now, trial.pieces)
        if died is None:
            return
        first, end = died.ranges[0].first, died.ranges[-1].end
        verdict = self._narrowing.died(trial, first, end, died.error.failure.times)
        if verdict is SearchResult.SEARCHING:
            return
        (name,), app = span.starts, self.app(span.partition)
        if name == self.samples.name:  # nothing could be read of the row
            raise died.error
        row = f"offset {first} of partition {span.partition}"
        if verdict is SearchResult.INNOCENT:
            self._crashes.forget(name, app, first)
            self.stopped.stop(name, reason_of(died.error), now)
        elif self._crashes.count(name) >= MOST_CRASHES:
            words = f"{MOST_CRASHES:,} samples crashed its decoder, and so does {row}; mend it"
            self.stopped.stop(name, words, now)
        else:
            self._crashes.add(name, app, first)
            self._narrowing.blame()
            done.told.append(
                f"{row} goes to quarantine undecoded, table '{name}': {died.error.failure.reason} "
                "of it each time"
            )

    def retries(self, now: float) -> bool:
        """Whether there is work though nothing new has come: a table that stopped is to be tried
        again, or there are tables to make.
        """
        changed = self._found_version != self.found.version
        return changed or self.found.is_due(now) or bool(self._retried(now))

    def _retried(self, now: float) -> list[str]:
        names = [self.samples.name, QUARANTINED, *(spec.name for spec in self.specs)]
        return [name for name in names if name in self.stopped and self.stopped.due(name, now)]

    def _meet(self, topics: set[str], now: float) -> None:
        """Make tables for topics of ROS 2 that are new; they catch up from the journal."""
        for spec in self._ros2.met(topics, self.tables):
            log.info("topic /%s gets the table '%s'", spec.format, spec.name)
        mine = {spec.name for spec in self.specs}
        for spec in [one for name, one in self._ros2.found.items() if name not in mine]:
            self.specs.append(spec)
            with self._alone(spec.name, now):
                self._open(spec)

    def fold(self, now: float, *, all: bool = False) -> dict[str, int]:
        """Bring `gaps`, `latest` and `rollups` up to date, where it is due or with `all`."""
        done: dict[str, int] = {}
        for table in self.observed.values():
            with self._alone(table.name, now):
                table.refresh()
                self.stopped.went_on(table.name)
        folds: list[GapsTable | LatestTable | RollupsTable] = [self.gaps, self.latest]
        if self.rollups is not None:
            specs = {
                one.name: (one, self.typed[one.name])
                for one in self.specs
                if one.name in self.typed
            }
            self.rollups.of(specs, tuple(self.app(p) for p in range(len(self.ends()))))
            folds.append(self.rollups)
        for folded in folds:
            name = folded.table.name
            if not all and not self.stopped.due(name, now):
                continue
            with self._alone(name, now):
                if all or folded.due(now):
                    version = folded.fold(now)
                    self.stopped.went_on(name)
                    if version is not None:
                        done[name] = version
        return done

    def finish(self, now: float = 0.0) -> None:
        """Bring everything up to date, and let the logs hear of stretches with nothing in them."""
        self.fold(now, all=True)
        for (name, partition), end in list(self._ahead.items()):
            self._tell_ahead(name, partition, end)

    # --- how far it is --------------------------------------------------------------------------

    def ends(self) -> tuple[int, ...]:
        """Up to where the journal is durable, for each partition."""
        return tuple(self.journal.watermark().offsets)

    def lost(self) -> int:
        """Return how many rows the journal has ever dropped before `samples` had them."""
        return self.samples.committed(self._lost_app) or 0

    def behind(self) -> int:
        """Durable rows that `samples` or a typed table that goes on has not yet."""
        return sum(max(0, end - has) for end, has in zip(self.ends(), self.reached(), strict=True))

    def reached(self) -> tuple[int, ...]:
        """Up to where the tables that go on have everything, for each partition."""
        going = [table for table in self._fed if table.name not in self.stopped]
        return tuple(
            min((self._at(table, p) for table in going), default=0) for p in range(len(self.ends()))
        )

    def committed(self) -> tuple[int, ...]:
        """Up to where the journal is not needed any more, for each partition.

        `latest` does not count: it is made from `samples`. Tables that stopped do, and so do keys
        that wait for a table: what they lack is kept for them.
        """
        fed = (*self._fed, self.gaps.table)
        unopened = any(spec.name not in self.typed for spec in self.specs)
        waiting = self.found.wanted_from()
        return tuple(
            0
            if unopened
            else min(*(self._at(table, p) for table in fed), waiting.get(self.app(p), FOREVER))
            for p in range(len(self.ends()))
        )

    def shown(self) -> tuple[TableStatus, ...]:
        """Facts about each table, as far as they were looked at."""
        ends = self.ends()
        statuses = []
        for name, table in self.tables.items():
            totals = table.totals()
            # `latest` is answered from the tail of `samples`, so it is as far as that.
            fed = None if name in MADE_OTHERWISE else self.samples if name == "latest" else table
            at = () if fed is None else tuple(self._at(fed, p) for p in range(len(ends)))
            statuses.append(
                TableStatus(
                    name=name,
                    version=table.version,
                    rows=totals.rows,
                    files=totals.files,
                    bytes=totals.bytes,
                    behind=sum(max(0, end - has) for end, has in zip(ends, at, strict=False)),
                    at={self.journal.id: at} if at else {},
                    stopped=self.stopped.reason(name),
                )
            )
        for name in self.stopped:
            if name not in self.tables:
                statuses.append(TableStatus(name, stopped=self.stopped.reason(name)))
        return tuple(statuses)

    @property
    def _fed(self) -> tuple[Table, ...]:
        """The tables that every step feeds."""
        return (self.samples, *self.typed.values())

    def _at(self, table: Table, partition: int) -> int:
        committed = table.committed(self.app(partition)) or 0
        return max(committed, self._ahead.get((table.name, partition), 0))

    # --- plans ----------------------------------------------------------------------------------

    def _plan(self, done: Step, now: float) -> list[JournalRange]:
        durable = self.ends()
        earliest = self.journal.earliest()
        share = max(1, self.step_size.rows // max(1, len(durable)))
        share_bytes = max(1, self.step_size.bytes // max(1, len(durable)))
        going: list[Table] = []
        for table in self._fed:
            if self.stopped.due(table.name, now):
                with self._alone(table.name, now):
                    table.refresh()
                    going.append(table)
        if self.samples in going:
            self.stopped.went_on(self.samples.name)
        going = [table for table in going if table.name not in self._narrowing.tables]
        plan: list[JournalRange] = []
        self._sizes = {}
        for p, end in enumerate(durable):
            starts = {table.name: self._start(table, p, earliest[p], done) for table in going}
            lacking = {start for start in starts.values() if start < end}
            blocks = {
                one for at in lacking for one in self.journal.sizes(p, at, min(end, at + share))
            }
            self._sizes[p] = RowSizes(sorted(blocks))
            plan += ranges(p, starts, end, share, self._sizes[p], share_bytes)
        return plan

    def _start(self, table: Table, partition: int, earliest: int, done: Step) -> int:
        start = self._at(table, partition)
        if start < earliest:
            if start and table is self.samples:
                done.lost += earliest - start
            start = earliest
        return start

    def _items(self, plan: Sequence[JournalRange], pieces: int = 1) -> list[IngestTask]:
        """The tasks of a plan; `pieces` are wanted however few rows there are."""
        held = cut(
            plan,
            parallel=max(self._tasks.parallel, pieces),
            least=self.config.task_rows if pieces == 1 else 1,
            most=self.config.most_task_rows,
            sizes=self._sizes,
            most_bytes=self.config.task_bytes,
        )
        names = {name for span in plan for name in span.starts}
        known = tuple(
            (self.types.with_types(spec), self._columns(spec))
            for spec in self.specs
            if spec.name in names
        )
        automatic = self.found.automatic
        everything = (*self.specs, *self.found.passed_over) if automatic else None
        skips = {name: skip for name in names if (skip := self._crashes.of(name))}
        return [
            IngestTask(
                lake=self.place.uri,
                journal=self.journal.path,
                journal_id=self.journal.id,
                stretches=stretches,
                typed=known,
                topics=self.config.ros2.tables,
                known=everything,
                skips=skips,
            )
            for stretches in held
        ]

    def _columns(self, spec: TypedTable) -> Columns:
        """Return the payload columns that a table has now, and which of them may not widen."""
        columns = columns_of(self.typed[spec.name], spec)
        return columns.fixing(self._inexact.get(spec.name, frozenset()))

    def _moved(
        self, table: Table, plan: Sequence[JournalRange]
    ) -> dict[str, tuple[int | None, int]]:
        """How far a commit of this plan brings a table, and from where."""
        return {
            self.app(span.partition): (table.committed(self.app(span.partition)), span.end)
            for span in plan
            if table.name in span.starts
        }

    # --- commits --------------------------------------------------------------------------------

    def _commit_samples(
        self, plan: Sequence[JournalRange], written: list[IngestResult], done: Step
    ) -> None:
        moved = self._moved(self.samples, plan)
        if moved:
            if done.lost:
                before = self.samples.committed(self._lost_app)
                moved[self._lost_app] = (before, (before or 0) + done.lost)
            files = [file for one in written for file in one.samples]
            self.samples.append(files, moved, {"kind": "append"})
            done.commits["samples"] = self.samples.version

    def _commit_typed(
        self,
        spec: TypedTable,
        plan: Sequence[JournalRange],
        items: Sequence[IngestTask],
        written: list[IngestResult],
        done: Step,
    ) -> None:
        table = self.typed[spec.name]
        moved = self._moved(table, plan)
        if not moved:
            return
        known = dict((one.name, columns) for one, columns in items[0].typed)[spec.name]
        parts = [one.typed.get(spec.name, TypedFiles()) for one in written]
        demand_written(parts)

        def again(places: list[int], columns: Columns) -> list[TypedFiles]:
            redo = [only(items[n], spec, columns) for n in places]
            done = self._tasks.run(redo, "agree on columns")
            redone = [one.typed.get(spec.name, TypedFiles()) for one in done]
            demand_written(redone)
            return redone

        columns, parts = agreed(known, parts, again)
        wide = known.widened(columns)
        kept = inexact_columns(table, wide, self._tasks) if wide else frozenset()
        if kept:
            # Their rows with fractions go to quarantine: the tasks decode again.
            self._inexact[spec.name] = self._inexact.get(spec.name, frozenset()) | kept
            known = known.fixing(kept)
            parts = again(list(range(len(items))), known)
            columns, parts = agreed(known, parts, again)
            wide = known.widened(columns)
        if wide:
            log.info("%s: %s", spec.name, ", ".join(f"{n} becomes {k}" for n, k in wide.items()))
            widen(table, wide, self._tasks, self._apps(table))
        table.grow({name: ARROW[kind] for name, kind in columns.items()})
        files = [file for part in parts for file in part.files]
        refused = [file for part in parts for file in part.refused]
        done.quarantined += sum(file.rows for file in refused)
        if not files and not refused:
            for p, end in [(s.partition, s.end) for s in plan if spec.name in s.starts]:
                self._ahead[spec.name, p] = end
                if end - (table.committed(self.app(p)) or 0) > FAR:
                    self._tell_ahead(spec.name, p, end)
            return
        self._append_typed(table, files, refused, moved)
        done.commits[spec.name] = table.version

    def _append_typed(
        self,
        table: Table,
        files: Sequence[DataFile],
        refused: Sequence[DataFile],
        moved: Mapping[str, tuple[int | None, int]],
    ) -> None:
        note: dict[str, Any] = {
            "kind": "append",
            "quarantine": [file.plain() for file in refused],
            "moved": {app: end for app, (_, end) in moved.items()},
        }
        table.refresh()
        quarantine = self._quarantining()
        quarantine.settle(table)
        # What another driver promises now must be settled first.
        table.append(files, moved, note, rewrites=table.rewrites)
        quarantine.settle(table)

    def _tell_ahead(self, name: str, partition: int, end: int) -> None:
        table, app = self.typed[name], self.app(partition)
        start = table.committed(app)
        if start is None or start < end:
            self._append_typed(table, [], [], {app: (start, end)})
