"""The two tables that are written anew as a whole, now and then: `latest` and `gaps`.

`latest` is folded from `samples`, not from the journal: what it lacks is the tail of that table,
from where the log of `latest` says it is. Readers who want it fresh do the same
(`lake/ingest/latest_overlay`), so it need not be written with every step. Its commit notes how far
it is for every journal.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from typing import Any, Final, final

import pyarrow.compute as pc

from zenlake.errors import LocalError
from zenlake.journal import Journal
from zenlake.lake.ingest.gaps import GapsTask
from zenlake.lake.ingest.latest_overlay import Marks, marks_of, tail_files
from zenlake.lake.ingest.latest_tasks import (
    MOST_BYTES,
    Bucket,
    MergeTask,
    NewestTask,
    ScratchFile,
    ShownTask,
)
from zenlake.lake.ingest.schedule import RewriteSchedule
from zenlake.lake.ingest.spark_tasks import Tasks
from zenlake.lake.model.config import LakeConfig
from zenlake.lake.model.sample_rows import GAPS, LATEST
from zenlake.lake.table.data_files import DataFile, is_ours, read_table
from zenlake.lake.table.delta import CommitConflict, Table
from zenlake.lake.table.location import LakeLocation

__all__ = ["GapsTable", "LatestTable", "missing_in"]

log = logging.getLogger("zenlake.lake")

LATEST_SHARE: Final = 0.5
LATEST_SOONEST: Final = 30.0
LATEST_LATEST: Final = 3600.0
GAPS_SHARE: Final = 0.2
GAPS_LATEST: Final = 6.0
"""`gaps` is written at the latest after so many times its usual interval."""


class _DerivedTable:
    """A table made from what one journal brought to `samples`."""

    def __init__(
        self, lake: LakeLocation, samples: Table, journal: Journal, tasks: Tasks, table: Table
    ) -> None:
        self._lake = lake
        self._samples = samples
        self._journal = journal
        self._tasks = tasks
        self.table = table

    def _application(self, partition: int) -> str:
        """Return the name that the logs of tables have for a partition of the journal."""
        return f"{self._journal.id}/{partition}"

    def _bytes_a_row(self) -> float:
        """Return the size of a row of `samples`, on average; 0 where there are none."""
        totals = self._samples.totals()
        return totals.bytes / max(1, totals.rows)


@final
class LatestTable(_DerivedTable):
    """Brings `latest` up to what `samples` has of one journal."""

    def __init__(
        self, lake: LakeLocation, samples: Table, journal: Journal, tasks: Tasks, config: LakeConfig
    ) -> None:
        """The table is made if it is not there."""
        table = Table.create(lake, "latest", LATEST, "bucket", f"{config.buckets} buckets")
        super().__init__(lake, samples, journal, tasks, table)
        self._config = config
        # Where a key belongs was decided when the table was made.
        self._buckets = int(self.table.described.split()[0])
        self._rewriting = RewriteSchedule(LATEST_SHARE, LATEST_SOONEST, LATEST_LATEST)
        self._looked_at = -1
        self._whole = True

    def due(self, now: float) -> bool:
        """Return True if enough rows came, or another program has written files of the table."""
        if not self.table.place.remote:  # where a look costs nothing
            self.table.refresh()
        if not self._is_whole():
            return True
        rows = sum(end - (start or 0) for start, end in self._missing().values())
        news = rows * self._bytes_a_row()
        return self._rewriting.due(now, news, self.table.totals().bytes)

    def fold(self, now: float) -> int | None:
        """Write the buckets that have news; gives the version, None if there was nothing to do."""
        self.table.refresh()
        self._samples.refresh()
        missing = self._missing()
        if not self._is_whole():
            return self._make_again(now, missing)
        if not missing:
            return None
        marks = marks_of(self.table)
        moved = {self._application(p): span for p, span in missing.items()}
        ranges = {p: (start or 0, end) for p, (start, end) in missing.items()}
        buckets, scratch = self._sorted(ranges, marks)
        files = {f.path: f for f in self.table.files()}
        if any(one.had is not None and one.had not in files for one in buckets):
            raise CommitConflict("table 'latest' was changed meanwhile")
        ends = {app: end for app, (_, end) in moved.items()}
        self.table.append(
            [one.file for one in buckets],
            moved,
            {"kind": "append", "at": {**marks, **ends}},
            [files[one.had] for one in buckets if one.had is not None],
        )
        for one in scratch:
            self.table.place.remove_folder(one.folder)
        self._rewriting.done(now)
        return self.table.version

    def _is_whole(self) -> bool:
        """Return True if each bucket has one file, with the deletions in its footer."""
        if self._looked_at != self.table.version:
            files = self.table.files()
            buckets = {str(file.partition["bucket"]) for file in files}
            self._whole = len(buckets) == len(files) and all(is_ours(f.path) for f in files)
            self._looked_at = self.table.version
        return self._whole

    def _make_again(self, now: float, missing: Mapping[int, tuple[int | None, int]]) -> int:
        """Write every bucket anew, of the rows that are there and all that `samples` has.

        Another program has merged or deleted rows, and dropped what the footers remembered of
        deletions. Rows that `samples` has no more stay as they are.
        """
        log.warning(
            "another program has written files of the table 'latest'; it is made again from samples"
        )
        version, old = self.table.version, self.table.files()
        moved = {self._application(p): span for p, span in missing.items()}
        marks = {**marks_of(self.table), **{app: end for app, (_, end) in moved.items()}}
        by_journal: dict[str, dict[int, tuple[int, int]]] = {}
        for app, end in marks.items():
            journal, _, partition = app.rpartition("/")
            by_journal.setdefault(journal, {})[int(partition)] = (0, end)
        shown = ShownTask(self._lake.uri, tuple(file.path for file in old), self._buckets)
        works = [
            NewestTask(
                lake=self._lake.uri,
                paths=tuple(file.path for file in group),
                journal=journal,
                ranges=ranges,
                buckets=self._buckets,
                remember=self._config.remember,
            )
            for group in _grouped(self._samples.files())
            for journal, ranges in by_journal.items()
        ]
        # Rows of the table come first: of equal rows those of `samples` stay.
        results = [*self._tasks.run([shown], "latest"), *self._tasks.run(works, "newest again")]
        scratch = [part.scratch for part in results if part.scratch is not None]
        buckets = self._merged_from(scratch, {})
        self.table.append(
            [one.file for one in buckets], moved, {"kind": "append", "at": marks}, old,
            version=version,
        )  # fmt: skip
        for one in scratch:
            self.table.place.remove_folder(one.folder)
        self._rewriting.done(now)
        return self.table.version

    def _missing(self) -> dict[int, tuple[int | None, int]]:
        """By partition, from where to where `samples` is ahead."""
        missing: dict[int, tuple[int | None, int]] = {}
        for p in range(len(self._journal.watermark().offsets)):
            app = self._application(p)
            start, end = self.table.committed(app), self._samples.committed(app)
            if end is not None and (start or 0) < end:
                missing[p] = start, end
        return missing

    def _sorted(
        self, ranges: Mapping[int, tuple[int, int]], marks: Marks
    ) -> tuple[list[Bucket], list[ScratchFile]]:
        """The buckets that have news, written anew."""
        had = {int(str(f.partition["bucket"])): f.path for f in self.table.files()}
        groups = list(_grouped(tail_files(self._samples, marks)))
        works = [
            NewestTask(
                lake=self._lake.uri,
                paths=tuple(file.path for file in group),
                journal=self._journal.id,
                ranges=ranges,
                buckets=self._buckets,
                merge=had if len(groups) == 1 else None,
                remember=self._config.remember,
            )
            for group in groups
        ]
        results = self._tasks.run(works, "newest of each key")
        buckets = [one for part in results for one in part.buckets]
        scratch = [part.scratch for part in results if part.scratch is not None]
        return [*buckets, *self._merged_from(scratch, had)], scratch

    def _merged_from(self, scratch: list[ScratchFile], had: Mapping[int, str]) -> list[Bucket]:
        if not scratch:
            return []
        touched = sorted({bucket for one in scratch for bucket in one.buckets})
        if -1 in touched:
            touched = list(range(self._buckets))
        lanes = min(len(touched), self._tasks.parallel)
        items = [
            MergeTask(
                lake=self._lake.uri,
                buckets={bucket: had.get(bucket) for bucket in touched[lane::lanes]},
                scratch=tuple(scratch),
                remember=self._config.remember,
            )
            for lane in range(lanes)
        ]
        return [one for part in self._tasks.run(items, "latest") for one in part.buckets]


def _grouped(files: list[DataFile]) -> Iterator[list[DataFile]]:
    """Files by the task that reads them."""
    held: list[DataFile] = []
    size = 0
    for file in files:
        if held and size + file.size > MOST_BYTES:
            yield held
            held, size = [], 0
        held.append(file)
        size += file.size
    if held:
        yield held


@final
class GapsTable(_DerivedTable):
    """Keeps the ledger of one journal as rows of `gaps`."""

    def __init__(
        self, lake: LakeLocation, samples: Table, journal: Journal, tasks: Tasks, config: LakeConfig
    ) -> None:
        """The table is made if it is not there."""
        super().__init__(lake, samples, journal, tasks, Table.create(lake, "gaps", GAPS, "journal"))
        every = config.gaps_every
        self._rewriting = RewriteSchedule(GAPS_SHARE, every, GAPS_LATEST * every)
        self._counted: tuple[int, int] | None = None

    def due(self, now: float) -> bool:
        """Whether it is time: it does not matter whether the tables have caught up."""
        rows = sum(end - max(start or 0, first) for start, first, end in self._missing().values())
        news = rows * max(1.0, self._bytes_a_row())
        return self._rewriting.due(now, news, self.table.totals().bytes)

    def fold(self, now: float) -> int | None:
        """Enter the new rows; gives the version, None if there were none."""
        self.table.refresh()
        missing = self._missing()
        if not missing:
            self._rewriting.done(now)
            return None
        mine = [f for f in self.table.files() if f.partition["journal"] == self._journal.id]
        if len(mine) > 1 or not all(is_ours(file.path) for file in mine):
            raise LocalError(self._without_state())
        (file,) = self._tasks.run(
            [
                GapsTask(
                    lake=self._lake.uri,
                    journal=self._journal.path,
                    journal_id=self._journal.id,
                    ranges={
                        p: (max(start or 0, first), end)
                        for p, (start, first, end) in missing.items()
                    },
                    had=mine[0].path if mine else None,
                )
            ],
            "ledger",
        )
        moved: dict[str, tuple[int | None, int]] = {
            self._application(p): (start, end) for p, (start, _, end) in missing.items()
        }
        note: dict[str, Any] = {"kind": "append"}
        self.table.append([file], moved, note, mine)
        self._rewriting.done(now)
        return self.table.version

    def _without_state(self) -> str:
        """What to do when another program has merged or deleted rows of the ledger."""
        before = self.table.last_noted("append")
        back = "" if before is None else f"`RESTORE TABLE gaps TO VERSION AS OF {before}`, or "
        return (
            "another program has written files of the table 'gaps', and dropped the state of the "
            f"ledger in their footers; go back with {back}move the folder gaps away: the ledger "
            "begins again with what the journal still holds"
        )

    def _missing(self) -> dict[int, tuple[int | None, int, int]]:
        """By partition: how far the ledger is, where the journal begins, and where it ends."""
        earliest = self._journal.earliest()
        missing: dict[int, tuple[int | None, int, int]] = {}
        for p, end in enumerate(self._journal.watermark().offsets):
            start = self.table.committed(self._application(p))
            if max(start or 0, earliest[p]) < end:
                missing[p] = start, earliest[p], end
        return missing

    def missing(self) -> int:
        """Samples that sources sent and that never came, of all journals."""
        if self.table.refusal:
            return 0 if self._counted is None else self._counted[1]
        if self._counted is None or self._counted[0] != self.table.version:
            self._counted = self.table.version, missing_in(self.table)
        return self._counted[1]


def missing_in(gaps: Table) -> int:
    """The sum of the column `missing`."""
    files = [read_table(gaps.place, file.path, GAPS, ["missing"]) for file in gaps.files()]
    return sum(pc.sum(file["missing"]).as_py() or 0 for file in files)
