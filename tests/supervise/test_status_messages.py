"""What is told, how often, and how a status reads."""

from __future__ import annotations

import json
import threading
from pathlib import Path

import pytest

from tests.lake.journals import Here, write
from tests.lake.rowsof import Row
from zenlake.errors import DecodeError
from zenlake.lake import Pipeline, read_config
from zenlake.lake.maintain.status_file import read_status
from zenlake.lake.model.status import ExpectationStatus, FlowStatus
from zenlake.lake.service.loop import run
from zenlake.supervise.openmetrics import openmetrics
from zenlake.supervise.parts import RestartPolicy, SupervisedPart
from zenlake.supervise.plan import LAKE, Plan
from zenlake.supervise.reports import Reports
from zenlake.supervise.screen import amount, line, screen, span
from zenlake.supervise.status import Health, JournalReport, LakeReport, PartStatus, Room, Status
from zenlake.supervise.status_alerts import StatusAlerts
from zenlake.supervise.throttle import MessageThrottle

NOW = 1_800_000_000.0


def status(**more: object) -> Status:
    found = Status("1.0", 7, "fleet", NOW, 3 * 86400.0)
    found.parts = [
        PartStatus("router", "up", 300.0, 11, memory_bytes=120_000_000),
        PartStatus("recorder", "up", 300.0),
        PartStatus("lake", "up", 60.0, 12, restarts=1, reason="was killed by SIGKILL"),
    ]
    found.lake = LakeReport(state="running", behind=120, freshness=1.2)
    found.disk = Room(250_000_000_000, 70_000_000_000, 3 * 86400.0)
    found.journal = JournalReport(
        rows=5, rows_per_s=1234.4, durable=12_345_678, budget=50_000_000_000
    )
    for name, value in more.items():
        setattr(found, name, value)
    return found


def test_a_problem_that_goes_on_is_told_seldom_and_counted_meanwhile() -> None:
    throttle = MessageThrottle(again=300)
    first = throttle.admit(NOW, "full", "the disk is full")
    assert str(first) == "2027-01-15 08:00:00Z the disk is full"
    assert [throttle.admit(NOW + n, "full", "the disk is full") for n in range(1, 300)] == [
        None
    ] * 299
    again = throttle.admit(NOW + 300, "full", "the disk is full")
    assert again is not None
    assert again.words == "the disk is full (299 more since the last such line)"


def test_a_storage_that_is_not_written_makes_the_status_unwell_and_ends_nothing() -> None:
    found = status(troubles=["storage 's' cannot be written, 3 changes wait: the disk is full"])
    assert found.reasons == found.troubles
    assert found.health == Health.UNWELL
    assert found.alive, "starting it again would not help"
    assert Status.from_json(found.to_json()).troubles == found.troubles


def test_a_clock_that_is_ahead_of_what_was_recorded_needs_a_look_and_is_not_unwell() -> None:
    found = status(journal=JournalReport(clock_ahead=365 * 86400.0))
    (warning,) = found.warnings
    assert warning.startswith("the clock is 365 days, 0:00:00 ahead of when rows were recorded")
    assert found.health == Health.WELL
    assert Status.from_json(found.to_json()).warnings == [warning]


def words(alerts: StatusAlerts, now: Status, clock: float = 0.0, **report: int) -> str:
    return "\n".join([one.words for one in alerts.check(now, report, clock)])


def test_an_operator_is_told_what_changed() -> None:
    alerts = StatusAlerts(MessageThrottle())
    assert words(alerts, status()) == ""
    assert "set ahead by 3600 s" in words(alerts, status(), 3600.0)
    assert "ahead of this machine's clock" in words(alerts, status(), 3600.0, future_replaced=3)
    found = words(alerts, status(lake=LakeReport(state="running", quarantine=8)), 3600.0)
    assert "8 are in quarantine" in found
    assert words(alerts, status(lake=LakeReport(state="running", quarantine=8)), 3600.0) == ""
    full = words(alerts, status(journal=JournalReport(disk_full=True)), 3600.0)
    assert "is full" in full
    assert "--retain-size" in full
    assert "has room again" in words(alerts, status(), 3600.0)
    assert "full in 1 h 40 min" in words(alerts, status(disk=Room(10, 5, 6000.0)), 3600.0)
    retrying = LakeReport(state="retrying", error="Read-only file system")
    assert "Read-only file system" in words(alerts, status(lake=retrying), 3600.0)


def test_health_tells_a_start_from_a_failure() -> None:
    assert status().health is Health.WELL
    first = status()
    first.parts[2] = PartStatus("lake", "starting")
    assert first.health is Health.STARTING
    assert first.alive
    again = status()
    again.parts[2] = PartStatus("lake", "starting", restarts=1, reason="was killed by SIGKILL")
    assert again.health is Health.UNWELL
    assert again.alive, "the bus carries without the lake"
    assert again.reasons == ["lake is starting: was killed by SIGKILL"]
    full = status(journal=JournalReport(disk_full=True))
    assert full.health is Health.UNWELL
    assert not full.alive


def test_a_lake_that_is_not_connected_is_not_well_everywhere() -> None:
    refused = "the other side closed while opening; it may ask for a login"
    found = status(lake=LakeReport(state="running", connected=False, not_connected=refused))
    assert found.health is Health.UNWELL
    assert found.reasons == [f"the lake is not connected to its router: {refused}"]
    assert found.alive, "the bus carries without the lake"
    assert "zenlake_healthy 0\n" in openmetrics(found)
    assert "zenlake_lake_connected 0\n" in openmetrics(found)
    alerts = StatusAlerts(MessageThrottle())
    assert refused in words(alerts, found)
    back = status(lake=LakeReport(state="running", connected=True, input_rows_per_second=12.5))
    assert words(alerts, back) == "the lake is connected to its router"
    assert "zenlake_healthy 1\n" in openmetrics(back)
    assert "zenlake_lake_connected 1\n" in openmetrics(back)
    assert "zenlake_lake_input_rows_per_second 12.5\n" in openmetrics(back)


def test_a_lake_that_is_minutes_behind_or_has_a_table_that_stopped_is_not_well() -> None:
    soon = status(lake=LakeReport(state="running", behind=51_470, late_seconds=119.0))
    assert soon.health is Health.WELL
    late = status(lake=LakeReport(state="running", behind=51_470, late_seconds=362.0))
    assert (late.health, late.alive) == (Health.UNWELL, True)
    assert late.reasons == [
        "the lake is 6 min behind the journal: 51,470 rows are not in its tables"
    ]
    hourly = LakeReport(state="running", behind=51_470, late_seconds=362.0, late_after=3600.0)
    assert status(lake=hourly).health is Health.WELL
    strict = LakeReport(state="running", behind=7, late_seconds=11.0, late_after=10.0)
    assert status(lake=strict).reasons == [
        "the lake is 11 s behind the journal: 7 rows are not in its tables"
    ]
    stopped = status(lake=LakeReport(state="running", stopped={"pose": "No space left"}))
    assert stopped.reasons == ["the table 'pose' stopped: No space left"]


def test_how_late_a_lake_may_be_is_said_by_its_configuration(tmp_path: Path) -> None:
    write(tmp_path / "j", [Row("a", b"")], 1)
    config = read_config('{late: "1h"}')
    assert (config.late, read_config("{}").late) == (3600.0, 120.0)
    pipeline = Pipeline(str(tmp_path / "lake"), str(tmp_path / "j"), Here(), config)
    run(pipeline, Here(), stop=threading.Event(), once=True)
    part = SupervisedPart(LAKE, RestartPolicy(60.0))
    reports = Reports(Plan(tmp_path, "data", ["router"]), {LAKE: part}, {}, 0.0)
    assert reports._lake(read_status(tmp_path / "lake"), 1).late_after == 3600.0


def test_a_time_without_a_recorder_is_a_warning() -> None:
    away = {"count": 2, "last": [{"from": "a", "to": "b"}, {"from": "c", "to": "d"}]}
    reports = Reports(Plan(Path("/fleet"), "fleet", ["router"]), {}, {}, 0.0)
    totals = dict.fromkeys(("rows", "bytes", "durable", "queued_bytes", "dropped"), 0)
    totals |= dict.fromkeys(("missing", "healed", "disk_full"), 0)
    own = {"dir": "/fleet/journal", "name": "j", "state": "up", "reason": "", "outages": away}
    reports.report = {"journals": [own | totals]}
    journal = reports._journal(1.0)
    assert (journal.outages, journal.last_outage) == (2, "c to d")
    found = status(journal=journal)
    assert found.health is Health.WELL
    assert found.warnings == [
        "the recorder was away 2 times, the last time from c to d: samples of then are not in the "
        "journal"
    ]


def test_a_view_that_cannot_go_on_is_a_reason_and_no_warning_beside_it() -> None:
    why = "the view 'low' has stopped: the disk is full; tried again in 2 s"
    other = "the view 'held' is held: its owner may not put its keys"
    lake = LakeReport(state="running", stopped_queries={"low": why}, problems=[why, other])
    found = status(lake=lake)
    assert (found.health, found.reasons, found.alive) == (Health.UNWELL, [why], True)
    assert found.warnings == [other]
    assert Status.from_json(found.to_json()).reasons == [why]
    alerts = StatusAlerts(MessageThrottle())
    assert words(alerts, found) == f"the lake: {why}\nthe lake: {other}"
    later = LakeReport(
        state="running", stopped_queries={"low": why.replace("2 s", "4 s")}, problems=[other]
    )
    assert words(alerts, status(lake=later)) == ""
    gone = LakeReport(state="running", problems=[other])
    assert words(alerts, status(lake=gone)) == "the lake: 'low' is no longer stopped"


def test_flows_and_their_expectations_are_series_with_labels_that_no_name_breaks() -> None:
    expectation = ExpectationStatus('a "b"\\', "drop", passed=7, failed=2)
    flows = [
        FlowStatus("p", "low", rows=9, watermark="2026-01-01T00:00:00.000Z", behind_versions=3),
        FlowStatus("p", "high", state="stopped", restarts=4, expectations=(expectation,)),
    ]
    found = status(lake=LakeReport(state="running", flows=flows, flows_not_shown=1))
    lines = openmetrics(found).splitlines()
    for wanted in (
        'zenlake_flow_up{flow="p.low"} 1',
        'zenlake_flow_up{flow="p.high"} 0',
        'zenlake_flow_rows_total{flow="p.low"} 9',
        'zenlake_flow_behind_versions{flow="p.low"} 3',
        'zenlake_flow_watermark_seconds{flow="p.low"} 1767225600',
        'zenlake_flow_restarts_total{flow="p.high"} 4',
        'zenlake_flow_expectation_failed_rows_total{flow="p.high",expectation="a \\"b\\"\\\\"} 2',
        "zenlake_flows_not_shown 1",
    ):
        assert wanted in lines
    assert Status.from_json(found.to_json()) == found


def test_how_late_a_lake_is_goes_on_while_it_dies_and_starts_again() -> None:
    reports = Reports(Plan(Path("/fleet"), "fleet", ["router"]), {}, {}, 0.0)
    assert reports._late(10.0, durable=100, behind=100) == 0.0
    # It was killed before each commit, and the journal grew.
    assert reports._late(100.0, durable=900, behind=900) == 90.0
    assert reports._late(370.0, durable=5000, behind=4500) == 270.0
    assert reports._late(380.0, durable=5000, behind=0) == 0.0


@pytest.mark.parametrize(
    "lake", [LakeReport(state="starting"), LakeReport(state="running", connected=False)]
)
def test_a_lake_that_said_nothing_yet_is_starting(lake: LakeReport) -> None:
    found = status(lake=lake)
    assert (found.health, found.reasons) == (Health.STARTING, [])
    assert "zenlake_healthy 0\n" in openmetrics(found)


def test_what_is_wanted_and_does_not_work_is_told_and_not_well() -> None:
    trouble = "plugins/rest: 127.0.0.1:8000: Address already in use"
    found = status(troubles=[trouble])
    assert (found.health, found.reasons) == (Health.UNWELL, [trouble])
    assert words(StatusAlerts(MessageThrottle()), found) == trouble


def test_a_status_survives_its_json_and_nothing_else_is_one() -> None:
    found = status()
    page = json.loads(found.to_json())
    assert page["health"] == "well"
    assert Status.from_json(json.dumps(page | {"new": 1})) == found
    for text in ("[]", "{}", "7", "no", '{"parts": 1}'):
        with pytest.raises(DecodeError):
            Status.from_json(text)


def test_the_screen_fits_its_width_and_says_everything() -> None:
    text = "\n".join(screen(status(told=["2027-01-15 08:00:00Z the lake is up again"])))
    assert max(map(len, text.splitlines())) <= 80
    for said in (
        "fleet · for 3 days · well",
        "router     up        5 min       120 MB",
        "1 restart",
        "1,234 rows/s",
        "120 rows behind, fresh to 1.2 s, 0 in quarantine",
        "70 GB of 250 GB free, full in 3 days",
        "the lake is up again",
    ):
        assert said in text
    assert line(status()).startswith("well; 1,234 rows/s; 12,345,678 durable; 120 rows behind")


@pytest.mark.parametrize(
    ("seconds", "said"),
    [(0.25, "250 ms"), (1.2, "1.2 s"), (42, "42 s"), (600, "10 min"), (11_400, "3 h 10 min"),
     (7 * 86400, "7 days"), (1e9, "31 years")],
)  # fmt: skip
def test_times_are_said_as_people_say_them(seconds: float, said: str) -> None:
    assert span(seconds) == said


def test_sizes_are_said_as_people_say_them() -> None:
    assert [amount(size) for size in (0, 999, 1000, 1_234_567, 5e13)] == [
        "0 B", "999 B", "1 kB", "1.23 MB", "50 TB"
    ]  # fmt: skip
