"""Where robots were when a fault came."""

from datetime import UTC, datetime, timedelta
from typing import Any

from zenlake.testing.pipeline import PipelineHarness

pytest_plugins = ["zenlake.testing.pipeline"]


def at(second: float) -> datetime:
    """Return a moment."""
    return datetime(2026, 1, 31, 12, tzinfo=UTC) + timedelta(seconds=second)


def test_a_fault_is_where_the_newest_pose_before_it_was(pipeline: PipelineHarness) -> None:
    """Not where a later pose was, nor that of another robot, nor that of an hour ago."""
    poses = [("7", 10, 1.0), ("7", 20, 2.0), ("7", 31, 3.0), ("8", 29, 9.0)]
    pipeline.feed("pose", [{"id": i, "time": at(s), "x": x, "y": 0.5} for i, s, x in poses])
    faults = [("7", 30, 17), ("8", 20, 11), ("8", 120, 23)]
    pipeline.feed("fault", [{"id": i, "time": at(s), "code": c} for i, s, c in faults])
    pipeline.step()
    # Both streams are past all of this.
    pipeline.feed("pose", [{"id": "9", "time": at(1000), "x": 0.0, "y": 0.0}])
    pipeline.feed("fault", [{"id": "9", "time": at(1000), "code": 0}])
    pipeline.step()

    def row(robot: str, second: int, code: int, *pose: Any) -> dict[str, object]:
        seen, x, y = pose or (None, None, None)
        return {"id": robot, "time": at(second), "code": code, "seen": seen, "x": x, "y": y}

    pipeline.table("faults_where").assert_rows(
        [row("7", 30, 17, at(20), 2.0, 0.5), row("8", 20, 11), row("8", 120, 23)],
        by=["id", "time"],
    )
