"""The search for rows that workers die of, and what becomes of each that is found.

`Narrowing` says what to try next, the pipeline tries it, and the row that is left at the end goes
to the `Crashes` of its table, or stops the table.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, final

from zenlake.lake.ingest.crashes import MOST_CRASHES, MOST_SURVEYED, SURVEY, Crashes
from zenlake.lake.ingest.failure_reason import WorkFailed, reason_of
from zenlake.lake.ingest.narrowing import Narrowing, SearchResult, Trial
from zenlake.lake.ingest.plan import LEADER, JournalRange
from zenlake.lake.table.location import LakeLocation

__all__ = ["CrashSearch", "StopTable", "WorkerDeath"]


@dataclass(frozen=True, slots=True)
class WorkerDeath:
    """A job that a worker died of, and the ranges that it read."""

    error: WorkFailed
    ranges: Sequence[JournalRange]


@dataclass(frozen=True, slots=True)
class StopTable:
    """A table that has to stop, and why."""

    name: str
    reason: str


@final
class CrashSearch:
    """The rows that workers die of: those that are searched, and those that are known."""

    def __init__(self, lake: LakeLocation, suspects: Iterable[Any] = ()) -> None:
        """Go on with what `suspects()` of an earlier search gave."""
        self._crashes = Crashes(lake)
        self._narrowing = Narrowing(suspects)

    def suspects(self) -> list[Any]:
        """Return how far the search is, as JSON can write it."""
        return self._narrowing.plain()

    def skips(self, table: str) -> dict[str, tuple[int, ...]]:
        """Return the rows of a table that are known to crash."""
        return self._crashes.of(table)

    @property
    def may_survey(self) -> bool:
        """Return False if workers died of too many payloads of keys without a table."""
        return self._crashes.count(SURVEY) < MOST_SURVEYED

    @property
    def tables(self) -> frozenset[str]:
        """The tables that are tried by themselves."""
        return self._narrowing.tables

    def accuse(self, died: WorkerDeath) -> str:
        """Suspect the ranges that a worker died of; return what to tell."""
        self._narrowing.accuse(died.ranges)
        return f"{died.error}; tables and rows are tried apart to find which"

    def trial(self, at: Callable[[str, int], int | None]) -> Trial | None:
        """Return what to try next; None if nothing is suspected any more.

        `at`: the first offset of a partition that a table lacks; None if that table is not fed.
        """
        return self._narrowing.trial(at)

    def died(
        self, trial: Trial, died: WorkerDeath, app: str, *, surveys: bool
    ) -> StopTable | str | None:
        """Note that a worker died in a trial of the partition that logs know as `app`.

        `surveys`: payloads of keys without a table are looked at. Return what to tell of a row that
        is left out from now on, or the table that has to stop; None while the search goes on.
        Raises the error if not even `samples` can take the row.
        """
        span, failure = trial.range, died.error.failure
        first, end = died.ranges[0].first, died.ranges[-1].end
        verdict = self._narrowing.died(trial, first, end, failure.times)
        if verdict is SearchResult.SEARCHING:
            return None
        (name,) = span.starts
        row = f"offset {first} of partition {span.partition}"
        if name == LEADER:
            return f"{row} {self._passed_over(died, app, span, first, surveys)}"
        if verdict is SearchResult.INNOCENT:
            self._crashes.forget(name, app, first)
            return StopTable(name, reason_of(died.error))
        if self._crashes.count(name) >= MOST_CRASHES:
            words = f"{MOST_CRASHES:,} samples crashed its decoder, and so does {row}; mend it"
            return StopTable(name, words)
        self._crashes.add(name, app, first)
        self._narrowing.blame()
        return (
            f"{row} goes to quarantine undecoded, table '{name}': {failure.reason} of it each time"
        )

    def _passed_over(
        self, died: WorkerDeath, app: str, span: JournalRange, offset: int, surveys: bool
    ) -> str:
        """Pass over the payload of a row that `samples` is to have, or then over the row.

        Return in words what was done. Raises the error of the worker if it dies of other rows, too.
        """

        def is_known(table: str) -> bool:
            return offset in self._crashes.of(table).get(app, ())

        if is_known(LEADER):
            self._crashes.forget(LEADER, app, offset)
            raise died.error
        why = f"{died.error.failure.reason} of it each time"
        if surveys and not is_known(SURVEY):
            self._crashes.add(SURVEY, app, offset)
            self._narrowing.blame()
            return f"is in samples, and its payload makes no table: {why}"
        self._crashes.forget(SURVEY, app, offset)
        self._crashes.add(LEADER, app, offset)
        self._narrowing.accuse([JournalRange(span.partition, offset + 1, {LEADER: offset})])
        return f"goes to quarantine instead of samples: {why}"
