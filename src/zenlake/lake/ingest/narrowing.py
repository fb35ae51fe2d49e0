"""Which row a worker dies of: tables apart, then pieces of the range, until one row is left.

    narrowing = Narrowing()
    narrowing.accuse(stretches)                 # of the task that a worker died of
    while (trial := narrowing.trial(at)):       # a range to run as a job of its own
        # It is committed, or a worker dies again, of the rows from `first` to `end`:
        narrowing.died(trial, first, end, times)

The tables are the memory of what passed, for a range that passed was committed; so a suspect is
only the tables, the partition, and the offsets between which the row lies. `samples` comes first:
where it passes, workers can do their work, and another table is to blame. A row is named when it
has killed two workers that had no other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import astuple, dataclass, replace
from enum import Enum
from typing import Any, Final, final

from zenlake.lake.ingest.plan import LEADER, JournalRange

__all__ = ["PIECES", "Narrowing", "SearchResult", "Trial"]

PIECES: Final = 32
"""Tasks of a trial of one table; Spark says of which of them a worker died."""

DEATHS: Final = 2
"""Workers that must die of a row before it is named."""


class SearchResult(Enum):
    """What is known after a worker died."""

    SEARCHING = "searching"
    GUILTY = "guilty"
    """The row is known, and the one table for which it cannot be decoded."""
    INNOCENT = "innocent"
    """A worker died though the row was left out."""


@dataclass(frozen=True, slots=True)
class Trial:
    """A range to run as a job of its own."""

    range: JournalRange
    pieces: int = 1
    """Tasks to cut it into, at least."""


@dataclass(frozen=True, slots=True)
class Suspect:
    """Tables, and rows of a partition: a worker died of one of these."""

    tables: tuple[str, ...]
    partition: int
    first: int
    end: int
    deaths: int = 0
    """Workers that died of the one row that is left."""
    blamed: bool = False
    """The row is left out from now on."""

    def trial(self, at: Callable[[str, int], int | None]) -> Trial | None:
        """Return what to try next: what comes before the suspected rows, then these."""
        known = {name: at(name, self.partition) for name in self.tables}
        starts = {name: start for name, start in known.items() if start is not None}
        before = {name: start for name, start in starts.items() if start < self.first}
        if before:
            return Trial(JournalRange(self.partition, self.first, before))
        starts = {name: start for name, start in starts.items() if start < self.end}
        if not starts:
            return None
        pieces = PIECES if len(starts) == 1 else 1
        return Trial(JournalRange(self.partition, self.end, starts), pieces)


@final
class Narrowing:
    """The suspects, in the order in which they are tried."""

    def __init__(self, plain: Iterable[Any] = ()) -> None:
        """Go on with what `plain()` gave, which may be of another release."""
        known = map(_suspect, plain)
        self._suspects: list[Suspect] = [one for one in known if one is not None]

    def plain(self) -> list[Any]:
        """Return the suspects as JSON can write them."""
        return [list(astuple(one)) for one in self._suspects]

    @property
    def tables(self) -> frozenset[str]:
        """The tables that are tried by themselves."""
        return frozenset(name for one in self._suspects for name in one.tables)

    def accuse(self, ranges: Sequence[JournalRange]) -> None:
        """Add ranges that a worker died of, with the tables that they were for."""
        for one in ranges:
            tables = tuple(sorted(one.starts, key=lambda name: (name != LEADER, name)))
            self._suspects += _apart(tables, one.partition, one.first, one.end)

    def trial(self, at: Callable[[str, int], int | None]) -> Trial | None:
        """Return what to try next; None if nothing is suspected any more.

        `at`: the first offset of a partition that a table lacks; None if that table is not fed.
        """
        while self._suspects:
            found = self._suspects[0].trial(at)
            if found is not None:
                return found
            del self._suspects[0]
        return None

    def died(self, trial: Trial, first: int, end: int, times: int = 1) -> SearchResult:
        """Note that workers died in the trial, so many times, of a row from `first` to `end`."""
        suspect, tables = self._suspects[0], tuple(trial.range.starts)
        if trial.range.end <= suspect.first:  # another row, before those that were suspected
            self._suspects[:0] = _apart(tables, suspect.partition, first, end)
            return SearchResult.SEARCHING
        del self._suspects[0]
        if suspect.blamed:
            return SearchResult.INNOCENT
        if len(tables) > 1:
            self._suspects[:0] = _apart(tables, suspect.partition, first, end)
            return SearchResult.SEARCHING
        if end - first > 1 and end - first == trial.range.rows:  # Spark named no task
            middle = (first + end) // 2
            self._suspects[:0] = [
                Suspect(tables, suspect.partition, first, middle),
                Suspect(tables, suspect.partition, middle, end),
            ]
            return SearchResult.SEARCHING
        one_row = end - first == 1
        deaths = suspect.deaths + times if one_row else 0
        self._suspects.insert(0, Suspect(tables, suspect.partition, first, end, deaths))
        return SearchResult.GUILTY if deaths >= DEATHS else SearchResult.SEARCHING

    def blame(self) -> None:
        """Leave the row of the suspect out from now on."""
        self._suspects[0] = replace(self._suspects[0], blamed=True)


def _apart(tables: tuple[str, ...], partition: int, first: int, end: int) -> list[Suspect]:
    """Suspect `samples` by itself, and halves of the other tables."""
    middle = 1 if tables[0] == LEADER else (len(tables) + 1) // 2
    parts = [part for part in (tables[:middle], tables[middle:]) if part]
    return [Suspect(part, partition, first, end) for part in parts]


def _suspect(plain: Any) -> Suspect | None:
    match plain:
        case [[*tables], int(partition), int(first), int(end), int(deaths), bool(blamed)]:
            if tables and all(isinstance(name, str) for name in tables):
                return Suspect(tuple(tables), partition, first, end, deaths, blamed)
    return None
