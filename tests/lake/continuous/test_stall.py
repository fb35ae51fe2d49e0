"""When a continuous query has stood still for too long."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from zenlake.lake.continuous.stall import MOST, PATIENCE, StallDetector

BUSY = "Processing new data"


def test_one_that_is_idle_never_stands_still() -> None:
    stall = StallDetector()
    for second in range(0, 100_000, 50):
        assert stall.observe(float(second), False, 7, "Waiting for data") is None


def test_a_batch_without_any_progress_stands_still_when_its_time_is_over() -> None:
    stall = StallDetector(60.0)
    assert stall.observe(0.0, True, 2, BUSY) is None
    assert stall.observe(59.9, True, 2, BUSY) is None
    assert stall.observe(60.0, True, 2, BUSY) == 60.0


def test_whatever_changes_is_progress() -> None:
    stall = StallDetector(60.0)
    stall.observe(0.0, True, 2, BUSY)
    assert stall.observe(59.0, True, 2, "Committing") is None
    assert stall.observe(118.0, True, 2, "Committing") is None
    assert stall.observe(119.0, True, 2, "Committing") == 60.0


def test_time_that_nothing_was_to_be_done_in_does_not_count() -> None:
    stall = StallDetector(60.0)
    stall.observe(0.0, True, 1, BUSY)
    stall.observe(50.0, False, 1, BUSY)
    assert stall.observe(100.0, True, 1, BUSY) is None
    assert stall.observe(110.0, True, 1, BUSY) == 60.0


def test_slow_batches_that_were_finished_allow_for_slow_ones() -> None:
    stall = StallDetector(60.0)
    stall.observe(0.0, True, 0, BUSY)
    stall.observe(50.0, True, 1, BUSY)
    assert stall.allowed == 200.0
    assert stall.observe(249.0, True, 1, BUSY) is None
    assert stall.observe(250.0, True, 1, BUSY) == 200.0


def test_a_start_in_vain_doubles_the_time_and_a_finished_batch_forgets_it() -> None:
    stall = StallDetector(60.0)
    stall.started_again()
    assert (stall.allowed, stall.restarts) == (120.0, 1)
    for _ in range(50):
        stall.started_again()
    assert stall.allowed == MOST
    stall.observe(0.0, False, 0, "")
    stall.observe(1.0, True, 1, "")
    assert (stall.allowed, stall.restarts) == (60.0, 51)


@given(st.lists(st.floats(0.1, 1.0), max_size=400))
def test_one_that_finishes_a_batch_with_every_look_is_left_alone(pauses: list[float]) -> None:
    stall, now = StallDetector(), 0.0
    for batches, pause in enumerate(pauses):
        now += pause
        assert stall.observe(now, True, batches, BUSY) is None
    assert stall.allowed == PATIENCE
