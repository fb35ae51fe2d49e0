"""What is known of a running `zenlake up`, as one value that people, scripts and metrics are told.

status.health      WELL, STARTING, or UNWELL with status.reasons
status.to_json()   what `zenlake status --json` and GET /status give
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field, fields
from datetime import timedelta
from enum import StrEnum
from typing import Any, Final

from zenlake.errors import DecodeError
from zenlake.lake.model.status import LATE_SECONDS, FlowStatus, flow_of
from zenlake.printable import json_text
from zenlake.supervise.parts import State

__all__ = ["Health", "JournalReport", "LakeReport", "PartStatus", "Room", "Status"]

SOON: Final = 86400.0
"""A disk that is full in less than this many seconds is told."""


class Health(StrEnum):
    """How the service is."""

    WELL = "well"
    STARTING = "starting"
    UNWELL = "unwell"


@dataclass(slots=True)
class PartStatus:
    """One part: a process, or the recorder within the router."""

    name: str
    state: str
    #: For how long it has been in this state.
    seconds: float = 0.0
    pid: int | None = None
    restarts: int = 0
    #: Why it ended last.
    reason: str = ""
    #: What it does while it starts, in its own words.
    doing: str = ""
    #: Seconds until it is started again, while it rests.
    again_in: float | None = None
    #: Memory of its processes, Spark's Java included.
    memory_bytes: int | None = None
    cpu_seconds: float | None = None


@dataclass(slots=True)
class JournalReport:
    """What the recorder did since the router started, and what the journal holds."""

    rows: int = 0
    bytes: int = 0
    rows_per_s: float = 0.0
    bytes_per_s: float = 0.0
    durable: int = 0
    queued_bytes: int = 0
    dropped: int = 0
    missing: int = 0
    healed: int = 0
    #: Samples whose time was too far in the future; they got the time of the recorder.
    future: int = 0
    #: Samples whose values a rule of retention took, since the recorder began.
    retired: int = 0
    #: Seconds by which the clock is ahead of what was recorded before, for which nothing is
    #: deleted that it would delete.
    clock_ahead: float = 0.0
    #: How often the recorder was away while the router ran, since the journal began.
    outages: int = 0
    #: From when to when it was last; empty if it never was.
    last_outage: str = ""
    disk_full: bool = False
    #: What its files take.
    size: int = 0
    #: What they may take; None: all of the disk.
    budget: int | None = None
    retain_age: float | None = None
    failure: str = ""


@dataclass(slots=True)
class LakeReport:
    """How far the lake is."""

    state: str = ""
    #: Rows of the table `samples`.
    rows: int = 0
    #: Rows that are durable in the journal and not yet in the tables.
    behind: int = 0
    #: How long the oldest of them has waited, in seconds, whatever the lake was doing meanwhile.
    late_seconds: float = 0.0
    #: It is not well if they wait longer than this, by its configuration.
    late_after: float = LATE_SECONDS
    #: How long ago all that was durable then was in the tables, in seconds.
    freshness: float | None = None
    #: Rows a second that come, and that a step reads, by the last step; of all journals.
    input_rows_per_second: float = 0.0
    processed_rows_per_second: float = 0.0
    quarantine: int = 0
    #: Samples that went there since the lake was started.
    quarantined: int = 0
    #: Rows that left the journal before the lake had read them.
    lost: int = 0
    steps: int = 0
    failures: int = 0
    #: Views and alerts that stood still and were started again.
    restarts: int = 0
    files: int = 0
    size: int = 0
    error: str = ""
    problems: list[str] = field(default_factory=list)
    #: Why tables do not go on, by their names; the others do.
    stopped: dict[str, str] = field(default_factory=dict)
    #: Why views and alerts do not go on, a sentence each, by their names.
    stopped_queries: dict[str, str] = field(default_factory=dict)
    #: The flows of users' pipelines.
    flows: list[FlowStatus] = field(default_factory=list)
    #: Flows beyond those that a status shows.
    flows_not_shown: int = 0
    #: Whether it is connected to its router; None: it has not said so, or is on no bus.
    connected: bool | None = None
    #: Since when it is, or is not; seconds since 1970.
    connected_since: float | None = None
    #: Why it is not; empty before the first try has ended.
    not_connected: str = ""

    @property
    def reasons(self) -> list[str]:
        """Return why the lake is not well, in words; empty if it is."""
        reasons: list[str] = []
        if self.state == "retrying":
            reasons.append(f"the lake does not get on: {self.error}")
        if self.connected is False and self.not_connected:
            reasons.append(f"the lake is not connected to its router: {self.not_connected}")
        if self.late_seconds > self.late_after:
            seconds = self.late_seconds
            waits = f"{seconds:.0f} s" if seconds < 120.0 else f"{seconds / 60:.0f} min"
            reasons.append(
                f"the lake is {waits} behind the journal: {self.behind:,} rows are not in its "
                "tables"
            )
        reasons += [f"the table '{name}' stopped: {why}" for name, why in self.stopped.items()]
        reasons += self.stopped_queries.values()
        return reasons


@dataclass(slots=True)
class Room:
    """The disk that everything is on."""

    total: int = 0
    free: int = 0
    #: Seconds until it is full; None: not in sight.
    full_in: float | None = None


@dataclass(slots=True)
class Status:
    """Everything that is told."""

    version: str
    pid: int
    data: str
    #: Seconds since 1970.
    at: float
    uptime: float
    parts: list[PartStatus] = field(default_factory=list)
    locators: list[str] = field(default_factory=list)
    http: str = ""
    #: Where the router serves HTTP and the web page.
    page: str = ""
    sessions: int = 0
    #: What the router dropped, by reason.
    drops: dict[str, int] = field(default_factory=dict)
    journal: JournalReport = field(default_factory=JournalReport)
    lake: LakeReport | None = None
    disk: Room = field(default_factory=Room)
    #: What else is wanted and does not work, in sentences: the page, a plugin, another journal.
    troubles: list[str] = field(default_factory=list)
    #: The last lines that were told, oldest first.
    told: list[str] = field(default_factory=list)
    last_error: str = ""

    @property
    def reasons(self) -> list[str]:
        """Why it is not well, in words; empty if it is."""
        reasons = [
            f"{part.name} is {part.state}" + (f": {part.reason}" if part.reason else "")
            for part in self.parts
            if part.state in (State.RESTING, State.ENDING, State.STOPPED)
            or (part.state == State.STARTING and part.restarts)
        ]
        if self.journal.failure:
            reasons.append(f"nothing is recorded: {self.journal.failure}")
        if self.journal.disk_full:
            reasons.append("the disk is full: publishers are held up until there is room")
        if self.lake is not None:
            reasons += self.lake.reasons
        return reasons + self.troubles

    @property
    def warnings(self) -> list[str]:
        """What needs a look though everything runs."""
        warnings = []
        if self.disk.full_in is not None and self.disk.full_in < SOON:
            warnings.append("the disk is full in less than a day")
        if self.lake is not None and self.lake.quarantine:
            warnings.append(f"{self.lake.quarantine:,} samples are in quarantine")
        if self.lake is not None and self.lake.lost:
            warnings.append(f"{self.lake.lost:,} rows left the journal before the lake read them")
        if self.lake is not None:
            queries = self.lake.stopped_queries.values()
            warnings += [one for one in self.lake.problems if one not in queries]
        if self.journal.outages:
            warnings.append(
                f"the recorder was away {self.journal.outages:,} times, the last time from "
                f"{self.journal.last_outage}: samples of then are not in the journal"
            )
        if self.journal.dropped:
            warnings.append(f"{self.journal.dropped:,} samples could not be kept")
        if self.journal.clock_ahead:
            warnings.append(
                f"the clock is {timedelta(seconds=int(self.journal.clock_ahead))} ahead of when "
                "rows were recorded before; nothing is deleted for that until it was so for a day"
            )
        return warnings

    @property
    def health(self) -> Health:
        """All parts at work, or on the way there for the first time, or not."""
        if self.reasons:
            return Health.UNWELL
        if any(part.state in (State.WAITING, State.STARTING) for part in self.parts):
            return Health.STARTING
        if self.lake is not None and (
            self.lake.state == State.STARTING or self.lake.connected is False
        ):
            return Health.STARTING  # it has said nothing yet, or is connecting
        return Health.WELL

    @property
    def alive(self) -> bool:
        """Whether the bus carries and the recorder keeps, whatever the lake does."""
        bus = [part for part in self.parts if part.name != "lake"]
        return (
            bool(bus)
            and all(part.state == State.UP for part in bus)
            and not (self.journal.failure or self.journal.disk_full)
        )

    def to_json(self) -> str:
        """One JSON object."""
        document = {"health": self.health, "reasons": self.reasons, "warnings": self.warnings}
        return json_text(document | asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Status:
        """Read what `to_json` wrote; fields of a newer version are passed over."""
        try:
            page = json.loads(text)
            values = _known(cls, page)
            values["parts"] = [PartStatus(**_known(PartStatus, one)) for one in page["parts"]]
            values["journal"] = JournalReport(**_known(JournalReport, page["journal"]))
            values["disk"] = Room(**_known(Room, page["disk"]))
            lake = page.get("lake")
            if lake is not None:
                known = _known(LakeReport, lake)
                known["flows"] = [flow_of(one) for one in known.get("flows", ())]
                values["lake"] = LakeReport(**known)
            return cls(**values)
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise DecodeError(f"that is no status of `zenlake up`: {error!r}") from error


def _known(kind: Any, page: dict[str, Any]) -> dict[str, Any]:
    names = {one.name for one in fields(kind)}
    return {name: value for name, value in page.items() if name in names}
