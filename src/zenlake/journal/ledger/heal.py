"""Closing gaps: asking publishers for what did not come.

An advanced publisher keeps its newest samples and gives them again in reply to queries for their
numbers. When a gap opens, its source is asked, a moment later (what is only late comes by
itself), not too often, and not forever:

    opened ─ 0.2 s ─► ask ─ still open, 1 s ─► ask ─ still open, 5 s ─► ask ─ given up

All gaps of a source are asked for at once. `HealingPlan` decides; `Healer` asks.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from zenlake.clock import ZenohId
from zenlake.errors import ZError
from zenlake.journal.ledger.account import Gap
from zenlake.journal.ledger.ledger import Opened
from zenlake.keys import is_wild
from zenlake.node.advanced_keys import SERIALS, SourceId, past_of_source, serials
from zenlake.values import ConsolidationMode, QueryTarget, ReplyKeyExpr

if TYPE_CHECKING:
    from zenlake.api.session import Session
    from zenlake.node.sample import Sample

__all__ = ["Healer", "HealingPlan", "Patient"]

PAUSES: Final = (0.2, 1.0, 5.0)
"""Seconds before the first query, the second, the third."""

MOST_PATIENTS: Final = 10_000
"""How many sources may wait to be asked."""

MOST_NUMBERS: Final = 100_000
"""How many numbers are asked for at once."""

RATE: Final = 20.0
"""How many queries a second at most."""

REPLY_TIME: Final = 5.0
"""How long a reply may take, in seconds."""

log = logging.getLogger("zenlake.journal")


@dataclass(slots=True)
class Patient:
    """A source with gaps."""

    partition: int
    source: str
    key: str
    due: float
    attempts: int = 0


class HealingPlan:
    """Which sources to ask for missing numbers, and when."""

    def __init__(self) -> None:
        """No source is to be asked."""
        self._patients: dict[tuple[int, str], Patient] = {}
        #: Numbers below the first were asked for often enough, and so were those told up to the
        #: second: what is told need not be true, and says nothing of gaps to come.
        self._given_up: dict[tuple[int, str], tuple[int, int]] = {}
        #: Gaps that were not asked for, because too many sources were waiting.
        self.refused = 0
        #: Sources that were asked in vain.
        self.abandoned = 0

    def __len__(self) -> int:
        return len(self._patients)

    def opened(self, gap: Opened, now: float) -> None:
        """A gap was noticed; sources that are no Zenoh entities keep no past."""
        if gap.source.startswith("ros2:") or is_wild(gap.key):
            return
        name = (gap.partition, gap.source)
        patient = self._patients.get(name)
        if patient is not None:
            # It is worth another query; but no sooner than planned.
            patient.attempts = min(patient.attempts, 1)
        elif len(self._patients) < MOST_PATIENTS:
            self._patients[name] = Patient(gap.partition, gap.source, gap.key, now + PAUSES[0])
        else:
            self.refused += 1

    def next(self) -> Patient | None:
        """Who is to be asked first."""
        return min(self._patients.values(), key=lambda patient: patient.due, default=None)

    def wanted(self, patient: Patient, gaps: list[Gap], announced: Gap | None = None) -> Gap | None:
        """Which numbers to ask for; None when there are none worth asking for.

        `gaps` are proved by what came after them. What is only `announced` is asked for with them
        as far as there is room, and alone when there are none.
        """
        floor, given_up = self._given_up.get((patient.partition, patient.source), (0, -1))
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
        self, patient: Patient, gaps: list[Gap], now: float, announced: Gap | None = None
    ) -> None:
        """What is still missing after a reply."""
        name = (patient.partition, patient.source)
        wanted = self.wanted(patient, gaps, announced)
        if wanted is None:
            del self._patients[name]
            return
        patient.attempts += 1
        if patient.attempts < len(PAUSES):
            patient.due = now + PAUSES[patient.attempts]
            return
        self.abandoned += 1
        floor, given_up = self._given_up.pop(name, (0, -1))
        if len(self._given_up) >= MOST_PATIENTS:
            del self._given_up[next(iter(self._given_up))]
        if gaps:
            floor = max(floor, gaps[-1][1] + 1)
        if announced is not None and wanted[1] == announced[1]:
            given_up = announced[1]
        self._given_up[name] = floor, given_up
        if self.wanted(patient, gaps, announced) is None:
            del self._patients[name]
        else:
            # There was no room for what is told.
            patient.attempts = 0
            patient.due = now + PAUSES[0]


class Healer:
    """Asks publishers for what did not come, on a thread of its own."""

    def __init__(
        self,
        session: Session,
        gaps_of: Callable[[int, str], tuple[list[Gap], Gap | None]],
        heal: Callable[[Patient, list[Sample]], None],
    ) -> None:
        """`gaps_of`: the gaps of a source in a partition, and the one that is only told.

        `heal`: what to do with replies.
        """
        self._session = session
        self._gaps_of = gaps_of
        self._heal = heal
        self._plan = HealingPlan()
        self._wake = threading.Condition()
        self._ended = False
        self.queries = 0
        self._thread = threading.Thread(target=self._run, name="zenlake healer", daemon=True)
        self._thread.start()

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

    def close(self) -> None:
        """Ask no more."""
        with self._wake:
            self._ended = True
            self._wake.notify()
        self._thread.join()

    def _run(self) -> None:
        while True:
            with self._wake:
                patient = self._plan.next()
                if self._ended:
                    return
                wait = None if patient is None else patient.due - time.monotonic()
                if wait is None or wait > 0:
                    self._wake.wait(wait)
                    continue
                assert patient is not None
                gaps, announced = self._gaps_of(patient.partition, patient.source)
                wanted = self._plan.wanted(patient, gaps, announced)
                if wanted is None:
                    self._plan.replied(patient, gaps, time.monotonic(), announced)
                    continue
            try:
                self._ask(patient, wanted)
            except ZError as error:
                if self._session.is_closed():
                    return
                log.warning("healing %s of %s: %s", wanted, patient.source, error)
            with self._wake:
                gaps, announced = self._gaps_of(patient.partition, patient.source)
                self._plan.replied(patient, gaps, time.monotonic(), announced)
                if not self._ended:
                    self._wake.wait(1 / RATE)

    def _ask(self, patient: Patient, wanted: Gap) -> None:
        zid, _, eid = patient.source.rpartition(":")
        source = SourceId(bytes(ZenohId.parse(zid)), int(eid))
        first, last = wanted
        numbers = serials(first % SERIALS, last % SERIALS)
        self.queries += 1
        replies = self._session.get(
            f"{past_of_source(patient.key, source)}?{numbers}",
            target=QueryTarget.ALL,
            consolidation=ConsolidationMode.NONE,
            accept_replies=ReplyKeyExpr.ANY,
            timeout=REPLY_TIME,
        )
        samples: list[Sample] = []
        for reply in replies:
            sample = reply.ok
            if sample is None or len(samples) >= MOST_NUMBERS:
                continue
            info = sample.source_info
            if info is None:
                continue
            if bytes(info.source_id.zid) == source.zid and info.source_id.eid == source.eid:
                samples.append(sample)
        if samples:
            self._heal(patient, samples)
