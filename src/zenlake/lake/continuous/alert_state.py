"""When an alert is raised and when it is cleared, from what was heard and how time went on.

    state = AlertState(hold=10_000_000)
    state.heard(0, "robot/1", True, {"battery": 12})        # pending
    state.passed(10_000_000)                                # [raised at 10 s]
    state.heard(12_000_000, "robot/1", False, {})           # [cleared at 12 s]

Times are microseconds. A condition holds for a subject from the first sample that it is true of to
the first that it is not true of; if it has held for `hold`, it is raised at exactly that moment,
whenever it is looked at. So history and the present tell the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, final

from zenlake.errors import LocalError

__all__ = ["MOST", "AlertState", "Change"]

MOST: Final = 10_000
"""Subjects that a condition may hold for at once."""


@dataclass(frozen=True, slots=True)
class Change:
    """An alert that was raised or cleared."""

    state: Literal["raised", "cleared"]
    subject: str
    time: int
    since: int
    """When the condition began to hold."""
    row: Mapping[str, Any]
    """What was heard: when it began to hold, or what ended it."""


@dataclass(slots=True)
class _Held:
    since: int
    at: int
    raised: bool
    row: Mapping[str, Any]


@final
class AlertState:
    """The subjects that a condition holds for."""

    def __init__(self, hold: int, late: int = 60_000_000) -> None:
        """`late`: how long it is remembered when a subject was cleared, for news that come late."""
        self._hold = hold
        self._late = late
        self._held: dict[str, _Held] = {}
        self._cleared: dict[str, int] = {}

    @property
    def raised(self) -> int:
        """How many are raised."""
        return sum(one.raised for one in self._held.values())

    @property
    def pending(self) -> int:
        """How many may be raised soon."""
        return len(self._held) - self.raised

    def heard(self, time: int, subject: str, holds: bool, row: Mapping[str, Any]) -> list[Change]:
        """The condition was looked at for a subject; what is older than that was known counts for
        nothing."""
        held = self._held.get(subject)
        if held is None:
            if not holds or time <= self._cleared.get(subject, time - 1):
                return []
            if len(self._held) >= MOST:
                raise LocalError(
                    f"the condition holds for more than {MOST:,} subjects at once; ask for fewer"
                )
            self._held[subject] = _Held(time, time, False, dict(row))
            return self._due(subject, time)
        if time < held.at:
            return []
        changes = self._due(subject, time)
        held.at = time
        if not holds:
            del self._held[subject]
            self._cleared[subject] = time
            if held.raised:
                changes.append(Change("cleared", subject, time, held.since, dict(row)))
        return changes

    def passed(self, now: int) -> list[Change]:
        """Nothing else was heard up to this moment."""
        changes = [change for subject in list(self._held) for change in self._due(subject, now)]
        gone = [one for one, at in self._cleared.items() if at < now - self._late]
        for subject in gone:
            del self._cleared[subject]
        return sorted(changes, key=lambda change: (change.time, change.subject))

    def _due(self, subject: str, now: int) -> list[Change]:
        held = self._held[subject]
        when = held.since + self._hold
        if held.raised or now < when:
            return []
        held.raised = True
        return [Change("raised", subject, when, held.since, held.row)]

    # --- kept between two lives -----------------------------------------------------------------

    def plain(self) -> dict[str, Any]:
        """As JSON can write it; the same as long as nothing began, was raised or ended."""
        return {
            "held": {
                subject: {"since": one.since, "raised": one.raised, "row": one.row}
                for subject, one in self._held.items()
            },
            "cleared": dict(self._cleared),
        }

    def load(self, plain: Mapping[str, Any]) -> None:
        """Go on from what `plain` wrote."""
        self._held = {
            subject: _Held(one["since"], one["since"], one["raised"], one["row"])
            for subject, one in plain["held"].items()
        }
        self._cleared = dict(plain["cleared"])
