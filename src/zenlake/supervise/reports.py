"""How everything is, put together: what the parts report, what is observed, and since when."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from zenlake import __version__
from zenlake.lake.ingest.freshness import Freshness
from zenlake.lake.model.status import LakeStatus
from zenlake.supervise.child import Child
from zenlake.supervise.parts import State, SupervisedPart
from zenlake.supervise.plan import LAKE, RECORDER, ROUTER, Plan
from zenlake.supervise.resource_monitor import ResourceMonitor
from zenlake.supervise.status import JournalReport, LakeReport, PartStatus, Room, Status
from zenlake.supervise.throttle import Line

#: Seconds between two values of a counter, at least, of which a rate is made.
RATE_EVERY: Final = 0.5


@dataclass(slots=True)
class _Rate:
    """A count that starts again at zero now and then, as a rate."""

    value: int = 0
    at: float = 0.0
    rate: float = 0.0

    def take(self, now: float, value: int) -> None:
        if now - self.at >= RATE_EVERY:
            grown = value - self.value if value >= self.value else value
            self.rate = grown / (now - self.at) if self.at else 0.0
            self.value, self.at = value, now


class Reports:
    """What is known of the parts, as one `Status`."""

    def __init__(
        self,
        plan: Plan,
        parts: Mapping[str, SupervisedPart],
        children: Mapping[str, Child],
        began: float,
    ) -> None:
        """`children`: the processes that run now, by part."""
        self._plan = plan
        self._parts = parts
        self._children = children
        self._began = began
        #: What a part that starts is doing.
        self.doing: dict[str, str] = {}
        #: The router's last report.
        self.report: dict[str, Any] = {}
        self.last_error = ""
        self.locators: list[str] = []
        self.http = plan.http
        #: Why `http` is nowhere, if it should be somewhere.
        self.http_failure = ""
        #: Where the router serves HTTP and the page, if it does.
        self.page = ""
        self._rows, self._bytes = _Rate(), _Rate()
        #: What the journal had and the lake had, kept here since a lake may die again and again.
        self._lateness = Freshness()

    def status(self, now: float, monitor: ResourceMonitor | None, lines: Iterable[Line]) -> Status:
        """How everything is at this moment; `lines`: what was told to people."""
        journal = self._journal(now)
        status = Status(
            version=__version__,
            pid=os.getpid(),
            data=self._plan.shown,
            at=time.time(),
            uptime=now - self._began,
            parts=self._part_statuses(now, monitor),
            locators=self.locators,
            http=self.http,
            page=self.page,
            sessions=int(self.report.get("sessions", 0)),
            drops=dict(self.report.get("drops", {})),
            journal=journal,
            troubles=self._troubles(),
            told=[str(line) for line in lines],
            last_error=self.last_error,
        )
        if monitor is not None:
            disk = monitor.disk
            status.disk = Room(disk.total, disk.free, monitor.full_in)
            journal.size = disk.journal
        if LAKE in self._parts:
            status.lake = self._lake(None if monitor is None else monitor.lake, journal.durable)
            status.lake.late_seconds = self._late(now, journal.durable, status.lake.behind)
        return status

    def _late(self, now: float, durable: int, behind: int) -> float:
        """Return how long the oldest row that the journal has and the lake lacks has waited."""
        self._lateness.seen(now, (durable,))
        return self._lateness.waits(now, (durable - behind,))

    def _part_statuses(self, now: float, monitor: ResourceMonitor | None) -> list[PartStatus]:
        statuses = []
        for name, part in self._parts.items():
            child = self._children.get(name)
            used = None if monitor is None else monitor.usage.get(name)
            statuses.append(
                PartStatus(
                    name=name,
                    state=str(part.state),
                    seconds=now - part.since,
                    pid=None if child is None else child.pid,
                    restarts=part.restarts,
                    reason=part.reason,
                    doing=self.doing.get(name, ""),
                    again_in=part.again_at - now if part.state is State.RESTING else None,
                    memory_bytes=None if used is None else used[0],
                    cpu_seconds=None if used is None else used[1],
                )
            )
            if name == ROUTER:
                statuses.append(self._recorder(part, now))
        return statuses

    def _recorder(self, router: SupervisedPart, now: float) -> PartStatus:
        """The recorder within the router, by what the router reports of it."""
        for one in self._own_journal():
            return PartStatus(
                name=RECORDER,
                state=str(one["state"]),
                seconds=now - router.since,
                restarts=int(one["restarts"]),
                reason=str(one["reason"]),
            )
        state = State.STARTING if router.state is State.UP else router.state
        return PartStatus(RECORDER, str(state), now - router.since)

    def _troubles(self) -> list[str]:
        """What is wanted beside the journal and the lake, and does not work."""
        troubles = [f"no metrics over HTTP: {self.http_failure}"] if self.http_failure else []
        troubles += map(str, self.report.get("troubles", ()))
        own = self._own_journal()
        for one in self.report.get("journals", ()):
            if one not in own and (why := _failure(one)):
                troubles.append(f"journal '{one['name']}' is not recorded: {why}")
        return troubles

    def _own_journal(self) -> list[dict[str, Any]]:
        """The report about the journal in the data folder, if there is one."""
        mine = str(self._plan.data / "journal")
        return [one for one in self.report.get("journals", ()) if one["dir"] == mine]

    def _journal(self, now: float) -> JournalReport:
        report = JournalReport(budget=self._plan.budget, retain_age=self._plan.retain_age)
        for one in self._own_journal():
            if "rows" in one:
                self._rows.take(now, int(one["rows"]))
                self._bytes.take(now, int(one["bytes"]))
                report.rows, report.bytes = int(one["rows"]), int(one["bytes"])
                report.rows_per_s, report.bytes_per_s = self._rows.rate, self._bytes.rate
                report.durable = int(one["durable"])
                report.queued_bytes = int(one["queued_bytes"])
                report.dropped = int(one["dropped"])
                report.missing, report.healed = int(one["missing"]), int(one["healed"])
                outages = one.get("outages") or {"count": 0, "last": []}
                report.outages = int(outages["count"])
                for last in outages["last"][-1:]:
                    report.last_outage = f"{last['from']} to {last['to']}"
                report.disk_full = bool(one["disk_full"])
                report.future = int(one.get("future", 0))
                report.retired = int(one.get("retired", 0))
                report.clock_ahead = float(one.get("clock_ahead", 0.0))
                if not report.disk_full:
                    report.failure = str(one.get("stuck", ""))
            else:
                report.failure = str(one["reason"]) or "it is being opened"
        return report

    def _lake(self, written: LakeStatus | None, durable: int) -> LakeReport:
        """What the lake wrote of itself; how far behind it is grows while it is away."""
        part, child, seen = self._parts[LAKE], self._children.get(LAKE), written
        if seen is None:
            return LakeReport(state=State.STARTING, behind=durable)
        behind = seen.lag
        if durable and len(seen.committed) == 1:
            behind = max(0, durable - sum(*seen.committed.values()))
        state, bus = str(part.state), None
        if part.state is State.UP:  # what one before it wrote says nothing of this process
            is_own = child is not None and seen.pid == child.pid
            state = seen.state if is_own else str(State.STARTING)
            bus = seen.bus if is_own else None
        age = max(0.0, time.time() - seen.written)
        return LakeReport(
            state=state,
            rows=seen.rows,
            behind=behind,
            late_after=seen.late,
            freshness=seen.freshness + (age if age > 3 else 0.0),
            input_rows_per_second=sum(one.input_rows_per_second for one in seen.progress),
            processed_rows_per_second=sum(one.processed_rows_per_second for one in seen.progress),
            quarantine=seen.quarantine,
            quarantined=seen.quarantined,
            lost=seen.lost,
            steps=seen.steps,
            failures=seen.failures,
            restarts=seen.restarts,
            files=seen.files,
            size=seen.bytes_total,
            error=seen.error or "",
            problems=list(seen.problems),
            stopped={table.name: table.stopped for table in seen.tables if table.stopped},
            stopped_queries=dict(seen.stopped_queries),
            flows=list(seen.flows),
            flows_not_shown=seen.flows_not_shown,
            connected=None if bus is None else bus.connected,
            connected_since=None if bus is None else bus.since,
            not_connected="" if bus is None else bus.reason,
        )


def _failure(journal: Mapping[str, Any]) -> str:
    """Why a journal of the router is not recorded; empty if it is."""
    if journal["state"] != State.UP:
        return str(journal["reason"]) or "it is being opened"
    return str(journal.get("stuck", "")) or ("the disk is full" if journal["disk_full"] else "")
