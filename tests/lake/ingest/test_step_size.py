from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from zenlake.lake.ingest.step_size import SMALL_ROWS, StepSize


def test_a_step_takes_half_after_a_failure_and_twice_as_much_after_a_success() -> None:
    size = StepSize(1000, 4000)
    size.failed(1000)
    assert (size.rows, size.bytes) == (500, 2000)
    size.failed(500)
    assert (size.rows, size.bytes) == (250, 1000)
    size.succeeded()
    assert (size.rows, size.bytes) == (500, 2000)
    for _ in range(3):
        size.succeeded()
    assert (size.rows, size.bytes) == (1000, 4000)


def test_the_next_step_takes_half_of_what_the_failed_one_had_not_of_what_it_might_have_had() -> (
    None
):
    size = StepSize(2_000_000, 1 << 32)
    size.failed(575_012)
    assert size.rows == 287_506


def test_after_a_death_a_step_is_small_and_smaller_after_the_next() -> None:
    size = StepSize(2_000_000, 1 << 32)
    size.died(2_000_000)
    assert size.rows == SMALL_ROWS
    size = StepSize(2_000_000, 1 << 32)
    size.died(size.rows)
    size.died(SMALL_ROWS)
    assert size.rows == SMALL_ROWS // 2
    configured = StepSize(100, 1 << 20)
    configured.died(100)
    assert configured.rows == 50


@given(st.integers(1, 1 << 40), st.integers(1, 1 << 45), st.integers(0, 1 << 41))
def test_it_comes_down_to_one_row_and_back_to_all(rows: int, size: int, taken: int) -> None:
    step = StepSize(rows, size)
    step.failed(taken)
    for _ in range(41):
        step.failed(step.rows)
    assert step.rows == 1
    for _ in range(46):
        step.succeeded()
    assert (step.rows, step.bytes) == (rows, size)
    assert step.is_full


class Sizes(RuleBasedStateMachine):
    """Whatever happens, a step takes something, and no more than was configured."""

    @initialize(rows=st.integers(1, 1 << 40), size=st.integers(1, 1 << 45))
    def configure(self, rows: int, size: int) -> None:
        self.rows, self.bytes = rows, size
        self.size = StepSize(rows, size)

    @rule(taken=st.integers(0, 1 << 41))
    def fail(self, taken: int) -> None:
        before = self.size.rows
        self.size.failed(taken)
        assert self.size.rows <= max(1, before // 2)

    @rule(taken=st.integers(0, 1 << 41))
    def die(self, taken: int) -> None:
        before = self.size.rows
        self.size.died(taken)
        assert self.size.rows <= max(1, min(SMALL_ROWS, before // 2))

    @rule()
    def succeed(self) -> None:
        before = self.size.rows
        self.size.succeeded()
        assert self.size.rows == min(self.rows, 2 * before)

    @invariant()
    def it_takes_something_and_not_too_much(self) -> None:
        assert 1 <= self.size.rows <= self.rows
        assert 1 <= self.size.bytes <= self.bytes
        assert self.size.is_full == (self.size.rows == self.rows and self.size.bytes == self.bytes)


TestSizes = Sizes.TestCase
