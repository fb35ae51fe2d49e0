"""What a running lake says of itself.

The pipeline writes it into the lake's folder (`lake/maintain/status_file`), for programs that have
neither Spark nor a table format.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any, Final

__all__ = [
    "LATE_SECONDS",
    "BusStatus",
    "ExpectationStatus",
    "FlowStatus",
    "KeysWithoutTable",
    "LakeStatus",
    "SourceProgress",
    "TableStatus",
    "bounded_flows",
    "flow_of",
]

STALE: Final = 30.0
"""Seconds after which a status that says `running` is of a pipeline that hangs or was killed."""


LATE_SECONDS: Final = 120.0
"""Seconds that rows may wait for the tables if the configuration does not say how long (`late`)."""


@dataclass(frozen=True, slots=True)
class TableStatus:
    """One table."""

    name: str
    version: int = 0
    rows: int = 0
    files: int = 0
    bytes: int = 0
    """Of the files that the newest version needs."""
    behind: int = 0
    """Rows of the journal that this table wants and has not; 0 when it is complete."""
    at: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    """For each journal, by id: of each partition the offset below which it has what it wants."""
    stopped: str = ""
    """Why it does not go on, if it does not; the other tables do."""


@dataclass(frozen=True, slots=True)
class BusStatus:
    """Whether a lake that is to answer on the bus is connected to its router."""

    connected: bool = False
    since: float = 0.0
    """Since when it is, or is not; seconds since 1970."""
    reason: str = ""
    """Why it is not connected; empty while it is, and before the first try has ended."""


@dataclass(frozen=True, slots=True)
class SourceProgress:
    """The last step that read rows of one journal.

    In `status.json` the fields have the names of Spark's `StreamingQueryProgress`, such as
    `inputRowsPerSecond`.
    """

    description: str = ""
    """The journal."""
    timestamp: float = 0.0
    """When the step began, in seconds since 1970."""
    start_offset: tuple[int, ...] = ()
    """Of each partition, where the tables were before the step."""
    end_offset: tuple[int, ...] = ()
    latest_offset: tuple[int, ...] = ()
    """Where the journal was after the step; what lies between is the lag."""
    num_input_rows: int = 0
    input_rows_per_second: float = 0.0
    """Rows of the step by the seconds since the step before it began: as fast as they come."""
    processed_rows_per_second: float = 0.0
    """Rows of the step by the seconds that it took: as fast as they could come."""
    trigger_execution_ms: int = 0

    def plain(self) -> dict[str, Any]:
        """As JSON can write it, in the words of Spark."""
        return {
            "description": self.description,
            "timestamp": self.timestamp,
            "startOffset": list(self.start_offset),
            "endOffset": list(self.end_offset),
            "latestOffset": list(self.latest_offset),
            "numInputRows": self.num_input_rows,
            "inputRowsPerSecond": self.input_rows_per_second,
            "processedRowsPerSecond": self.processed_rows_per_second,
            "durationMs": {"triggerExecution": self.trigger_execution_ms},
        }

    @classmethod
    def of(cls, plain: Mapping[str, Any]) -> SourceProgress:
        """Return what `plain` wrote."""
        return cls(
            description=str(plain["description"]),
            timestamp=float(plain["timestamp"]),
            start_offset=tuple(plain["startOffset"]),
            end_offset=tuple(plain["endOffset"]),
            latest_offset=tuple(plain["latestOffset"]),
            num_input_rows=int(plain["numInputRows"]),
            input_rows_per_second=float(plain["inputRowsPerSecond"]),
            processed_rows_per_second=float(plain["processedRowsPerSecond"]),
            trigger_execution_ms=int(plain["durationMs"]["triggerExecution"]),
        )


@dataclass(frozen=True, slots=True)
class KeysWithoutTable:
    """Keys that are in `samples` and `latest` alone."""

    reason: str
    count: int
    """How many, as far as they are remembered since the lake was started."""
    examples: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ExpectationStatus:
    """An expectation of the rows of a flow."""

    name: str
    violation: str
    """What happens to rows that do not meet it: `warn`, `drop` or `fail`."""
    passed: int = 0
    """Rows that met it since the table was begun; for a materialized view, when it was computed."""
    failed: int = 0
    """Rows that did not."""
    passed_since_start: int = 0
    """Rows that met it since the lake was started."""
    failed_since_start: int = 0


@dataclass(frozen=True, slots=True)
class FlowStatus:
    """A flow or a materialized view of a user's pipeline."""

    pipeline: str
    name: str
    target: str = ""
    kind: str = ""
    """What it fills: `StreamingTable`, `MaterializedView` or `Sink`."""
    state: str = "waiting"
    """`waiting` (for its first rows), `running`, or `stopped` (it failed, and is tried again)."""
    why: str = ""
    """Why it is stopped."""
    batches: int = 0
    rows: int = 0
    """Rows that it has read since the lake was started."""
    input_rows_per_second: float = 0.0
    processed_rows_per_second: float = 0.0
    behind_versions: int = 0
    """Commits of the tables that it reads and has not read."""
    watermark: str = ""
    """The time up to which it waits for no more rows; empty: it has no watermark."""
    restarts: int = 0
    """How often it failed and was started again."""
    expectations: tuple[ExpectationStatus, ...] = ()


MOST_FLOWS: Final = 200
"""Flows that a status shows."""
MOST_EXPECTATIONS: Final = 1000
"""Expectations that a status shows, of all flows together."""


@dataclass(frozen=True, slots=True)
class LakeStatus:
    """The whole lake, at the time `written`."""

    written: float = 0.0
    """Seconds since 1970."""
    pid: int = 0
    state: str = "running"
    """`starting`, `running`, `retrying` (the last step failed), or `stopped`."""
    every: float = 0.0
    """Seconds between two commits, as the load has it now."""
    rows: int = 0
    """Rows of `samples`."""
    lag: int = 0
    """Durable rows of the journal that are not in every table yet."""
    freshness: float = 0.0
    """Seconds that the oldest row of the last commit waited for it, or that one waits now."""
    late: float = LATE_SECONDS
    """Seconds that rows may wait for the tables, by the configuration."""
    quarantine: int = 0
    """Rows of the table `quarantine`."""
    quarantined: int = 0
    """Samples that went to quarantine since the pipeline was started."""
    gaps: int = 0
    """Samples that sources sent and that never came, by the table `gaps`."""
    lost: int = 0
    """Rows that the journal has ever dropped before they were read."""
    files: int = 0
    """Data files that the newest versions need."""
    bytes_live: int = 0
    bytes_total: int = 0
    """Everything in the lake's folder, replaced files and logs too; looked at every minute."""
    steps: int = 0
    failures: int = 0
    restarts: int = 0
    """How often a view or an alert stood still and was started again."""
    error: str | None = None
    """The last thing that went wrong, in words."""
    error_at: float | None = None
    problems: tuple[str, ...] = ()
    """What the configuration and the tables disagree about, and what to do."""
    stopped_queries: Mapping[str, str] = field(default_factory=dict)
    """Why views and alerts do not go on, by their names; those that are held are not among them."""
    flows: tuple[FlowStatus, ...] = ()
    """The flows of users' pipelines; those that are stopped first."""
    flows_not_shown: int = 0
    """Flows beyond those that a status shows."""
    tables: tuple[TableStatus, ...] = ()
    committed: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    """For each journal, by id: of each partition the offset below which every table has all."""
    bus: BusStatus | None = None
    """Whether it is connected to its router; None: it is on no bus."""
    waiting: int = 0
    """New keys that wait for their siblings, before they get a table."""
    without_table: tuple[KeysWithoutTable, ...] = ()
    """Keys that get no table of their own, by reason."""
    progress: tuple[SourceProgress, ...] = ()
    """The last step of each journal."""

    def fresh(self, now: float) -> bool:
        """Whether a pipeline is at work: it wrote this a moment ago, and has not stopped."""
        return self.state != "stopped" and now - self.written < STALE

    def plain(self) -> dict[str, Any]:
        """As JSON can write it."""
        return {**asdict(self), "progress": [one.plain() for one in self.progress]}

    @classmethod
    def of(cls, plain: Mapping[str, Any]) -> LakeStatus:
        """What `plain` wrote; facts of another release that are not known here are left out."""
        given = {f.name: plain[f.name] for f in fields(cls) if f.name in plain}
        given["tables"] = tuple(_table(one) for one in given.get("tables", ()))
        given["flows"] = tuple(flow_of(one) for one in given.get("flows", ()))
        given["problems"] = tuple(given.get("problems", ()))
        given["committed"] = _offsets(given.get("committed", {}))
        bus = given.get("bus")
        given["bus"] = None if bus is None else _bus(bus)
        given["without_table"] = tuple(
            KeysWithoutTable(str(one["reason"]), int(one["count"]), tuple(one["examples"]))
            for one in given.get("without_table", ())
        )
        given["progress"] = tuple(SourceProgress.of(one) for one in given.get("progress", ()))
        return cls(**given)


def bounded_flows(flows: Sequence[FlowStatus]) -> tuple[FlowStatus, ...]:
    """Return the flows that a status shows, within its bounds; those that are stopped first."""
    shown = sorted(flows, key=lambda one: (one.state != "stopped", one.pipeline, one.name))
    bounded: list[FlowStatus] = []
    room = MOST_EXPECTATIONS
    for flow in shown[:MOST_FLOWS]:
        bounded.append(replace(flow, expectations=flow.expectations[:room]))
        room -= len(bounded[-1].expectations)
    return tuple(bounded)


def flow_of(plain: Mapping[str, Any]) -> FlowStatus:
    """Return a flow from its fields; fields of another release are left out."""
    given = {f.name: plain[f.name] for f in fields(FlowStatus) if f.name in plain}
    names = [f.name for f in fields(ExpectationStatus)]
    given["expectations"] = tuple(
        ExpectationStatus(**{name: one[name] for name in names if name in one})
        for one in given.get("expectations", ())
    )
    return FlowStatus(**given)


def _table(plain: Mapping[str, Any]) -> TableStatus:
    given = {f.name: plain[f.name] for f in fields(TableStatus) if f.name in plain}
    return TableStatus(**given | {"at": _offsets(given.get("at", {}))})


def _bus(plain: Mapping[str, Any]) -> BusStatus:
    return BusStatus(**{f.name: plain[f.name] for f in fields(BusStatus) if f.name in plain})


def _offsets(plain: Mapping[str, Any]) -> dict[str, tuple[int, ...]]:
    return {journal: tuple(ends) for journal, ends in plain.items()}
