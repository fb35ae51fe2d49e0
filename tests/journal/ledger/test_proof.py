from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.journal.heard import OTHER, Row, batch_of
from zenlake.journal.ledger.ledger import Ledger
from zenlake.journal.ledger.proof import Proven, proven
from zenlake.keys import ResolvedRange
from zenlake.recorded.time_bounds import HLC_BIAS

SECOND = 1_000_000_000
BEGAN = 1 << 31
"""Where the time of a row is zero, in seconds since 1970."""


def at(second: int) -> int:
    """A time as rows of a journal have it."""
    return (BEGAN + second << 32) - HLC_BIAS


def told(rows: list[Row]) -> dict[str, Any]:
    """What a recorder tells of these rows, over the bus."""
    ledger = Ledger()
    ledger.enter(0, batch_of(rows))
    found: dict[str, Any] = json.loads(json.dumps(ledger.report()))
    return found


def about(rows: list[Row], expr: str, start: int | None = None, end: int | None = None) -> Proven:
    first, last = (None if one is None else (BEGAN + one) * SECOND for one in (start, end))
    within = ResolvedRange(first, last)
    return proven((expr,), [told(rows)], within)


#: 3 and 4 never came, between the seconds 20 and 50.
CUT = [Row("robot/1", sn=n, hlc=at(10 * n)) for n in (0, 1, 2, 5, 6, 7)]
WHOLE = [Row("robot/2", sn=n, hlc=at(10 * n), zid=OTHER) for n in range(8)]


def test_an_answer_is_judged_by_the_sources_of_its_keys_alone() -> None:
    found = about(CUT + WHOLE, "robot/2")
    assert found.complete is True
    assert [source["key"] for source in found.sources] == ["robot/2"]
    assert about(CUT + WHOLE, "robot/*").complete is False
    assert about(CUT + WHOLE, "robot/*").missing == 2


@pytest.mark.parametrize(
    ("start", "end", "complete"),
    [(None, None, False), (30, 40, False), (None, 20, False), (51, None, True), (60, 90, True)],
)
def test_a_gap_counts_where_its_samples_may_lie(
    start: int | None, end: int | None, complete: bool
) -> None:
    found = about(CUT, "robot/1", start, end)
    assert found.complete is complete
    assert [source["gaps"] for source in found.sources] == [[] if complete else [[3, 4]]]


def test_a_gap_after_another_one_does_not_count_before_it() -> None:
    later = [*CUT, Row("robot/1", sn=9, hlc=at(90))]
    assert about(later, "robot/1", 20, 45).sources[0]["gaps"] == [[3, 4]]


def test_nobody_knows_about_samples_without_numbers() -> None:
    bare = Row("robot/3", zid=None)
    assert about([*WHOLE, bare], "robot/*").complete is None
    assert about([*WHOLE, bare], "robot/3").complete is None
    assert about([*WHOLE, bare], "robot/2").complete is True
    assert proven(("**",), []).complete is None


def test_what_a_recorder_could_not_keep_may_be_anything() -> None:
    ledger = told(WHOLE) | {"drops": {"the disk is full": 3}}
    assert proven(("robot/2",), [ledger]).complete is False


@given(
    came=st.permutations(range(12)).flatmap(
        lambda order: st.sets(st.sampled_from(order), min_size=1).map(
            lambda kept: [n for n in order if n in kept]
        )
    ),
    start=st.integers(0, 130),
    length=st.integers(0, 60),
)
def test_what_is_missing_in_a_range_is_never_passed_over(
    came: list[int], start: int, length: int
) -> None:
    found = about([Row("a", sn=n, hlc=at(10 * n)) for n in came], "a", start, start + length)
    listed = {n for source in found.sources for a, b in source["gaps"] for n in range(a, b + 1)}
    lost = set(range(min(came), max(came))) - set(came)
    wanted = {n for n in lost if start <= 10 * n <= start + length}
    assert wanted <= listed <= lost
    assert found.missing == len(listed)
