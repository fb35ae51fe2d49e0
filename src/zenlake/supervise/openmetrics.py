"""The metrics of the service, each declared once: a status as OpenMetrics text.

    python -m zenlake.supervise.openmetrics [DIRECTORY]

writes the page `docs/reference/service-metrics.md` from the declarations.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from types import MappingProxyType
from typing import Final, Literal

from zenlake.lake.model.status import FlowStatus
from zenlake.supervise.parts import State
from zenlake.supervise.status import Health, Status

__all__ = ["SERIES", "joined", "openmetrics", "render"]

END: Final = "# EOF\n"


@dataclass(frozen=True, slots=True)
class Series:
    """One family of numbers: its name, what it counts, and its labels."""

    name: str
    kind: Literal["counter", "gauge"]
    help: str
    labels: tuple[str, ...] = ()

    @property
    def sample(self) -> str:
        """The name in the text."""
        return f"{self.name}_total" if self.kind == "counter" else self.name


SERIES: Final = {
    series.name: series
    for series in (
        Series("zenlake_uptime_seconds", "gauge", "Time since `zenlake up` was started."),
        Series("zenlake_healthy", "gauge", "1 if every part is at work, else 0."),
        Series("zenlake_part_up", "gauge", "1 if the part is up, else 0.", ("part",)),
        Series("zenlake_part_restarts", "counter", "How often it was started again.", ("part",)),
        Series(
            "zenlake_part_memory_bytes",
            "gauge",
            "Resident memory of its processes; Spark's Java is the lake's.",
            ("part",),
        ),
        Series("zenlake_part_cpu_seconds", "counter", "CPU of its processes.", ("part",)),
        Series("zenlake_journal_rows", "counter", "Rows recorded since the router started."),
        Series("zenlake_journal_payload_bytes", "counter", "Payload of those rows."),
        Series("zenlake_journal_rows_per_second", "gauge", "Rows recorded a second, now."),
        Series("zenlake_journal_durable_rows", "gauge", "Rows that survive a loss of power."),
        Series("zenlake_journal_queued_bytes", "gauge", "What waits for the disk."),
        Series("zenlake_journal_dropped_rows", "counter", "Samples that could not be kept."),
        Series(
            "zenlake_journal_missing_samples",
            "gauge",
            "Samples that sources numbered and that did not come.",
        ),
        Series("zenlake_journal_healed_samples", "gauge", "Samples that came when asked for."),
        Series(
            "zenlake_journal_future_samples",
            "counter",
            "Samples whose time was too far in the future: not believed.",
        ),
        Series(
            "zenlake_journal_retired_rows",
            "counter",
            "Samples whose values a rule of retention took.",
        ),
        Series("zenlake_journal_stuck", "gauge", "1 while nothing can be written, else 0."),
        Series("zenlake_journal_disk_full", "gauge", "1 while the disk has no room, else 0."),
        Series("zenlake_journal_size_bytes", "gauge", "What the files of the journal take."),
        Series("zenlake_journal_budget_bytes", "gauge", "What they may take."),
        Series(
            "zenlake_lake_connected", "gauge", "1 if the lake is connected to its router, else 0."
        ),
        Series("zenlake_lake_rows", "gauge", "Rows of the table `samples`."),
        Series("zenlake_lake_behind_rows", "gauge", "Durable rows that are not in the tables."),
        Series(
            "zenlake_lake_freshness_seconds",
            "gauge",
            "How long ago all that was durable then was in the tables.",
        ),
        Series(
            "zenlake_lake_input_rows_per_second",
            "gauge",
            "Rows that come, by the last step; 0 after a minute without one.",
        ),
        Series(
            "zenlake_lake_processed_rows_per_second",
            "gauge",
            "Rows that a step reads, by the last one; less than come means falling behind.",
        ),
        Series("zenlake_lake_quarantine_rows", "gauge", "Rows of the table `quarantine`."),
        Series(
            "zenlake_lake_lost_rows", "counter", "Rows that left the journal before they were read."
        ),
        Series("zenlake_lake_steps", "counter", "Steps of the pipeline since it started."),
        Series("zenlake_lake_failed_steps", "counter", "Steps that failed and were tried again."),
        Series(
            "zenlake_lake_view_restarts",
            "counter",
            "Views and alerts that stood still and were started again.",
        ),
        Series(
            "zenlake_flow_up",
            "gauge",
            "1 if the flow of a pipeline runs or waits for rows, 0 if it is stopped.",
            ("flow",),
        ),
        Series("zenlake_flow_batches", "counter", "Batches since the lake started.", ("flow",)),
        Series("zenlake_flow_rows", "counter", "Rows read since the lake started.", ("flow",)),
        Series(
            "zenlake_flow_input_rows_per_second",
            "gauge",
            "Rows that came a second, in the newest batch with rows.",
            ("flow",),
        ),
        Series(
            "zenlake_flow_processed_rows_per_second",
            "gauge",
            "Rows processed a second, in the newest batch with rows.",
            ("flow",),
        ),
        Series(
            "zenlake_flow_behind_versions",
            "gauge",
            "Commits of the tables that the flow reads and has not read.",
            ("flow",),
        ),
        Series(
            "zenlake_flow_watermark_seconds",
            "gauge",
            "The watermark, in seconds since 1970; absent: the flow has none.",
            ("flow",),
        ),
        Series(
            "zenlake_flow_restarts",
            "counter",
            "How often the flow failed and was started again.",
            ("flow",),
        ),
        Series(
            "zenlake_flow_expectation_passed_rows",
            "counter",
            "Rows that met the expectation since the table was begun; of a materialized view, in "
            "its newest computation.",
            ("flow", "expectation"),
        ),
        Series(
            "zenlake_flow_expectation_failed_rows",
            "counter",
            "Rows that did not meet the expectation, counted as those that did.",
            ("flow", "expectation"),
        ),
        Series("zenlake_flows_not_shown", "gauge", "Flows beyond the 200 that have series here."),
        Series("zenlake_lake_files", "gauge", "Data files that the newest versions need."),
        Series("zenlake_lake_size_bytes", "gauge", "What the files of the lake take."),
        Series(
            "zenlake_http_refused",
            "counter",
            "Connections to this port that were refused or ended, by reason: head (too large), "
            "malformed, method, slow, connections (too many), address (too many of it), error (of "
            "zenlake's own).",
            ("reason",),
        ),
        Series("zenlake_disk_free_bytes", "gauge", "Free room on the disk."),
        Series("zenlake_disk_size_bytes", "gauge", "The size of the disk."),
        Series("zenlake_disk_full_in_seconds", "gauge", "When it is full; absent: not in sight."),
    )
}
"""Every family by name, in the order of the text."""


def openmetrics(status: Status, refused: Mapping[str, int] = MappingProxyType({})) -> str:
    """All series of a status, with lines that explain, ended as the format wants it.

    `refused`: how many connections to the status port were refused or ended, by reason.
    """
    samples: dict[str, list[str]] = {}
    counted = (("zenlake_http_refused", why, number) for why, number in refused.items())
    single = ((name, (label,), value) for name, label, value in (*_values(status), *counted))
    flows = () if status.lake is None else _flow_values(status.lake.flows)
    for name, given, value in (*single, *flows):
        series = SERIES[name]
        pairs = [
            f'{label}="{_escaped(text)}"' for label, text in zip(series.labels, given, strict=False)
        ]
        labels = f"{{{','.join(pairs)}}}" if pairs else ""
        samples.setdefault(name, []).append(f"{series.sample}{labels} {_number(value)}\n")
    parts: list[str] = []
    for name, series in SERIES.items():
        if name in samples:
            parts.append(f"# HELP {name} {series.help}\n# TYPE {name} {series.kind}\n")
            parts += samples[name]
    return "".join(parts) + END


def joined(*texts: str) -> str:
    """Several texts in one: only the last line of all is the end."""
    return "".join([text.removesuffix(END) for text in texts]) + END


def _values(status: Status) -> Iterator[tuple[str, str, float]]:
    yield "zenlake_uptime_seconds", "", status.uptime
    yield "zenlake_healthy", "", int(status.health is Health.WELL)
    for part in status.parts:
        yield "zenlake_part_up", part.name, int(part.state == State.UP)
        yield "zenlake_part_restarts", part.name, part.restarts
        if part.memory_bytes is not None:
            yield "zenlake_part_memory_bytes", part.name, part.memory_bytes
        if part.cpu_seconds is not None:
            yield "zenlake_part_cpu_seconds", part.name, part.cpu_seconds
    journal = status.journal
    yield "zenlake_journal_rows", "", journal.rows
    yield "zenlake_journal_payload_bytes", "", journal.bytes
    yield "zenlake_journal_rows_per_second", "", journal.rows_per_s
    yield "zenlake_journal_durable_rows", "", journal.durable
    yield "zenlake_journal_queued_bytes", "", journal.queued_bytes
    yield "zenlake_journal_dropped_rows", "", journal.dropped
    yield "zenlake_journal_missing_samples", "", journal.missing
    yield "zenlake_journal_healed_samples", "", journal.healed
    yield "zenlake_journal_future_samples", "", journal.future
    yield "zenlake_journal_retired_rows", "", journal.retired
    yield "zenlake_journal_stuck", "", int(bool(journal.failure) or journal.disk_full)
    yield "zenlake_journal_disk_full", "", int(journal.disk_full)
    yield "zenlake_journal_size_bytes", "", journal.size
    if journal.budget is not None:
        yield "zenlake_journal_budget_bytes", "", journal.budget
    lake = status.lake
    if lake is not None:
        yield "zenlake_lake_connected", "", int(bool(lake.connected))
        yield "zenlake_lake_rows", "", lake.rows
        yield "zenlake_lake_behind_rows", "", lake.behind
        if lake.freshness is not None:
            yield "zenlake_lake_freshness_seconds", "", lake.freshness
        yield "zenlake_lake_input_rows_per_second", "", lake.input_rows_per_second
        yield "zenlake_lake_processed_rows_per_second", "", lake.processed_rows_per_second
        yield "zenlake_lake_quarantine_rows", "", lake.quarantine
        yield "zenlake_lake_lost_rows", "", lake.lost
        yield "zenlake_lake_steps", "", lake.steps
        yield "zenlake_lake_failed_steps", "", lake.failures
        yield "zenlake_lake_view_restarts", "", lake.restarts
        yield "zenlake_flows_not_shown", "", lake.flows_not_shown
        yield "zenlake_lake_files", "", lake.files
        yield "zenlake_lake_size_bytes", "", lake.size
    yield "zenlake_disk_free_bytes", "", status.disk.free
    yield "zenlake_disk_size_bytes", "", status.disk.total
    if status.disk.full_in is not None:
        yield "zenlake_disk_full_in_seconds", "", status.disk.full_in


def _flow_values(flows: Iterable[FlowStatus]) -> Iterator[tuple[str, tuple[str, ...], float]]:
    for one in flows:
        flow = (f"{one.pipeline}.{one.name}",)
        yield "zenlake_flow_up", flow, int(one.state != "stopped")
        yield "zenlake_flow_batches", flow, one.batches
        yield "zenlake_flow_rows", flow, one.rows
        yield "zenlake_flow_input_rows_per_second", flow, one.input_rows_per_second
        yield "zenlake_flow_processed_rows_per_second", flow, one.processed_rows_per_second
        yield "zenlake_flow_behind_versions", flow, one.behind_versions
        watermark = _instant(one.watermark)
        if watermark is not None:
            yield "zenlake_flow_watermark_seconds", flow, watermark
        yield "zenlake_flow_restarts", flow, one.restarts
        for expectation in one.expectations:
            labels = (*flow, expectation.name)
            yield "zenlake_flow_expectation_passed_rows", labels, expectation.passed
            yield "zenlake_flow_expectation_failed_rows", labels, expectation.failed


def _instant(text: str) -> float | None:
    """Return a time of Spark's in seconds since 1970; None if there is none, or none yet."""
    try:
        seconds = datetime.fromisoformat(text).timestamp()
    except ValueError:
        return None
    return seconds if seconds > 0 else None


def _escaped(text: str) -> str:
    """Return a text as the value of a label may have it."""
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _number(value: float) -> str:
    return str(value) if isinstance(value, int) else f"{value:.3f}".rstrip("0").rstrip(".")


def render() -> str:
    """The reference page, in Markdown."""
    lines = [
        "# Metrics of the service",
        "",
        "<!-- Generated by `python -m zenlake.supervise.openmetrics`; edit its declarations. -->",
        "",
        "`GET /metrics` of `zenlake up` gives these and [those of its router](metrics.md).",
        "",
        "| series | kind | labels | what it says |",
        "|---|---|---|---|",
    ]
    for series in SERIES.values():
        labels = ", ".join(f"`{label}`" for label in series.labels)
        lines.append(f"| `{series.sample}` | {series.kind} | {labels} | {series.help} |")
    return "\n".join([*lines, ""])


if __name__ == "__main__":
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else "docs/reference")
    (folder / "service-metrics.md").write_text(render(), "utf-8")
