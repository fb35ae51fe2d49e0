"""From the journal into the tables, batch after batch, each sample once.

A step of the loop: ask every table how far it is, plan the ranges that some table lacks, let
Spark's tasks read them and write files, commit the files table by table. The tables are the only
memory: a driver that is killed at any point left some of them ahead of others, and the next one
sees that and gives each what it lacks.

    samples     appended
    typed       appended; the commit names the files of the quarantine that belong to it, and
                whoever finds them not yet committed there commits them: the two tables agree
    latest      the buckets that have news are replaced
    gaps        replaced, now and then
"""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, final

from zenlake.journal import Journal
from zenlake.lake.config import LakeConfig
from zenlake.lake.delta import Overtaken, Table
from zenlake.lake.files import DataFile
from zenlake.lake.kinds import ARROW
from zenlake.lake.place import Place
from zenlake.lake.rows import DAY, GAPS, LATEST, QUARANTINE, SAMPLES
from zenlake.lake.tasks import Tasks
from zenlake.lake.typed import RESERVED, TypedTable, settled, typed_schema
from zenlake.lake.work import QUARANTINED, Fold, Ingest, Merge, Stretch, scratch_folder

__all__ = ["Pipeline", "Step"]

log = logging.getLogger("zenlake.lake")

MOST_ROUNDS: Final = 8
"""How often tasks may decode again before one of them decides alone."""

FAR: Final = 1_000_000
"""Offsets that a table may be ahead of its log when a stretch had nothing for it."""

_KIND_NAMES: Final = {str(arrow): kind for kind, arrow in ARROW.items()}


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
        self.journal = Journal.open(journal)
        self._where = journal
        self._tasks = tasks
        self.samples = Table.create(self.place, "samples", SAMPLES, DAY)
        self.latest = Table.create(
            self.place, "latest", LATEST, "bucket", f"{self.config.buckets} buckets"
        )
        # Where a key belongs was decided when the table was made.
        self._buckets = int(self.latest.described.split()[0])
        self.gaps = Table.create(self.place, "gaps", GAPS, "journal")
        self.quarantine = Table.create(self.place, QUARANTINED, QUARANTINE, DAY)
        self.typed: dict[str, Table] = {}
        for spec in self.config.tables:
            schema = typed_schema(spec, spec.columns)
            table = Table.create(self.place, spec.name, schema, DAY)
            table.grow({n: schema.field(n).type for n in schema.names})
            self.typed[spec.name] = table
        # Stretches that had nothing for a table; the log need not hear of each.
        self._ahead: dict[tuple[str, int], int] = {}
        # The version of each typed table up to which the quarantine has its part.
        self._settled: dict[str, int] = {}
        self._folded = 0.0
        for name in self.typed:
            self._settle(name)

    @property
    def tables(self) -> dict[str, Table]:
        """Every table by its name."""
        fixed = (self.samples, self.latest, self.gaps, self.quarantine)
        return {table.name: table for table in fixed} | self.typed

    def app(self, partition: int) -> str:
        """The name under which the log of each table knows a partition of the journal."""
        return f"{self.journal.id}/{partition}"

    # --- one step -------------------------------------------------------------------------------

    def step(self) -> Step:
        """Read what is new, up to a bound, and commit it to every table."""
        started = time.monotonic()
        done = Step()
        plan = self._plan(done)
        if plan.ends:
            items = self._items(plan)
            told = self._tasks.run(items, "journal to tables")
            done.rows = plan.rows()
            self._commit_samples(plan, told, done)
            for spec in self.config.tables:
                self._commit_typed(spec, plan, items, told, done)
            self._commit_latest(plan, told, done)
        done.behind = self.behind()
        if not done.behind and self.due():
            self._fold(done)
        done.seconds = time.monotonic() - started
        return done

    def behind(self) -> int:
        """Durable rows that some table has not yet."""
        return sum(
            max(0, end - min(self._at(table, p) for table in self._fed))
            for p, end in enumerate(self.journal.watermark().offsets)
        )

    @property
    def _fed(self) -> tuple[Table, ...]:
        """The tables that every step feeds."""
        return (self.samples, self.latest, *self.typed.values())

    def _at(self, table: Table, partition: int) -> int:
        told = table.committed(self.app(partition)) or 0
        return max(told, self._ahead.get((table.name, partition), 0))

    def finish(self) -> None:
        """Bring the ledger up to date, and let the logs hear of stretches with nothing in them."""
        done = Step()
        self._fold(done)
        for (name, partition), end in list(self._ahead.items()):
            self._tell_ahead(name, partition, end)

    def _plan(self, done: Step) -> _Plan:
        ends: dict[int, int] = {}
        at: dict[int, dict[str, int]] = {}
        durable = self.journal.watermark().offsets
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
                log.warning(
                    "the journal dropped %d rows of partition %d before they were read",
                    earliest - start,
                    partition,
                )
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
        known = tuple((spec, self._known(spec)) for spec in self.config.tables)
        return [
            Ingest(
                lake=self.place.uri,
                journal=self._where,
                journal_id=self.journal.id,
                stretches=tuple(stretches),
                typed=known,
                buckets=self._buckets,
                merge=self._bucket_files() if len(held) == 1 else None,
                remember=self.config.remember,
            )
            for stretches in held
        ]

    def _known(self, spec: TypedTable) -> dict[str, str]:
        fixed = {name.lower() for name in (*RESERVED, *spec.chunks)}
        return {
            f.name: _KIND_NAMES[str(f.type)]
            for f in self.typed[spec.name].schema
            if f.name.lower() not in fixed and str(f.type) in _KIND_NAMES
        }

    def _moved(self, table: Table, plan: _Plan) -> dict[str, tuple[int | None, int]]:
        """How far a commit of this plan brings a table, and from where."""
        return {
            self.app(p): (table.committed(self.app(p)), end)
            for p, end in plan.ends.items()
            if table.name in plan.at[p]
        }

    # --- commits --------------------------------------------------------------------------------

    def _commit_samples(self, plan: _Plan, told: list[dict[str, Any]], done: Step) -> None:
        moved = self._moved(self.samples, plan)
        if moved:
            files = [DataFile.of(plain) for one in told for plain in one["samples"]]
            self.samples.append(files, moved, {"kind": "append"})
            done.commits["samples"] = self.samples.version

    def _commit_typed(
        self,
        spec: TypedTable,
        plan: _Plan,
        items: Sequence[Ingest],
        told: list[dict[str, Any]],
        done: Step,
    ) -> None:
        table = self.typed[spec.name]
        moved = self._moved(table, plan)
        if not moved:
            return
        parts = [one["typed"].get(spec.name, NOTHING) for one in told]
        parts = self._agreed(spec, items, parts)
        files = [DataFile.of(plain) for part in parts for plain in part["files"]]
        refused = [plain for part in parts for plain in part["refused"]]
        done.quarantined += sum(plain["rows"] for plain in refused)
        if not files and not refused:
            for p, end in plan.ends.items():
                if spec.name in plan.at[p]:
                    self._ahead[spec.name, p] = end
                    if end - (table.committed(self.app(p)) or 0) > FAR:
                        self._tell_ahead(spec.name, p, end)
            return
        ends = {app: end for app, (_, end) in moved.items()}
        note = {"kind": "append", "quarantine": refused, "moved": ends}
        self._settle(spec.name)
        table.append(files, moved, note)
        done.commits[spec.name] = table.version
        self._settle(spec.name)

    def _agreed(
        self, spec: TypedTable, items: Sequence[Ingest], parts: list[dict[str, Any]]
    ) -> list[dict[str, Any]]:
        """Let tasks decode again until all of them use the same columns; add those to the table."""
        known = self._known(spec)
        columns, again = settled(known, [part["new"] for part in parts])
        rounds = 0
        while again:
            rounds += 1
            log.debug("%s: %d tasks decode again", spec.name, len(again))
            # Should they never agree, one after the other tells the next.
            some = again if rounds < MOST_ROUNDS else again[:1]
            redo = [_only(items[n], spec, columns) for n in some]
            for n, one in zip(some, self._tasks.run(redo, "agree on columns"), strict=True):
                parts[n] = one["typed"][spec.name]
            known = columns
            columns, again = settled(known, [part["new"] for part in parts])
            again = [n for n in again if n not in some] if rounds >= MOST_ROUNDS else again
        self.typed[spec.name].grow({name: ARROW[kind] for name, kind in columns.items()})
        return parts

    def _settle(self, name: str) -> None:
        """Commit what the last commit of a typed table left to the quarantine.

        Whoever made that commit may have been killed right after it.
        """
        table = self.typed[name]
        if table.version == self._settled.get(name):
            return
        note = table.last_note("append")
        if note is not None and note["quarantine"]:
            self.quarantine.refresh()
            moved = {
                f"{name}:{app}": (self.quarantine.committed(f"{name}:{app}"), end)
                for app, end in note["moved"].items()
            }
            if all(start is None or start < end for start, end in moved.values()):
                files = [DataFile.of(plain) for plain in note["quarantine"]]
                self.quarantine.append(files, moved, {"kind": "append"})
        self._settled[name] = table.version

    def _tell_ahead(self, name: str, partition: int, end: int) -> None:
        table, app = self.typed[name], self.app(partition)
        self._settle(name)
        start = table.committed(app)
        if start is None or start < end:
            note = {"kind": "append", "quarantine": [], "moved": {app: end}}
            table.append([], {app: (start, end)}, note)

    def _bucket_files(self) -> dict[int, str]:
        return {int(str(f.partition["bucket"])): f.path for f in self.latest.files()}

    def _commit_latest(self, plan: _Plan, told: list[dict[str, Any]], done: Step) -> None:
        moved = self._moved(self.latest, plan)
        if not moved:
            return
        parts = [one["latest"] for one in told if "latest" in one]
        scratch = [(part["scratch"], tuple(part["buckets"])) for part in parts if "scratch" in part]
        merged = [one for part in parts for one in part.get("merged", ())]
        had = self._bucket_files()
        if scratch:
            touched = {bucket for _, buckets in scratch for bucket in buckets}
            if -1 in touched:
                touched = set(range(self._buckets))
            merged += self._merge(sorted(touched), had, scratch)
        files = {f.path: f for f in self.latest.files()}
        removed = [files[one["had"]] for one in merged if one["had"] in files]
        if any(one["had"] is not None and one["had"] not in files for one in merged):
            raise Overtaken("table 'latest' was changed meanwhile")
        self.latest.append(
            [DataFile.of(one["file"]) for one in merged], moved, {"kind": "append"}, removed
        )
        done.commits["latest"] = self.latest.version
        for path, _ in scratch:
            self.latest.place.remove_folder(scratch_folder(path))

    def _merge(
        self,
        touched: list[int],
        had: Mapping[int, str],
        scratch: list[tuple[str, tuple[int, ...]]],
    ) -> list[dict[str, Any]]:
        lanes = min(len(touched), self._tasks.parallel)
        items = [
            Merge(
                lake=self.place.uri,
                buckets={bucket: had.get(bucket) for bucket in touched[lane::lanes]},
                scratch=tuple(scratch),
                remember=self.config.remember,
            )
            for lane in range(lanes)
        ]
        return [one for told in self._tasks.run(items, "latest") for one in told["merged"]]

    # --- the ledger -----------------------------------------------------------------------------

    def due(self) -> bool:
        """Whether the ledger should be folded: it is a while ago, and there are new rows."""
        if time.monotonic() - self._folded < self.config.gaps_every:
            return False
        return any(
            end > (self.gaps.committed(self.app(p)) or 0)
            for p, end in enumerate(self.journal.watermark().offsets)
        )

    def _fold(self, done: Step) -> None:
        self._folded = time.monotonic()
        self.gaps.refresh()
        earliest = self.journal.earliest()
        ranges: dict[int, tuple[int, int]] = {}
        moved: dict[str, tuple[int | None, int]] = {}
        for p, end in enumerate(self.journal.watermark().offsets):
            start = self.gaps.committed(self.app(p))
            if max(start or 0, earliest[p]) < end:
                ranges[p] = (max(start or 0, earliest[p]), end)
                moved[self.app(p)] = (start, end)
        if not ranges:
            return
        mine = [f for f in self.gaps.files() if f.partition["journal"] == self.journal.id]
        item = Fold(
            lake=self.place.uri,
            journal=self._where,
            journal_id=self.journal.id,
            ranges=ranges,
            had=mine[0].path if mine else None,
        )
        (told,) = self._tasks.run([item], "ledger")
        self.gaps.append([DataFile.of(told["file"])], moved, {"kind": "append"}, mine)
        done.commits["gaps"] = self.gaps.version


NOTHING: Final[dict[str, Any]] = {"files": [], "refused": [], "new": {}}


def _only(item: Ingest, spec: TypedTable, columns: Mapping[str, str]) -> Ingest:
    """The part of a task that concerns one typed table."""
    return replace(
        item,
        stretches=tuple(
            replace(stretch, starts={spec.name: stretch.starts[spec.name]})
            for stretch in item.stretches
            if spec.name in stretch.starts
        ),
        typed=((spec, columns),),
        merge=None,
    )
