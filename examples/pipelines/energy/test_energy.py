"""Energy by robot and hour, from a handful of reports."""

from datetime import UTC, date, datetime

from zenlake.testing.pipeline import PipelineHarness

pytest_plugins = ["zenlake.testing.pipeline"]


def at(hour: int, minute: int) -> datetime:
    """Return a moment of one day."""
    return datetime(2026, 1, 31, hour, minute, tzinfo=UTC)


def report(robot: str, time: datetime, watts: float, seconds: int) -> dict[str, object]:
    """Return a row of `power`."""
    return {"id": robot, "time": time, "watts": watts, "seconds": seconds}


def test_an_hour_is_added_up_when_it_is_over(pipeline: PipelineHarness) -> None:
    """100 W and 200 W for half an hour each are 150 Wh."""
    pipeline.feed(
        "power",
        [
            report("7", at(12, 29), 100.0, 1800),
            report("7", at(12, 59), 200.0, 1800),
            report("8", at(12, 40), 60.0, 600),
        ],
    )
    pipeline.step()
    pipeline.table("energy").assert_rows([])

    # Half past one: nobody waits for reports of the hour from twelve to one any more.
    pipeline.feed("power", [report("7", at(13, 30), 50.0, 1800)])
    pipeline.step()
    hours = [
        {"hour": at(12, 0), "id": "7", "watt_hours": 150.0, "reports": 2},
        {"hour": at(12, 0), "id": "8", "watt_hours": 10.0, "reports": 1},
    ]
    pipeline.table("energy").assert_rows(hours, by=["hour", "id"])

    # What comes later still does not count.
    pipeline.feed("power", [report("8", at(12, 50), 1000.0, 600)])
    pipeline.step()
    pipeline.table("energy").assert_rows(hours, by=["hour", "id"])
    day = date(2026, 1, 31)
    pipeline.table("daily_energy").assert_rows(
        [{"id": "7", "day": day, "watt_hours": 150.0}, {"id": "8", "day": day, "watt_hours": 10.0}]
    )
