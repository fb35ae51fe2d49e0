"""Pauses between tries grow, and not for ever."""

from __future__ import annotations

import pytest

from zenlake.clock.backoff import Backoff


@pytest.mark.parametrize(
    ("backoff", "pauses"),
    [
        (Backoff(0.5, 3.0), [0.5, 1.0, 2.0, 3.0, 3.0]),
        (Backoff(1.0, 20.0, 3.0), [1.0, 3.0, 9.0, 20.0, 20.0]),
        (Backoff(1.0, 4.0, 1.0), [1.0, 1.0, 1.0, 1.0, 1.0]),
        (Backoff(5.0, 2.0), [5.0, 2.0, 2.0, 2.0, 2.0]),
        (Backoff(1.0, 0.0), [1.0, 2.0, 4.0, 8.0, 16.0]),
        (Backoff(0.0, 4.0), [0.0, 0.0, 0.0, 0.0, 0.0]),
    ],
)
def test_each_pause_is_longer_than_the_one_before_up_to_the_bound(
    backoff: Backoff, pauses: list[float]
) -> None:
    pause, found = 0.0, []
    for _ in pauses:
        pause = backoff.after(pause)
        found.append(pause)
    assert found == pauses
