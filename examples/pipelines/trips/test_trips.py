"""Trips, from poses whose distances are whole numbers."""

from datetime import UTC, datetime, timedelta

from zenlake.testing.pipeline import PipelineHarness

pytest_plugins = ["zenlake.testing.pipeline"]

NOON = datetime(2026, 1, 31, 12, tzinfo=UTC)


def pose(robot: str, second: int, x: float, y: float) -> dict[str, object]:
    """Return a row of `pose`."""
    return {"id": robot, "time": NOON + timedelta(seconds=second), "x": x, "y": y}


def trip(robot: str, begin: int, end: int, metres: float, poses: int) -> dict[str, object]:
    """Return a row of `trips`."""
    return {
        "id": robot,
        "begin": NOON + timedelta(seconds=begin),
        "end": NOON + timedelta(seconds=end),
        "metres": metres,
        "poses": poses,
    }


def test_a_minute_of_silence_ends_a_trip(pipeline: PipelineHarness) -> None:
    """Robot 7 drives 5 m and 1 m, is silent for two minutes and drives again."""
    pipeline.feed("pose", [pose("7", 0, 0.0, 0.0), pose("7", 20, 3.0, 4.0), pose("8", 5, 1.0, 1.0)])
    pipeline.step()
    # The same trip, over two batches.
    pipeline.feed("pose", [pose("7", 40, 3.0, 5.0), pose("7", 160, 9.0, 9.0)])
    pipeline.step()
    # Time goes on with the poses of any robot, and ends the trips of all.
    pipeline.feed("pose", [pose("9", 600, 0.0, 0.0)])
    pipeline.step()
    pipeline.table("trips").assert_rows(
        [trip("7", 0, 40, 6.0, 3), trip("7", 160, 160, 0.0, 1), trip("8", 5, 5, 0.0, 1)],
        by=["id", "begin"],
    )
