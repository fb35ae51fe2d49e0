"""A log is not filled by one problem, nor by many."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from zenlake.clock.throttle import LineBudget, Throttle


def test_the_same_line_is_written_once_a_period_with_the_number_left_out() -> None:
    throttle = Throttle(60.0)
    assert throttle.line(0.0, "full") == "full"
    assert throttle.line(1.0, "full") is None
    assert throttle.line(2.0, "other") == "other"
    assert throttle.line(59.0, "full") is None
    assert throttle.line(61.0, "full") == "full (2 more since the last such line)"
    assert throttle.line(121.0, "full") == "full"


def test_a_subject_is_one_problem_whatever_its_numbers() -> None:
    throttle = Throttle(60.0)
    assert throttle.line(0.0, "5 % free", "disk") == "5 % free"
    assert throttle.line(1.0, "4 % free", "disk") is None


def test_a_problem_that_ended_is_written_at_once_when_it_comes_back() -> None:
    throttle = Throttle()
    assert throttle.line(0.0, "full")
    assert throttle.forget("full")
    assert not throttle.forget("full")
    assert throttle.line(1.0, "full") == "full"


def test_subjects_that_strangers_invent_do_not_fill_the_memory() -> None:
    throttle = Throttle(60.0, 40)
    for number in range(400):
        throttle.line(0.0, f"peer {number} sent nonsense")
    assert len(throttle) == 40


def test_a_clock_set_back_is_not_silence() -> None:
    throttle = Throttle()
    throttle.line(9000.0, "full")
    assert throttle.line(5400.0, "full") == "full"
    budget = LineBudget(1, 60.0)
    assert [budget.take(now) for now in (9000.0, 9001.0, 5400.0)] == [0, -1, 0]


def test_many_subjects_share_a_budget_and_its_last_line_says_so() -> None:
    throttle = Throttle(60.0, 40, LineBudget(2, 60.0))
    assert throttle.line(0.0, "a") == "a"
    assert throttle.line(1.0, "b") == "b; no more such lines for 60 s"
    assert throttle.line(2.0, "c") is None
    assert throttle.line(59.0, "a") is None
    assert throttle.line(60.0, "a") == "a (1 more since the last such line)"


@given(st.lists(st.tuples(st.floats(0, 30), st.integers(0, 60)), max_size=300))
def test_no_crowd_writes_more_than_the_budget_of_each_period(
    events: list[tuple[float, int]],
) -> None:
    now, written, throttle = 0.0, 0, Throttle(60.0, 40, LineBudget(20, 60.0))
    for step, subject in events:
        now += step
        written += throttle.line(now, str(subject)) is not None
    assert written <= 20 * (now // 60 + 1)
