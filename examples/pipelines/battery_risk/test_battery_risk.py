"""Scores of batteries, worked out by hand."""

from datetime import UTC, datetime

import pytest

from zenlake.testing.pipeline import PipelineHarness

pytest_plugins = ["zenlake.testing.pipeline"]

NOON = datetime(2026, 1, 31, 12, tzinfo=UTC)


def test_a_battery_at_the_mean_is_at_even_odds(pipeline: PipelineHarness) -> None:
    """One that is worn by a standard deviation has odds of e² to one."""
    mean = {"time": NOON, "percent": 50.0, "celsius": 30.0}
    pipeline.feed(
        "battery",
        [{"id": "7", "cycles": 500.0, **mean}, {"id": "8", "cycles": 750.0, **mean}],
    )
    pipeline.step()
    pipeline.table("battery_risk").assert_rows(
        [
            {"id": "7", "time": NOON, "score": 0.5},
            {"id": "8", "time": NOON, "score": pytest.approx(0.880797, abs=1e-6)},
        ],
        by="id",
    )
