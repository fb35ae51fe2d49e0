"""From the journal into the tables, batch after batch, each sample once.

A step of the loop: ask every table how far it is, plan the ranges that some table lacks, let
Spark's tasks read them and write files, commit the files table by table. The tables are the only
memory: a driver that is killed at any point left some of them ahead of others, and the next one
sees that and gives each what it lacks.

    samples     appended
    typed       appended; the commit names the files of the quarantine that belong to it, and
                whoever finds them not yet committed there commits them: the two tables agree
    latest      folded from `samples` when there is enough to fold (`lake/folds`)
    gaps        folded from the journal, on time
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, final

from zenlake.journal import Journal
from zenlake.lake.config import LakeConfig
from zenlake.lake.delta import Table
from zenlake.lake.files import DataFile
from zenlake.lake.folds import GapsFold, LatestFold
from zenlake.lake.kinds import ARROW
from zenlake.lake.place import Place, absolute
from zenlake.lake.quarantine import Quarantine
from zenlake.lake.rows import DAY, SAMPLES
from zenlake.lake.status import TableStatus
from zenlake.lake.tasks import Tasks
from zenlake.lake.typed import Columns, TypedTable, settled, typed_schema
from zenlake.lake.widen import columns_of, widen
from zenlake.lake.work import Ingest, Ingested, Stretch, TypedFiles

__all__ = ["Pipeline", "Step", "agreed"]

log = logging.getLogger("zenlake.lake")

MOST_ROUNDS: Final = 8
"""How often tasks may decode again before one of them decides alone."""

FAR: Final = 1_000_000
"""Offsets that a table may be ahead of its log when a stretch had nothing for it."""


@dataclass(slots=True)
class Step:
    """What one step did."""

    rows: int = 0
    behind: int = 0
    """Durable rows that some table has not yet."""
    lost: int = 0
    """Rows that the journal had dropped before they were read."""
    quarantined: int = 0
    seconds: float = 0.0
    commits: dict[str, int] = field(default_factory=dict)
    """The version of each table that this step made."""


@dataclass(frozen=True, slots=True)
class _Plan:
    """Ranges to read, and from where each table wants them."""

    at: dict[int, dict[str, int]]
    ends: dict[int, int]

    def rows(self) -> int:
        return sum(self.ends[p] - min(self.at[p].values()) for p in self.ends)


@final
class Pipeline:
    """One journal on its way into one lake."""

    def __init__(
        self,
        lake: str,
        journal: str,
        tasks: Tasks,
        config: LakeConfig | None = None,
    ) -> None:
        """`lake` and `journal` are folders or addresses; the lake is made if it is not there."""
        self.config = config or LakeConfig()
        self.place = Place(lake)
        # Absolute, for tasks that run elsewhere.
        self.journal = Journal.open(absolute(journal))
        self._tasks = tasks
        self.samples = Table.create(self.place, "samples", SAMPLES, DAY)
        self.latest = LatestFold(self.place, self.samples, self.journal, tasks, self.config)
        self.gaps = GapsFold(self.place, self.samples, self.journal, tasks, self.config)
        self.typed: dict[str, Table] = {}
        self.problems: list[str] = []
        """What the configuration and the tables disagree about, and what to do."""
        for spec in self.config.tables:
            schema = typed_schema(spec, spec.columns)
            table = Table.create(self.place, spec.name, schema, DAY)
            table.grow({n: schema.field(n).type for n in schema.names})
            self.typed[spec.name] = table
            self._compare(spec, table)
        self.quarantine = Quarantine(self.place, self.typed, tasks)
        # Stretches that had nothing for a table; the log need not hear of each.
        self._ahead: dict[tuple[str, int], int] = {}

    @property
    def tables(self) -> dict[str, Table]:
        """Every table by its name."""
        fixed = (self.samples, self.latest.table, self.gaps.table, self.quarantine.table)
        return {table.name: table for table in fixed} | self.typed

    def app(self, partition: int) -> str:
        """The name under which the log of each table knows a partition of the journal."""
        return f"{self.journal.id}/{partition}"

    def _compare(self, spec: TypedTable, table: Table) -> None:
        """Make columns as wide as the configuration says; tell where that cannot be."""
        has = columns_of(table, spec).kinds
        wider = {
            name: kind
            for name, kind in spec.columns.items()
            if (has.get(name), kind) in (("bigint", "double"), ("array<bigint>", "array<double>"))
        }
        if wider:
            widen(table, wider, self._tasks, self._apps(table))
        for name, kind in spec.columns.items():
            if name in has and name not in wider and has[name] != kind:
                self.problems.append(
                    f"the configuration says that {spec.name}.{name} is {kind}, but the table has "
                    f"{has[name]}; run `zenlake lake rebuild {spec.name}`"
                )

    def _apps(self, table: Table) -> dict[str, int]:
        """Who writes to a table, as far as we know, and where it is."""
        found = {}
        for p in range(len(self.journal.watermark().offsets)):
            at = table.committed(self.app(p))
            if at is not None:
                found[self.app(p)] = at
        return found

    # --- one step -------------------------------------------------------------------------------

    def step(self) -> Step:
        """Read what is new, up to a bound, and commit it to `samples` and the typed tables."""
        done = Step()
        plan = self._plan(done)
        if plan.ends:
            items = self._items(plan)
            written = self._tasks.run(items, "journal to tables")
            done.rows = plan.rows()
            self._commit_samples(plan, written, done)
            for spec in self.config.tables:
                self._commit_typed(spec, plan, items, written, done)
        done.behind = self.behind()
        return done

    def fold(self, now: float, *, all: bool = False) -> dict[str, int]:
        """Write `gaps` and `latest` anew where it is due, or with `all` in any case."""
        done: dict[str, int] = {}
        for folded in (self.gaps, self.latest):
            if all or folded.due(now):
                version = folded.fold(now)
                if version is not None:
                    done[folded.table.name] = version
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

    def behind(self) -> int:
        """Durable rows that `samples` or a typed table has not yet."""
        return sum(max(0, end - has) for end, has in zip(self.ends(), self.reached(), strict=True))

    def reached(self) -> tuple[int, ...]:
        """Up to where `samples` and the typed tables have everything, for each partition."""
        return tuple(
            min(self._at(table, p) for table in self._fed) for p in range(len(self.ends()))
        )

    def committed(self) -> tuple[int, ...]:
        """Up to where the journal is not needed any more, for each partition.

        `latest` does not count: it is made from `samples`.
        """
        return tuple(
            min(has, self.gaps.table.committed(self.app(p)) or 0)
            for p, has in enumerate(self.reached())
        )

    def shown(self) -> tuple[TableStatus, ...]:
        """Facts about each table, as far as they were looked at."""
        ends = self.ends()
        found = []
        for name, table in self.tables.items():
            totals = table.totals()
            # `latest` is answered from the tail of `samples`, so it is as far as that.
            fed = {"latest": self.samples, "quarantine": None}.get(name, table)
            at = () if fed is None else tuple(self._at(fed, p) for p in range(len(ends)))
            found.append(
                TableStatus(
                    name=name,
                    version=table.version,
                    rows=totals.rows,
                    files=totals.files,
                    bytes=totals.bytes,
                    behind=sum(max(0, end - has) for end, has in zip(ends, at, strict=False)),
                    at={self.journal.id: at} if at else {},
                )
            )
        return tuple(found)

    @property
    def _fed(self) -> tuple[Table, ...]:
        """The tables that every step feeds."""
        return (self.samples, *self.typed.values())

    def _at(self, table: Table, partition: int) -> int:
        told = table.committed(self.app(partition)) or 0
        return max(told, self._ahead.get((table.name, partition), 0))

    # --- plans ----------------------------------------------------------------------------------

    def _plan(self, done: Step) -> _Plan:
        ends: dict[int, int] = {}
        at: dict[int, dict[str, int]] = {}
        durable = self.ends()
        earliest = self.journal.earliest()
        share = max(1, self.config.batch_rows // max(1, len(durable)))
        for table in self._fed:
            table.refresh()
        for p, end in enumerate(durable):
            starts = {table.name: self._start(table, p, earliest[p], done) for table in self._fed}
            first = min(starts.values())
            end = min(end, first + share)
            wanted = {name: start for name, start in starts.items() if start < end}
            if wanted:
                at[p], ends[p] = wanted, end
        return _Plan(at, ends)

    def _start(self, table: Table, partition: int, earliest: int, done: Step) -> int:
        start = self._at(table, partition)
        if start < earliest:
            if start and table is self.samples:
                done.lost += earliest - start
            start = earliest
        return start

    def _items(self, plan: _Plan) -> list[Ingest]:
        """The tasks of a plan: about as many as run at once, none too large, and few if it is
        small."""
        each = max(self.config.task_rows, -(-plan.rows() // self._tasks.parallel))
        each = min(each, self.config.most_task_rows)
        held: list[list[Stretch]] = [[]]
        room = each
        for p, end in plan.ends.items():
            start = min(plan.at[p].values())
            while start < end:
                if not room:
                    held.append([])
                    room = each
                stop = min(end, start + room)
                starts = {
                    name: max(at, start) for name, at in plan.at[p].items() if max(at, start) < stop
                }
                held[-1].append(Stretch(p, stop, starts))
                room -= stop - start
                start = stop
        known = tuple(
            (spec, columns_of(self.typed[spec.name], spec)) for spec in self.config.tables
        )
        return [
            Ingest(
                lake=self.place.uri,
                journal=self.journal.path,
                journal_id=self.journal.id,
                stretches=tuple(stretches),
                typed=known,
            )
            for stretches in held
        ]

    def _moved(self, table: Table, plan: _Plan) -> dict[str, tuple[int | None, int]]:
        """How far a commit of this plan brings a table, and from where."""
        return {
            self.app(p): (table.committed(self.app(p)), end)
            for p, end in plan.ends.items()
            if table.name in plan.at[p]
        }

    # --- commits --------------------------------------------------------------------------------

    def _commit_samples(self, plan: _Plan, written: list[Ingested], done: Step) -> None:
        moved = self._moved(self.samples, plan)
        if moved:
            files = [file for one in written for file in one.samples]
            self.samples.append(files, moved, {"kind": "append"})
            done.commits["samples"] = self.samples.version

    def _commit_typed(
        self,
        spec: TypedTable,
        plan: _Plan,
        items: Sequence[Ingest],
        written: list[Ingested],
        done: Step,
    ) -> None:
        table = self.typed[spec.name]
        moved = self._moved(table, plan)
        if not moved:
            return
        known = dict((one.name, columns) for one, columns in items[0].typed)[spec.name]
        parts = [one.typed.get(spec.name, TypedFiles()) for one in written]

        def again(places: list[int], columns: Columns) -> list[TypedFiles]:
            redo = [_only(items[n], spec, columns) for n in places]
            done = self._tasks.run(redo, "agree on columns")
            return [one.typed.get(spec.name, TypedFiles()) for one in done]

        columns, parts = agreed(known, parts, again)
        wider = {
            name: kind for name, kind in known.kinds.items() if columns.get(name, kind) != kind
        }
        if wider:
            wide = {name: columns[name] for name in wider}
            log.info("%s: %s", spec.name, ", ".join(f"{n} becomes {k}" for n, k in wide.items()))
            widen(table, wide, self._tasks, self._apps(table))
        table.grow({name: ARROW[kind] for name, kind in columns.items()})
        files = [file for part in parts for file in part.files]
        refused = [file for part in parts for file in part.refused]
        done.quarantined += sum(file.rows for file in refused)
        if not files and not refused:
            for p, end in plan.ends.items():
                if spec.name in plan.at[p]:
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
        self.quarantine.settle(table)
        # What somebody else promises now must be settled first.
        table.append(files, moved, note, rewrites=table.rewrites)
        self.quarantine.settle(table)

    def _tell_ahead(self, name: str, partition: int, end: int) -> None:
        table, app = self.typed[name], self.app(partition)
        start = table.committed(app)
        if start is None or start < end:
            self._append_typed(table, [], [], {app: (start, end)})


def agreed(
    known: Columns,
    parts: list[TypedFiles],
    again: Callable[[list[int], Columns], list[TypedFiles]],
) -> tuple[dict[str, str], list[TypedFiles]]:
    """Let tasks decode again until all of them use the same columns; gives these, and the files."""
    columns, redo = settled(known, [part.new for part in parts])
    rounds = 0
    while redo:
        rounds += 1
        log.debug("%d tasks decode again", len(redo))
        # Should they never agree, one after the other tells the next.
        some = redo if rounds < MOST_ROUNDS else redo[:1]
        known = Columns(columns, known.fixed)
        for n, part in zip(some, again(some, known), strict=True):
            parts[n] = part
        columns, redo = settled(known, [part.new for part in parts])
        redo = [n for n in redo if n not in some] if rounds >= MOST_ROUNDS else redo
    return columns, parts


def _only(item: Ingest, spec: TypedTable, columns: Columns) -> Ingest:
    """The part of a task that concerns one typed table."""
    return replace(
        item,
        stretches=tuple(
            replace(stretch, starts={spec.name: stretch.starts[spec.name]})
            for stretch in item.stretches
            if spec.name in stretch.starts
        ),
        typed=((spec, columns),),
    )
