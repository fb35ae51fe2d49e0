"""What an operator is told about a status: each problem when it begins, seldom while it lasts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from zenlake.supervise.parts import State
from zenlake.supervise.screen import forecast
from zenlake.supervise.status import SOON, LakeReport, Status
from zenlake.supervise.throttle import Line, MessageThrottle

__all__ = ["StatusAlerts"]

JUMP: Final = 5.0
"""A clock that moves by so many seconds more or less than time passed was set."""

CLOCKS: Final = "compare the clocks of this machine and its publishers (NTP)"


class StatusAlerts:
    """Compares each status with the one before it."""

    def __init__(self, throttle: MessageThrottle) -> None:
        """`throttle` remembers what was told."""
        self._throttle = throttle
        self._seen: dict[str, int] = {}
        #: The views and alerts that did not go on.
        self._queries: set[str] = set()
        self._clock: float | None = None
        self._lines: list[Line] = []
        self._at = 0.0

    def check(self, status: Status, report: Mapping[str, Any], clock: float) -> list[Line]:
        """The lines to print now.

        `report` is the router's; `clock` how far the wall clock is ahead of a steady one.
        """
        self._lines = []
        self._at = status.at
        self._check_clocks(report, clock)
        self._check_journal(status)
        if status.lake is not None:
            self._check_lake(status.lake)
        for trouble in status.troubles:
            self._tell(f"trouble {trouble}", trouble)
        return self._lines

    def _check_clocks(self, report: Mapping[str, Any], clock: float) -> None:
        before, self._clock = self._clock, clock
        if before is not None and abs(clock - before) > JUMP:
            direction = "ahead" if clock > before else "back"
            self._tell(
                f"clock {direction}",
                f"the clock of this machine was set {direction} by {abs(clock - before):.0f} s; "
                "times of samples before and after do not compare",
            )
        if self._grown("future", int(report.get("future_replaced", 0))):
            self._tell(
                "future",
                "samples came with a time ahead of this machine's clock, and were given its own; "
                + CLOCKS,
            )
        if self._grown("future dropped", int(report.get("future_dropped", 0))):
            self._tell(
                "future dropped",
                f"samples were dropped: their time is ahead of this machine's clock; {CLOCKS}",
            )

    def _check_journal(self, status: Status) -> None:
        journal = status.journal
        if self._grown("dropped", journal.dropped):
            self._tell("dropped", f"{journal.dropped:,} samples could not be kept so far")
        state = {part.name: part.state for part in status.parts}
        if state.get("recorder") == State.UP:  # else nobody knows how its disk is
            self._lasting(
                "full",
                journal.disk_full,
                f"the disk of {status.data} is full: publishers are held up until there is room; "
                "delete something there, or give the journal less with --retain-size",
                "the disk has room again, and recording goes on",
            )
        if state.get("router") == State.UP:
            self._lasting(
                "recorder",
                bool(journal.failure),
                f"nothing is recorded: {journal.failure}; it is tried again",
                "recording goes on",
            )
        full_in = status.disk.full_in
        if full_in is not None and full_in < SOON and not journal.disk_full:
            self._tell(
                "soon",
                f"the disk of {status.data} is {forecast(status)}; keep less (--retain-size, "
                "--retain-age, `retain` in lake.json5), or make room",
            )

    def _check_lake(self, lake: LakeReport) -> None:
        if self._grown("quarantine", lake.quarantine):
            self._tell(
                "quarantine",
                f"samples do not fit their tables: {lake.quarantine:,} are in quarantine; ask "
                '`zenlake sql "SELECT reason, count(*) FROM quarantine GROUP BY reason"`',
            )
        if self._grown("lost", lake.lost):
            self._tell("lost", f"{lake.lost:,} rows left the journal before the lake had read them")
        self._lasting(
            "retrying",
            lake.state == "retrying",
            f"the lake does not get on: {lake.error}; it is tried again",
            "the lake goes on",
        )
        self._lasting(
            "connected",
            lake.connected is False and bool(lake.not_connected),
            f"the lake is not connected to its router: {lake.not_connected}; it is tried again",
            "the lake is connected to its router",
        )
        for name in sorted(self._queries | lake.stopped_queries.keys()):
            why = lake.stopped_queries.get(name, "")
            over = f"the lake: '{name}' is no longer stopped"
            self._lasting(f"query {name}", bool(why), f"the lake: {why}", over)
        self._queries = set(lake.stopped_queries)
        for problem in lake.problems:
            if problem not in lake.stopped_queries.values():
                self._tell(f"problem {problem}", f"the lake: {problem}")

    def _tell(self, subject: str, words: str, *, bad: bool = True) -> None:
        line = self._throttle.admit(self._at, subject, words, bad=bad)
        if line is not None:
            self._lines.append(line)

    def _grown(self, name: str, value: int) -> bool:
        before = self._seen.get(name, 0)
        self._seen[name] = value
        return value > before

    def _lasting(self, subject: str, so: bool, words: str, over: str) -> None:
        if so:
            self._tell(subject, words)
        elif self._throttle.reset(subject):
            self._throttle.reset(f"{subject} over")
            self._tell(f"{subject} over", over, bad=False)
