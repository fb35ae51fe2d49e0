from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from zenlake.lake.ingest.freshness import MOST, Freshness


def test_it_is_how_long_the_oldest_row_waited_or_waits() -> None:
    fresh = Freshness()
    assert fresh.reached(0.0, (0, 0)) == 0.0
    fresh.seen(1.0, (10, 0))
    fresh.seen(2.0, (10, 5))
    fresh.seen(2.5, (10, 5))
    assert fresh.reached(3.0, (0, 0)) == 2.0
    assert fresh.reached(3.5, (10, 4)) == 2.5
    assert fresh.reached(4.0, (10, 5)) == 2.0
    assert fresh.reached(9.0, (10, 5)) == 2.0
    fresh.seen(9.0, (11, 5))
    assert fresh.reached(12.0, (10, 5)) == 3.0
    assert fresh.reached(12.0, (11, 5)) == 3.0


def test_what_waited_and_came_waits_no_longer() -> None:
    fresh = Freshness()
    fresh.seen(1.0, (10,))
    fresh.seen(5.0, (12,))
    assert fresh.waits(7.0, (9,)) == 6.0
    assert fresh.waits(8.0, (10,)) == 3.0
    assert fresh.waits(9.0, (12,)) == 0.0


@given(st.integers(1, 5 * MOST))
def test_however_often_it_looks_the_oldest_is_remembered(looks: int) -> None:
    fresh = Freshness()
    for n in range(looks):
        fresh.seen(float(n), (n + 1,))
    assert fresh.reached(float(looks), (0,)) == looks
