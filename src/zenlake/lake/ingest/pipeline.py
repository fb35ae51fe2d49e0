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

from collections.abc import Sequence
from typing import Final, final

from zenlake.journal import Journal
from zenlake.lake.decode.ros2_tables import LearntTypes
from zenlake.lake.decode.table_store import FoundTables
from zenlake.lake.ingest.crash_search import CrashSearch, StopTable, WorkerDeath
from zenlake.lake.ingest.crashes import MOST_SURVEYED, SURVEY
from zenlake.lake.ingest.deletions import purge
from zenlake.lake.ingest.derived_tables import GapsTable, LatestTable
from zenlake.lake.ingest.failure_reason import WorkFailed, is_disk_full
from zenlake.lake.ingest.network_tables import OBSERVED, observed_tables
from zenlake.lake.ingest.plan import JournalRange, RowSizes, cut, ranges
from zenlake.lake.ingest.rollups import ROLLUPS, RollupsTable
from zenlake.lake.ingest.spark_tasks import Tasks
from zenlake.lake.ingest.step import Step
from zenlake.lake.ingest.step_note import NotedStep, StepNote
from zenlake.lake.ingest.step_size import StepSize
from zenlake.lake.ingest.stopped_tables import StoppedTables
from zenlake.lake.ingest.table_offsets import TableOffsets
from zenlake.lake.ingest.task import QUARANTINED, IngestResult, IngestTask
from zenlake.lake.ingest.typed_commits import TypedCommits
from zenlake.lake.ingest.typed_tables import TypedTables
from zenlake.lake.model.config import LakeConfig
from zenlake.lake.model.sample_rows import DAY, SAMPLES
from zenlake.lake.model.status import TableStatus
from zenlake.lake.model.typed_table import TypedTable
from zenlake.lake.table.delta import CommitConflict, Table
from zenlake.lake.table.iceberg import IcebergMirror, demand_pyiceberg, unpublish
from zenlake.lake.table.location import LakeLocation, absolute

__all__ = ["MADE_OTHERWISE", "Pipeline"]

MADE_OTHERWISE: Final = (QUARANTINED, ROLLUPS, *OBSERVED)
"""Tables that want no offsets of a journal."""

SURVEY_STOPPED: Final = (
    f"{MOST_SURVEYED} samples of keys without a table ended the process that looked at them, so no "
    "more tables are found; mend the decoder of their encoding, delete .crashes.json in the lake's "
    "folder, and start again"
)
FOREVER: Final = 1 << 62
"""An offset beyond all others."""


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
        self.stopped = StoppedTables()
        """Tables that cannot go on; the others do."""
        self._offsets = TableOffsets(self.journal)
        self._typed: TypedTables = TypedTables(
            self.place,
            self.config,
            tasks,
            self._offsets,
            self.stopped,
            None if beside is None else beside._typed,
        )
        self.types: LearntTypes = self._typed.types
        """What is known of ROS 2 beside what is installed."""
        self.found: FoundTables = self._typed.found
        """Typed tables that no configuration names, for families of keys or made by command."""
        self.problems: list[str] = self._typed.problems
        """What the configuration and the tables disagree about, and what to do."""
        self._typed.begin(new_lake=not self.samples.version)
        self._commits = TypedCommits(
            self.place, tasks, self._offsets, self.stopped, self._typed.open, self.samples
        )
        self._commits.open_quarantine(0.0)
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
            with self.stopped.alone(table.name, 0.0):
                table.remember(self.config.history)
                if table.name not in self._typed.open:
                    table.comment({})
                if self.iceberg is None:
                    unpublish(table)
        self._sizes: dict[int, RowSizes] = {}
        self.step_size = StepSize(self.config.batch_rows, self.config.batch_bytes)
        """Rows and bytes that the next step may take."""
        self._step_note = StepNote(self.place, self.journal.id)
        died = self._step_note.found
        self._search = CrashSearch(self.place, () if died is None else died.suspects)
        self._tell_survey()
        if died is not None:
            self.step_size.died(died.rows)

    @property
    def specs(self) -> list[TypedTable]:
        """The typed tables: those of the configuration, and those that came along."""
        return self._typed.specs

    @property
    def tables(self) -> dict[str, Table]:
        """Every table that could be opened, by its name."""
        fixed = {table.name: table for table in (self.samples, self.latest.table, self.gaps.table)}
        if self._commits.quarantine is not None:
            fixed[QUARANTINED] = self._commits.quarantine.table
        if self.rollups is not None:
            fixed[ROLLUPS] = self.rollups.table
        return fixed | self.observed | self._typed.open

    def app(self, partition: int) -> str:
        """The name under which the log of each table knows a partition of the journal."""
        return self._offsets.app(partition)

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
                self._step_note.failed(NotedStep(done.planned, self._search.suspects()))
            raise
        self._noted()
        done.behind = self.behind()
        return done

    def _noted(self) -> None:
        """Take the note of the step away, unless it says where a search goes on."""
        if self._search.trial(self._lacking) is None:
            self._step_note.succeeded()
        else:
            self._step_note.failed(NotedStep(self.step_size.rows, self._search.suspects()))

    def _step(self, done: Step, now: float) -> None:
        for name, table in self.tables.items():
            if table.has_deletions:
                with self.stopped.alone(name, now):
                    purge(table, self._tasks)
                    self.stopped.went_on(name)
        self._typed.take_changes(now)
        tried = self._retried(now)
        self._typed.open_missing(now)
        self._commits.open_quarantine(now)
        plan = self._plan(done, now)
        if plan:
            died = self._run(plan, done, now)
            if died is None:
                self.step_size.succeeded()
            else:
                self.step_size.failed(done.planned)
                done.told.append(self._search.accuse(died))
        self._try_suspect(done, now)
        for name in tried:
            if name in self._typed.open and self.stopped.due(name, now):  # and did not stop again
                self.stopped.went_on(name)
        self._typed.find(self.tables, now)

    def settle(self, now: float) -> bool:
        """Make tables for all keys that wait for their siblings; True if there are more to fill."""
        self._typed.find(self.tables, now, all=True)
        return self.behind() > 0

    def _run(
        self, plan: Sequence[JournalRange], done: Step, now: float, pieces: int = 1
    ) -> WorkerDeath | None:
        """Read the ranges of a plan and commit them; return of what a worker died, if one did.

        `pieces`: tasks to cut it into, at least.
        """
        done.planned += sum(span.rows for span in plan)
        self._step_note.begin(NotedStep(done.planned, self._search.suspects()))
        items = self._items(plan, pieces)
        before = self._offsets.all_at(self.samples)
        try:
            written = self._tasks.run(items, "journal to tables")
        except WorkFailed as error:
            if not error.died:
                raise
            task = error.failure.task
            known = task is not None and task < len(items)
            return WorkerDeath(error, items[task or 0].stretches if known else tuple(plan))
        done.rows += sum(span.rows for span in plan)
        # Before `samples` has them: keys that wait for a table are known after a crash, too.
        self._typed.observe(written, before, now)
        self._commit_samples(plan, written, done)
        topics = {topic for one in written for topic in one.topics}
        self._typed.meet(topics, self.tables, now)
        for spec in self.specs:
            if any(spec.name in span.starts for span in plan):
                with self.stopped.alone(spec.name, now):
                    self._commits.commit(spec, plan, items, written, done)
                    self.stopped.went_on(spec.name)
        return None

    # --- a worker that dies each time -----------------------------------------------------------

    @property
    def narrows(self) -> bool:
        """Whether a row is being searched that a worker died of."""
        return bool(self._search.tables)

    def _lacking(self, name: str, partition: int) -> int | None:
        """Return the first offset that a table lacks; None if there is no table that goes on."""
        table = self.samples if name == self.samples.name else self._typed.open.get(name)
        if table is None or table.name in self.stopped:
            return None
        return max(self._offsets.at(table, partition), self.journal.earliest()[partition])

    def _try_suspect(self, done: Step, now: float) -> None:
        """Run one range by itself of which a worker died together with others."""
        for name in self._search.tables & self._typed.open.keys():
            with self.stopped.alone(name, now):
                self._typed.open[name].refresh()
        trial = self._search.trial(self._lacking)
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
        verdict = self._search.died(
            trial, died, self.app(span.partition), surveys=self.found.automatic
        )
        self._tell_survey()
        if isinstance(verdict, StopTable):
            self.stopped.stop(verdict.name, verdict.reason, now)
        elif verdict is not None:
            done.told.append(verdict)

    def _tell_survey(self) -> None:
        """Name the problem if workers died of too many payloads of keys without a table."""
        if not self._search.may_survey and SURVEY_STOPPED not in self.problems:
            self.problems.append(SURVEY_STOPPED)

    def retries(self, now: float) -> bool:
        """Whether there is work though nothing new has come: a table that stopped is to be tried
        again, or there are tables to make.
        """
        return self._typed.has_changes or self.found.is_due(now) or bool(self._retried(now))

    def _retried(self, now: float) -> list[str]:
        names = [self.samples.name, QUARANTINED, *(spec.name for spec in self.specs)]
        return [name for name in names if name in self.stopped and self.stopped.due(name, now)]

    def fold(self, now: float, *, all: bool = False) -> dict[str, int]:
        """Bring `gaps`, `latest` and `rollups` up to date, where it is due or with `all`."""
        done: dict[str, int] = {}
        for table in self.observed.values():
            with self.stopped.alone(table.name, now):
                table.refresh()
                self.stopped.went_on(table.name)
        folds: list[GapsTable | LatestTable | RollupsTable] = [self.gaps, self.latest]
        if self.rollups is not None:
            specs = {
                one.name: (one, self._typed.open[one.name])
                for one in self.specs
                if one.name in self._typed.open
            }
            self.rollups.of(specs, self._offsets.apps)
            folds.append(self.rollups)
        for folded in folds:
            name = folded.table.name
            if not all and not self.stopped.due(name, now):
                continue
            with self.stopped.alone(name, now):
                if all or folded.due(now):
                    version = folded.fold(now)
                    self.stopped.went_on(name)
                    if version is not None:
                        done[name] = version
        return done

    def finish(self, now: float = 0.0) -> None:
        """Bring everything up to date, and let the logs hear of stretches with nothing in them."""
        self.fold(now, all=True)
        for name, partition, end in self._offsets.passed_over():
            self._commits.note_passed(self._typed.open[name], partition, end)

    # --- how far it is --------------------------------------------------------------------------

    def ends(self) -> tuple[int, ...]:
        """Up to where the journal is durable, for each partition."""
        return self._offsets.ends()

    def lost(self) -> int:
        """Return how many rows the journal has ever dropped before `samples` had them."""
        return self.samples.committed(self._offsets.lost_app) or 0

    def behind(self) -> int:
        """Durable rows that `samples` or a typed table that goes on has not yet."""
        return sum(max(0, end - has) for end, has in zip(self.ends(), self.reached(), strict=True))

    def reached(self) -> tuple[int, ...]:
        """Up to where the tables that go on have everything, for each partition."""
        going = [table for table in self._fed if table.name not in self.stopped]
        return tuple(
            min((self._offsets.at(table, p) for table in going), default=0)
            for p in range(len(self.ends()))
        )

    def committed(self) -> tuple[int, ...]:
        """Up to where the journal is not needed any more, for each partition.

        `latest` does not count: it is made from `samples`. Tables that stopped do, and so do keys
        that wait for a table: what they lack is kept for them.
        """
        fed = (*self._fed, self.gaps.table)
        unopened = any(spec.name not in self._typed.open for spec in self.specs)
        waiting = self.found.wanted_from()
        return tuple(
            0
            if unopened
            else min(
                *(self._offsets.at(table, p) for table in fed), waiting.get(self.app(p), FOREVER)
            )
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
            at = () if fed is None else tuple(self._offsets.at(fed, p) for p in range(len(ends)))
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
        return (self.samples, *self._typed.open.values())

    # --- plans ----------------------------------------------------------------------------------

    def _plan(self, done: Step, now: float) -> list[JournalRange]:
        durable = self.ends()
        earliest = self.journal.earliest()
        share = max(1, self.step_size.rows // max(1, len(durable)))
        share_bytes = max(1, self.step_size.bytes // max(1, len(durable)))
        going: list[Table] = []
        for table in self._fed:
            if self.stopped.due(table.name, now):
                with self.stopped.alone(table.name, now):
                    table.refresh()
                    going.append(table)
        if self.samples in going:
            self.stopped.went_on(self.samples.name)
        going = [table for table in going if table.name not in self._search.tables]
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
        start = self._offsets.at(table, partition)
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
            (self.types.with_types(spec), self._commits.columns(spec))
            for spec in self.specs
            if spec.name in names
        )
        automatic = self.found.automatic and self._search.may_survey
        everything = (*self.specs, *self.found.passed_over) if automatic else None
        skips = {name: skip for name in (*names, SURVEY) if (skip := self._search.skips(name))}
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

    # --- commits --------------------------------------------------------------------------------

    def _commit_samples(
        self, plan: Sequence[JournalRange], written: list[IngestResult], done: Step
    ) -> None:
        moved = self._offsets.moved(self.samples, plan)
        if moved:
            if done.lost:
                before = self.samples.committed(self._offsets.lost_app)
                moved[self._offsets.lost_app] = (before, (before or 0) + done.lost)
            files = [file for one in written for file in one.samples]
            refused = [file for one in written for file in one.refused]
            if refused:
                done.quarantined += sum(file.rows for file in refused)
                self._commits.append(self.samples, files, refused, moved)
            else:
                self.samples.append(files, moved, {"kind": "append"})
            done.commits["samples"] = self.samples.version
