"""The account of one source: which of its numbers came, and which did not.

A source numbers its samples one after the other. What comes is entered in the order it came:

    0 1 2 3   7 8 9        a gap, 4..6
    5                      came late: the gap is 4, 6 now
    4 (healed)             asked for again and got: the gap is 6
    8                      a duplicate
    "I used 11 last"       a heartbeat: 10, 11 are missing too, though nothing came after them

Numbers of Zenoh's publishers have 32 bits and begin again at zero; they are unrolled here, so that
4294967295 and 0 are neighbours. A source that starts over (its own clock says later, its number
is one it had before) begins a new *run*: what the old one did not send can no longer come.

Entries are made for stretches of consecutive numbers, so the cost is in the gaps and not in the
rows; and a stretch cut in two gives the same account.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from itertools import pairwise
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

__all__ = ["Account", "Gap", "Integers"]

Integers: TypeAlias = npt.NDArray[np.int64]
Flags: TypeAlias = npt.NDArray[np.bool_]
Gap: TypeAlias = tuple[int, int]
"""The first and the last number that did not come."""

MOST_GAPS: Final = 10_000
"""How many gaps of one source are listed; those before them are only counted."""

CLOSE: Final = 64
"""How far samples overtake each other on a network."""

NO_TIME: Final = -(1 << 63)


class Account:
    """What came of one source, in one partition."""

    __slots__ = (
        "based",
        "begun",
        "bits",
        "claimed",
        "duplicates",
        "first",
        "gaps",
        "healed",
        "key",
        "lost",
        "next",
        "reordered",
        "restarts",
        "rows",
        "runs",
        "since",
        "time",
        "told",
        "unlisted",
    )

    def __init__(self, key: str, bits: int) -> None:
        """`key`: where it was first heard; `bits`: how long its numbers are."""
        self.key = key
        self.bits = bits
        #: Rows in all, whatever they were.
        self.rows = 0
        #: The first number of this run, unrolled, and the one after the highest.
        self.first = 0
        self.next = 0
        #: The numbers of this run that did not come.
        self.gaps: list[Gap] = []
        #: When each gap was noticed: the time of the sample after it.
        self.since: list[int] = []
        #: How many numbers are missing in gaps too many to list.
        self.unlisted = 0
        self.duplicates = 0
        self.reordered = 0
        self.healed = 0
        #: How often the source began again; the numbers of earlier runs, and those lost in them.
        self.restarts = 0
        self.runs = 0
        self.lost = 0
        #: The time of the first number, and the latest time in this run.
        self.begun = NO_TIME
        self.time = NO_TIME
        #: The one after the number of this run that a heartbeat told last; when that was.
        self.claimed = 0
        self.told = NO_TIME
        #: Whether this run began with a heartbeat, and not with a sample.
        self.based = False

    @property
    def end(self) -> int:
        """The one after the highest number of this run, whether it came or was only told of."""
        return max(self.next, self.claimed)

    @property
    def open_gaps(self) -> list[Gap]:
        """The numbers of this run that did not come, those that nothing followed too."""
        announced = self.announced_gap
        return self.gaps if announced is None else [*self.gaps, announced]

    @property
    def announced_gap(self) -> Gap | None:
        """The numbers of this run that nothing followed, and only a heartbeat tells of."""
        return (self.next, self.claimed - 1) if self.claimed > self.next else None

    @property
    def expected(self) -> int:
        """How many samples the source sent, as far as its numbers tell."""
        return self.runs + self.end - self.first

    @property
    def missing(self) -> int:
        """How many of them did not come."""
        return self.lost + self.unlisted + sum([last - first + 1 for first, last in self.open_gaps])

    @property
    def received(self) -> int:
        """How many of them came, each counted once."""
        return self.expected - self.missing

    def lacks(self, number: int) -> bool:
        """Whether a number, as its source tells it, lies in a gap."""
        return self._gap_of(number) >= 0 or self.next <= self._unrolled(number) < self.claimed

    def has(self, number: int) -> bool:
        """Whether a number of this run, as its source tells it, came."""
        return self.first <= self._unrolled(number) < self.next and self._gap_of(number) < 0

    def lacks_all(self, first: int, last: int) -> bool:
        """Whether the unrolled numbers from `first` to `last` lie in gaps, one or neighbours."""
        at = max(bisect_right(self.gaps, (first, self.next)) - 1, 0)
        for start, end in self.gaps[at:]:
            if start > first or first > last:
                break
            first = max(first, end + 1)
        return first > last

    def sent_before(self, number: int) -> int | None:
        """A time for a number that lies in a gap: before what followed it, in order.

        Such a sample comes when it is asked for; that says nothing about when it was sent.
        """
        unrolled = self._unrolled(number)
        if self.next <= unrolled < self.claimed:
            # Nothing followed it but a heartbeat; it is later than all that came.
            return (
                max(self.told, self.time + self.claimed - self.next + 1) - self.claimed + unrolled
            )
        at = self._gap_of(number)
        if at < 0 or self.since[at] == NO_TIME:
            return None
        return max(self.since[at] - (self.gaps[at][1] + 1 - unrolled), NO_TIME + 1)

    def _gap_of(self, number: int) -> int:
        """Which gap a number lies in, as its source tells it; -1 if in none."""
        unrolled = self._unrolled(number)
        at = bisect_right(self.gaps, (unrolled, self.next)) - 1
        return at if at >= 0 and self.gaps[at][1] >= unrolled else -1

    # -------------------------------------------------------------------------------- entries

    def enter(
        self,
        numbers: Integers,
        times: Integers,
        own_clock: Flags | None = None,
        healed: Flags | None = None,
    ) -> list[Gap]:
        """Enter rows in the order they came; gives the gaps that they opened.

        `own_clock`: which times are the source's own; `healed`: which rows were asked for again.
        """
        count = len(numbers)
        steps = np.flatnonzero(np.diff(numbers) != 1) + 1
        if not len(steps) and (healed is None or not healed[0]) and self._follows(int(numbers[0])):
            # Nearly always: the next ones, all of them, in order.
            self.rows += count
            self.next += count
            self.time = max(self.time, int(times.max()))
            return []
        if healed is not None:
            steps = np.union1d(steps, np.flatnonzero(np.diff(healed)) + 1)
        opened: list[Gap] = []
        borders = [0, *steps.tolist(), count]
        for start, end in pairwise(borders):
            again = healed is not None and bool(healed[start])
            self._stretch(
                int(numbers[start]),
                times[start:end],
                None if own_clock is None else own_clock[start:end],
                again,
                opened,
            )
        return opened

    def is_news(self, number: int) -> bool:
        """Whether a heartbeat with this number would change anything.

        Anybody can say that numbers were used, and only the next word of the source puts it
        right; one that does not know of what came already is old, and is not believed.
        """
        if not (self.rows or self.based):
            return True
        claimed = self._unrolled(number) + 1
        return claimed >= self.next and claimed != self.end

    def heartbeat(self, number: int, time: int) -> list[Gap]:
        """Its source says which number it used last; gives the gap which that opens.

        Where nothing came before, this is where the account begins: what was sent earlier was
        sent to others.
        """
        if not self.is_news(number):
            return []
        end = self.end
        self.told = time
        self.claimed = self._unrolled(number) + 1
        if self.rows or self.based:
            return [(end, self.claimed - 1)] if self.claimed > end else []
        self.first = self.next = self.claimed
        self.based = True
        return []

    def _follows(self, number: int) -> bool:
        mask = (1 << self.bits) - 1
        return self.rows > 0 and number == self.next & mask

    def _unrolled(self, number: int) -> int:
        """The number nearest to the next one whose low bits are these."""
        if not (self.rows or self.based):
            return number
        size = 1 << self.bits
        return self.next + (number - self.next + (size >> 1)) % size - (size >> 1)

    def _stretch(
        self,
        number: int,
        times: Integers,
        own_clock: Flags | None,
        again: bool,
        opened: list[Gap],
    ) -> None:
        """Enter consecutive numbers from `number` on, as many as there are times."""
        first = self._unrolled(number)
        after = first + len(times)
        if self.based and self.next == self.first and first + CLOSE < self.first and not again:
            # All that is known are numbers told before the source began again, if it told them.
            self.claimed = self.next
            self._begin_again()
            first, after = number, number + len(times)
        elif self.rows and first < self.next and not again:
            known = min(after, self.next) - first
            begun = self._beginning(number, first, times[:known], own_clock)
            if begun >= 0:
                if begun:
                    self._enter_range(first, first + begun, int(times[0]), again, opened)
                    self.time = max(self.time, int(times[:begun].max()))
                self._begin_again()
                first = (number + begun) & ((1 << self.bits) - 1)
                after = first + len(times) - begun
                times = times[begun:]
        self._enter_range(first, after, int(times[0]), again, opened)
        self.time = max(self.time, int(times.max()))

    def _beginning(self, number: int, first: int, times: Integers, own_clock: Flags | None) -> int:
        """Which row of a stretch of old numbers begins a new run, or -1.

        A publisher's clock and numbers grow together: a number that came already, at a time that
        did not, is not that sample again. Where others tell the time, only a new zero is
        believed, and only after a while: it may be the first sample on a second way.
        """
        before = np.maximum.accumulate(np.concatenate(([self.time], times[:-1])))
        believed = times > before
        zero = believed[0]
        believed &= False if own_clock is None else own_clock[: len(times)]
        if number == 0 and self.next - self.first >= CLOSE:
            believed[0] = zero
        for row in np.flatnonzero(believed).tolist():
            if self._came(first + row):
                return int(row)
        return -1

    def _came(self, number: int) -> bool:
        """Whether an old number came already, or is too old to come so late."""
        if number < self.first:
            return number + CLOSE < self.first
        at = bisect_right(self.gaps, (number, self.next)) - 1
        return at < 0 or self.gaps[at][1] < number

    def _begin_again(self) -> None:
        self.runs = self.expected
        self.lost = self.missing
        self.gaps = []
        self.since = []
        self.unlisted = 0
        self.restarts += 1
        self.first = self.next = self.claimed = 0
        self.time = self.told = NO_TIME
        self.based = False

    def _enter_range(
        self, first: int, after: int, time: int, again: bool, opened: list[Gap]
    ) -> None:
        """Enter the numbers from `first` up to and without `after`; `time` is that of `first`."""
        fresh = self.next == self.first
        self.rows += after - first
        if fresh:
            self.begun = time
        if fresh and not (self.based and first >= self.first):
            self.first, self.next = first, after
            self.healed += after - first if again else 0
            if self.claimed > after:
                # It was under way when the heartbeat came, and so were those that follow it.
                opened.append((after, self.claimed - 1))
            return
        if first < self.first:
            # Older than the first one heard: it was sent, so what lies between was too.
            below = min(after, self.first)
            self._count_late(below - first, again)
            if below < self.first:
                self._open((below, self.first - 1), self.begun, opened)
            self.first, first = first, below
            self.begun = min(self.begun, time)
            if first == after:
                return
        if first < self.next:
            known = min(after, self.next)
            filled = self._fill(first, known)
            self._count_late(filled, again)
            self.duplicates += known - first - filled
            first = known
            if first == after:
                return
        if first > self.next:
            self._open((self.next, first - 1), time, opened)
        if again:
            self.healed += after - first
        self.next = after

    def _count_late(self, count: int, again: bool) -> None:
        if again:
            self.healed += count
        else:
            self.reordered += count

    def _open(self, gap: Gap, since: int, opened: list[Gap]) -> None:
        opened.append(gap)
        at = bisect_left(self.gaps, gap)
        self.gaps.insert(at, gap)
        self.since.insert(at, since)
        if len(self.gaps) > MOST_GAPS:
            first, last = self.gaps.pop(0)
            del self.since[0]
            self.unlisted += last - first + 1

    def _fill(self, first: int, after: int) -> int:
        """Take numbers out of the gaps; tells how many were in them."""
        gaps = self.gaps
        at = max(bisect_left(gaps, (first, first)) - 1, 0)
        filled = 0
        while at < len(gaps) and gaps[at][0] < after:
            start, end = gaps[at]
            if end < first:
                at += 1
                continue
            rest: list[Gap] = []
            if start < first:
                rest.append((start, first - 1))
            if end >= after:
                rest.append((after, end))
            filled += min(end + 1, after) - max(start, first)
            gaps[at : at + 1] = rest
            self.since[at : at + 1] = self.since[at : at + 1] * len(rest)
            at += len(rest)
        return filled

    # ---------------------------------------------------------------------------------- state

    def state(self) -> dict[str, object]:
        """All of it, for JSON."""
        return {name: getattr(self, name) for name in self.__slots__}

    @classmethod
    def from_state(cls, state: dict[str, object]) -> Account:
        """The account that `state` was taken from."""
        account = cls("", 0)
        if "since" not in state:
            # Put aside before times of gaps were kept.
            gaps = state["gaps"]
            assert isinstance(gaps, list)
            state = state | {"since": [NO_TIME] * len(gaps), "begun": NO_TIME}
        if "claimed" not in state:
            # Put aside before heartbeats were heard.
            state = state | {"claimed": 0, "told": NO_TIME, "based": False}
        for name in cls.__slots__:
            setattr(account, name, state[name])
        account.gaps = [(first, last) for first, last in account.gaps]
        return account

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Account) and self.state() == other.state()

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"<Account {self.key} {self.received}/{self.expected}>"
