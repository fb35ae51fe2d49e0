"""The clock by which data is old enough to be deleted."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from zenlake.clock.age_clock import HOLD_SECONDS, PAUSE_SECONDS, STEP_SECONDS, AgeClock

YEAR = 365 * 86400.0


def test_a_clock_that_nobody_sets_is_believed() -> None:
    clock = AgeClock()
    assert [clock.time(1000.0 + n * 3600, n * 3600) for n in range(50)] == [
        1000.0 + n * 3600 for n in range(50)
    ]
    assert clock.held == 0.0


def test_a_step_ahead_is_held_for_a_day_while_time_goes_on() -> None:
    clock = AgeClock()
    clock.time(1000.0, 0.0)
    assert clock.time(1010.0 + YEAR, 10.0) == 1010.0
    assert clock.held == YEAR
    later = 10.0 + HOLD_SECONDS - 1
    assert clock.time(1000.0 + YEAR + later, later) == 1000.0 + later
    assert clock.time(1001.0 + YEAR + later, later + 1) == 1001.0 + YEAR + later
    assert clock.held == 0.0


def test_a_date_that_is_set_right_again_leaves_nothing_held() -> None:
    clock = AgeClock()
    clock.time(1000.0, 0.0)
    clock.time(1010.0 + YEAR, 10.0)
    assert clock.time(1020.0, 20.0) == 1020.0
    assert clock.held == 0.0


def test_another_step_is_held_for_a_day_of_its_own() -> None:
    clock = AgeClock()
    clock.time(0.0, 0.0)
    clock.time(YEAR, 0.0)
    half = HOLD_SECONDS / 2
    assert clock.time(2 * YEAR + half, half) == half
    assert clock.time(2 * YEAR + HOLD_SECONDS, HOLD_SECONDS) == HOLD_SECONDS
    assert clock.time(2 * YEAR + 3 * half, 3 * half) == 2 * YEAR + 3 * half


def test_a_date_that_is_set_back_is_believed_at_once() -> None:
    clock = AgeClock()
    clock.time(YEAR, 0.0)
    assert clock.time(10.0, 10.0) == 10.0


def test_a_start_long_after_the_last_data_waits_for_a_day() -> None:
    clock = AgeClock([50.0, 0.0, 100.0])
    assert clock.time(100.0 + YEAR, 7.0) == 100.0
    assert clock.time(100.0 + YEAR + HOLD_SECONDS, 7.0 + HOLD_SECONDS) == 100 + YEAR + HOLD_SECONDS


def test_a_start_after_a_step_goes_on_waiting_for_the_rest_of_the_day() -> None:
    hour = 3600.0
    data = [0.0, hour, YEAR, YEAR + hour]
    clock = AgeClock(data)
    assert clock.time(YEAR + 2 * hour, 0.0) == 3 * hour
    left = HOLD_SECONDS - 2 * hour
    assert clock.time(YEAR + HOLD_SECONDS, left) == YEAR + HOLD_SECONDS
    assert clock.held == 0.0


def test_data_for_a_day_after_a_pause_confirms_the_date() -> None:
    data = [0.0, *[YEAR + n * 3600 for n in range(26)]]
    clock = AgeClock(data)
    assert clock.time(data[-1] + 10, 0.0) == data[-1] + 10


def test_data_of_the_future_says_nothing() -> None:
    assert AgeClock([100.0, YEAR]).time(200.0, 0.0) == 200.0


STEPS = st.lists(st.tuples(st.floats(-YEAR, YEAR), st.floats(0, PAUSE_SECONDS)), max_size=20)


@given(STEPS, st.lists(st.floats(0, YEAR)))
def test_it_is_never_ahead_of_the_wall_and_gains_little_within_a_day(
    steps: list[tuple[float, float]], past: list[float]
) -> None:
    clock = AgeClock(past)
    wall, steady = YEAR, 0.0
    begun = newest = clock.time(wall, steady)
    for looks, (step, passed) in enumerate(steps, start=1):
        wall, steady = wall + step + passed, steady + passed
        newest = max(newest, clock.time(wall, steady))
        assert clock.time(wall, steady) <= wall + 1e-3
        assert clock.held >= 0.0
        if steady < HOLD_SECONDS / 2 and all(ahead >= 0 for ahead, _ in steps) and not past:
            assert newest <= begun + steady + looks * STEP_SECONDS + 1e-3
