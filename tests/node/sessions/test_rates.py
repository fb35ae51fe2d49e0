"""What a neighbour may send in a second, with time as an argument."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zenlake.node.sessions.rates import BURST, RateLimit

ARRIVALS = st.lists(st.tuples(st.integers(1, 50), st.integers(1, 5000), st.floats(0, 3)))


def test_who_keeps_to_the_rate_never_waits() -> None:
    rate = RateLimit(10, 0, 0.0)
    assert [rate.wait(1, 1 << 20, n / 10) for n in range(100)] == [0.0] * 100


def test_after_a_silence_a_second_s_worth_may_come_at_once() -> None:
    rate = RateLimit(0, 1000, 0.0)
    assert rate.wait(1, 1000, 60.0) == 0.0
    assert rate.wait(1, 500, 60.0) == pytest.approx(0.5)


@given(st.integers(1, 100), st.integers(1, 10_000), ARRIVALS)
def test_what_is_read_in_any_time_is_within_the_rate_and_one_burst(
    messages: int, size: int, arrivals: list[tuple[int, int, float]]
) -> None:
    rate = RateLimit(messages, size, 0.0)
    now = 0.0
    read: list[tuple[float, int, int]] = []
    for many, weight, pause in arrivals:
        now += pause
        read.append((now, many, weight))
        now += rate.wait(many, weight, now)  # as a link that is not read meanwhile
    for first, (start, _, _) in enumerate(read):
        for last in range(first, len(read)):
            # The last arrival is whole when it is counted: it may be more than the rest allows.
            seconds = read[last][0] - start + BURST + 1e-6
            before = read[first:last]
            assert sum(many for _, many, _ in before) <= messages * seconds
            assert sum(weight for _, _, weight in before) <= size * seconds
