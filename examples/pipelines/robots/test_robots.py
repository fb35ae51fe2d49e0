"""Robots as they are after their changes."""

from zenlake.testing.pipeline import PipelineHarness

pytest_plugins = ["zenlake.testing.pipeline"]


def change(
    robot: str, number: int, site: str, firmware: str, retired: bool = False
) -> dict[str, object]:
    """Return a row of `robot_changes`."""
    return {"id": robot, "change": number, "site": site, "firmware": firmware, "retired": retired}


def test_the_newest_change_of_each_robot_counts(pipeline: PipelineHarness) -> None:
    """Also if an older change comes after it, in a batch of its own."""
    pipeline.feed(
        "robot_changes",
        [
            change("7", 1, "north", "1.0"),
            change("7", 3, "south", "1.2"),
            change("8", 1, "north", "1.0"),
        ],
    )
    pipeline.step()
    pipeline.feed(
        "robot_changes",
        [change("7", 2, "north", "1.1"), change("8", 2, "north", "1.0", retired=True)],
    )
    pipeline.step()
    pipeline.table("robots").assert_rows(
        [{"id": "7", "site": "south", "firmware": "1.2"}], columns=["id", "site", "firmware"]
    )
