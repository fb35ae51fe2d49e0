"""Features at the quarters of a day, where sine and cosine are known."""

from datetime import UTC, datetime

import pytest

from zenlake.testing.pipeline import PipelineHarness

pytest_plugins = ["zenlake.testing.pipeline"]


@pytest.mark.parametrize(("hour", "sine", "cosine"), [(6, 1.0, 0.0), (12, 0.0, -1.0)])
def test_the_hour_lies_on_a_circle(
    pipeline: PipelineHarness, hour: int, sine: float, cosine: float
) -> None:
    """At six the circle is at its top, at noon on its left."""
    time = datetime(2026, 1, 31, hour, tzinfo=UTC)
    pipeline.feed("battery", [{"id": "7", "time": time, "percent": 25.0, "charging": True}])
    pipeline.step()
    pipeline.table("features").assert_rows(
        [
            {
                "id": "7",
                "time": time,
                "hour_sin": pytest.approx(sine, abs=1e-9),
                "hour_cos": pytest.approx(cosine, abs=1e-9),
                "charge": 0.25,
                "is_charging": 1.0,
            }
        ]
    )
