from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from zenlake.cli.rate import Spread, Window
from zenlake.cli.show import scaled
from zenlake.cli.top import Look, Row, rates

numbers = st.lists(st.floats(0, 1e6), min_size=1, max_size=50)


@given(numbers)
def test_a_mean_lies_between_the_least_and_the_most(some: list[float]) -> None:
    spread = Spread.of(some)
    slack = 1e-9 * max(1.0, spread.most)
    assert spread.least - slack <= spread.mean <= spread.most + slack
    assert 0 <= spread.deviation <= spread.most - spread.least + slack


def test_a_steady_beat_has_no_spread() -> None:
    window = Window(100)
    assert window.periods() is None
    assert window.sizes() is None
    for beat in range(11):
        window.add(beat * 0.5, 10)
    periods, sizes = window.periods(), window.sizes()
    assert periods is not None
    assert sizes is not None
    assert (periods.mean, periods.least, periods.most) == (0.5, 0.5, 0.5)
    assert periods.deviation == 0
    assert sizes.mean == 10
    assert window.bandwidth() == 20


def test_only_the_last_ones_count_and_enough_is_enough() -> None:
    window = Window(3, enough=5)
    for beat in range(9):
        window.add(float(beat), beat)
    assert window.full.is_set()
    assert window.count == 5
    assert window.remembered() == 3
    sizes = window.sizes()
    assert sizes is not None
    assert (sizes.least, sizes.most) == (2, 4)


def test_nothing_is_no_rate() -> None:
    window = Window(3)
    assert window.bandwidth() == 0
    window.add(1.0, 5)
    window.add(1.0, 5)
    assert window.bandwidth() == 0


def test_bytes_are_scaled_for_people() -> None:
    assert [scaled(size) for size in (0, 999, 1000, 2_500_000, 3e12)] == [
        "0 B",
        "999 B",
        "1.00 kB",
        "2.50 MB",
        "3000.00 GB",
    ]


def test_rates_are_differences_and_never_negative() -> None:
    before = Look(1.0, {("a", "x"): Row(10, 100), ("b", "x"): Row(50, 500)})
    after = Look(3.0, {("a", "x"): Row(30, 300), ("b", "x"): Row(1, 1), ("c", "y"): Row(2, 4)})
    found = [(key, who, flow.samples, flow.size) for key, who, flow in rates(before, after)]
    assert found == [("a", "x", 10, 100), ("c", "y", 1, 2), ("b", "x", 0, 0)]
    assert not math.isnan(rates(before, before)[0][2].samples)
