from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from zenlake.cli.measure import BW, HZ, bandwidth, frequency, table
from zenlake.cli.rate import MOST_KEYS, OTHERS, Spread, Window, Windows
from zenlake.cli.show import scaled
from zenlake.cli.top import Look, TopRow, rates

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
    windows = Windows(3, enough=5)
    for beat in range(9):
        windows.add("a", float(beat), beat)
    assert windows.full.is_set()
    ((key, window),) = windows.by_key()
    assert (key, window.count, window.remembered()) == ("a", 5, 3)
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
    before = Look(1.0, {("a", "x"): TopRow(10, 100), ("b", "x"): TopRow(50, 500)})
    after = Look(
        3.0, {("a", "x"): TopRow(30, 300), ("b", "x"): TopRow(1, 1), ("c", "y"): TopRow(2, 4)}
    )
    found = [(key, who, flow.samples, flow.size) for key, who, flow in rates(before, after)]
    assert found == [("a", "x", 10, 100), ("c", "y", 1, 2), ("b", "x", 0, 0)]
    assert not math.isnan(rates(before, before)[0][2].samples)


def test_each_key_has_a_line_in_the_order_people_count() -> None:
    windows = Windows(100)
    for beat in range(3):
        for number in (10, 2):
            windows.add(f"robot/{number}/pose", beat * 0.5, 1500)
    told = [(key, frequency(window), bandwidth(window)) for key, window in windows.by_key()]
    rates = [(key, (*hz[1], "3")) for key, hz, _ in told if hz is not None]
    assert table(HZ, rates, 80) == [
        "KEY                  HZ        MIN        MAX   STD DEV   SAMPLES",
        "robot/2/pose      2.000  500.00 ms  500.00 ms   0.00 ms         3",
        "robot/10/pose     2.000  500.00 ms  500.00 ms   0.00 ms         3",
    ]
    sizes = [(key, (*bw[1], "3")) for key, _, bw in told if bw is not None]
    assert table(BW, sizes, 80)[1:] == [
        "robot/2/pose    3.00 kB   1.50 kB   1.50 kB   1.50 kB         3",
        "robot/10/pose   3.00 kB   1.50 kB   1.50 kB   1.50 kB         3",
    ]


@given(st.lists(st.text("ab/", min_size=1, max_size=90), min_size=1, max_size=5))
def test_a_table_fits_the_terminal(keys: list[str]) -> None:
    rows = [(key, ("1.0", "2.00 ms", "3.00 ms", "4.00 ms", "5")) for key in keys]
    assert all(len(line) <= 80 for line in table(HZ, rows, 80))


def test_more_keys_than_can_be_told_apart_are_measured_together() -> None:
    windows = Windows(10)
    for number in range(MOST_KEYS + 5):
        windows.add(f"k/{number}", 1.0, 1)
    found = dict(windows.by_key())
    assert len(found) == MOST_KEYS + 1
    assert found[OTHERS].count == 5
