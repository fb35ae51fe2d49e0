"""Closing gaps: asking publishers for what did not come.

An advanced publisher keeps its newest samples and gives them again in reply to queries for their
numbers. When a gap opens, its source is asked, a moment later (what is only late comes by
itself), not too often, and not forever (`cache_queries`). All gaps of a source are asked for at
once. `HealingPlan` decides; `Healer` asks.
"""

from __future__ import annotations

import logging
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from zenlake.clock import ZenohId
from zenlake.errors import ZError
from zenlake.journal.ledger.account import Gap
from zenlake.journal.ledger.cache_queries import MOST_WAITING, CacheAsker, CacheQuery
from zenlake.journal.ledger.ledger import Opened
from zenlake.keys import is_wild
from zenlake.node.advanced_keys import SERIALS, SourceId, past_of_source, serials

if TYPE_CHECKING:
    from zenlake.api.session import Session
    from zenlake.node.sample import Sample

__all__ = ["GapQuery", "Healer", "HealingPlan"]

LATE: Final = 0.2
"""Seconds in which what is only late comes by itself."""

MOST_NUMBERS: Final = 100_000
"""How many numbers are asked for at once."""

RATE: Final = 20.0
"""How many queries a second at most."""

log = logging.getLogger("zenlake.journal")


@dataclass(slots=True, kw_only=True)
class GapQuery(CacheQuery):
    """A query for what is missing of a source."""

    partition: int
    source: str
    key: str


class HealingPlan:
    """Which sources to ask for missing numbers, and when."""

    def __init__(self) -> None:
        """No source is to be asked."""
        self._waiting: dict[tuple[int, str], GapQuery] = {}
        #: Numbers below the first were asked for often enough, and so were those told up to the
        #: second: what is told need not be true, and says nothing of gaps to come.
        #: Ordered, for the oldest gives way: a dict would look for it among all that were deleted.
        self._given_up: OrderedDict[tuple[int, str], tuple[int, int]] = OrderedDict()
        #: Gaps that were not asked for, because too many sources were waiting.
        self.refused = 0
        #: Sources that were asked in vain.
        self.abandoned = 0

    def __len__(self) -> int:
        return len(self._waiting)

    def opened(self, gap: Opened, now: float) -> None:
        """A gap was noticed; sources that are no Zenoh entities keep no past."""
        if gap.source.startswith("ros2:") or is_wild(gap.key):
            return
        name = (gap.partition, gap.source)
        query = self._waiting.get(name)
        if query is not None:
            # It is worth another query; but no sooner than planned.
            query.attempts = min(query.attempts, 1)
        elif len(self._waiting) < MOST_WAITING:
            self._waiting[name] = GapQuery(
                due=now + LATE, partition=gap.partition, source=gap.source, key=gap.key
            )
        else:
            self.refused += 1

    def next(self) -> GapQuery | None:
        """The query to make first."""
        return min(self._waiting.values(), key=lambda query: query.due, default=None)

    def wanted(self, query: GapQuery, gaps: list[Gap], announced: Gap | None = None) -> Gap | None:
        """Which numbers to ask for; None when there are none worth asking for.

        `gaps` are proved by what came after them. What is only `announced` is asked for with them
        as far as there is room, and alone when there are none.
        """
        floor, given_up = self._given_up.get((query.partition, query.source), (0, -1))
        wanted = [(first, last) for first, last in gaps if last >= floor]
        if announced is not None and announced[1] == given_up:
            announced = None
        # The newest: they are what a cache still has.
        if wanted:
            last = wanted[-1][1]
            first = max(wanted[0][0], last - MOST_NUMBERS + 1)
            return first, last if announced is None else min(announced[1], first + MOST_NUMBERS - 1)
        return (
            None
            if announced is None
            else (max(announced[0], announced[1] - MOST_NUMBERS + 1), announced[1])
        )

    def replied(
        self, query: GapQuery, gaps: list[Gap], now: float, announced: Gap | None = None
    ) -> None:
        """What is still missing after a reply."""
        name = (query.partition, query.source)
        wanted = self.wanted(query, gaps, announced)
        if wanted is None:
            del self._waiting[name]
            return
        if query.again(now):
            return
        self.abandoned += 1
        floor, given_up = self._given_up.pop(name, (0, -1))
        if len(self._given_up) >= MOST_WAITING:
            self._given_up.popitem(last=False)
        if gaps:
            floor = max(floor, gaps[-1][1] + 1)
        if announced is not None and wanted[1] == announced[1]:
            given_up = announced[1]
        self._given_up[name] = floor, given_up
        if self.wanted(query, gaps, announced) is None:
            del self._waiting[name]
        else:
            # There was no room for what is told.
            query.attempts = 0
            query.due = now + LATE


class Healer(CacheAsker):
    """Asks publishers for what did not come, on a thread of its own."""

    def __init__(
        self,
        session: Session,
        gaps_of: Callable[[int, str], tuple[list[Gap], Gap | None]],
        heal: Callable[[GapQuery, list[Sample]], None],
    ) -> None:
        """`gaps_of`: the gaps of a source in a partition, and the one that is only announced.

        `heal`: what to do with replies.
        """
        super().__init__(session, "zenlake healer")
        self._gaps_of = gaps_of
        self._heal = heal
        self._plan = HealingPlan()
        self.start()

    def opened(self, gaps: list[Opened]) -> None:
        """Gaps were noticed."""
        with self._wake:
            for gap in gaps:
                self._plan.opened(gap, time.monotonic())
            self._wake.notify()

    @property
    def counts(self) -> dict[str, int]:
        """How busy it is."""
        plan = self._plan
        return {
            "questions": self.queries,
            "waiting": len(plan),
            "abandoned": plan.abandoned,
            "refused": plan.refused,
        }

    def due(self) -> float | None:
        """When the first source is to be asked."""
        query = self._plan.next()
        return None if query is None else query.due

    def ask(self) -> None:
        """Ask the first source for what is missing of it now."""
        with self._wake:
            query = self._plan.next()
            if query is None:
                return
            gaps, announced = self._gaps_of(query.partition, query.source)
            wanted = self._plan.wanted(query, gaps, announced)
            if wanted is None:
                self._plan.replied(query, gaps, time.monotonic(), announced)
                return
        try:
            samples = self._missing(query, wanted)
            if samples:
                self._heal(query, samples)
        except ZError as error:
            if self._session.is_closed():
                return
            log.warning("healing %s of %s: %s", wanted, query.source, error)
        with self._wake:
            gaps, announced = self._gaps_of(query.partition, query.source)
            self._plan.replied(query, gaps, time.monotonic(), announced)
            if not self._ended:
                self._wake.wait(1 / RATE)

    def _missing(self, query: GapQuery, wanted: Gap) -> list[Sample]:
        zid, _, eid = query.source.rpartition(":")
        source = SourceId(bytes(ZenohId.parse(zid)), int(eid))
        first, last = wanted
        numbers = serials(first % SERIALS, last % SERIALS)
        samples: list[Sample] = []
        for sample in self.replies(f"{past_of_source(query.key, source)}?{numbers}"):
            info = sample.source_info
            if info is None or len(samples) >= MOST_NUMBERS:
                continue
            if bytes(info.source_id.zid) == source.zid and info.source_id.eid == source.eid:
                samples.append(sample)
        return samples
