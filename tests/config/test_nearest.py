from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zenlake.config.nearest import distance, nearest

words = st.text(alphabet="abc_", max_size=8)


@pytest.mark.parametrize(
    ("one", "other", "apart"),
    [("", "", 0), ("", "abc", 3), ("lease", "leese", 1), ("lease", "lesae", 1), ("id", "mode", 3)],
)
def test_distance_counts_typing_mistakes(one: str, other: str, apart: int) -> None:
    assert distance(one, other) == apart


def test_the_nearest_word_is_found_if_one_is_near() -> None:
    keys = ["lease", "keep_alive", "batch_size"]
    assert nearest("leas", keys) == "lease"
    assert nearest("keepalive", keys) == "keep_alive"
    assert nearest("queue", keys) is None
    assert nearest("l" * 1000, keys) is None


@given(words, words)
def test_distance_is_symmetric_and_bounded_by_the_longer_word(one: str, other: str) -> None:
    apart = distance(one, other)
    assert apart == distance(other, one)
    assert abs(len(one) - len(other)) <= apart <= max(len(one), len(other))
    assert (apart == 0) == (one == other)
