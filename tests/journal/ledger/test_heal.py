from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from zenlake.journal.ledger.cache_queries import ATTEMPTS, MOST_WAITING
from zenlake.journal.ledger.heal import LATE, MOST_NUMBERS, HealingPlan
from zenlake.journal.ledger.ledger import Opened


def opened(first: int = 1, last: int = 2, source: str = "ab:1", key: str = "k") -> Opened:
    return Opened(0, source, key, first, last)


def test_a_source_is_asked_a_moment_after_its_gap_opens() -> None:
    plan = HealingPlan()
    plan.opened(opened(), 10.0)
    query = plan.next()
    assert query is not None
    assert query.due == 10.0 + LATE
    assert plan.wanted(query, [(1, 2), (7, 8)]) == (1, 8)


def test_what_came_meanwhile_is_not_asked_for() -> None:
    plan = HealingPlan()
    plan.opened(opened(), 0.0)
    query = plan.next()
    assert query is not None
    assert plan.wanted(query, []) is None
    plan.replied(query, [], 1.0)
    assert plan.next() is None


def test_a_source_that_gives_nothing_is_given_up_and_not_asked_for_the_same_again() -> None:
    plan = HealingPlan()
    plan.opened(opened(), 0.0)
    for asked in range(ATTEMPTS):
        query = plan.next()
        assert query is not None
        assert query.attempts == asked
        plan.replied(query, [(1, 2)], query.due)
    assert plan.next() is None
    assert plan.abandoned == 1
    plan.opened(opened(9, 9), 100.0)
    query = plan.next()
    assert query is not None
    assert plan.wanted(query, [(1, 2), (9, 9)]) == (9, 9)


def test_ros_publishers_and_wildcards_are_not_asked() -> None:
    plan = HealingPlan()
    plan.opened(opened(source="ros2:00"), 0.0)
    plan.opened(opened(key="a/**"), 0.0)
    assert len(plan) == 0


def test_of_a_huge_gap_the_newest_numbers_are_asked_for() -> None:
    plan = HealingPlan()
    plan.opened(opened(), 0.0)
    query = plan.next()
    assert query is not None
    wanted = plan.wanted(query, [(0, 10**9)])
    assert wanted == (10**9 - MOST_NUMBERS + 1, 10**9)


def test_more_sources_than_the_bound_are_counted() -> None:
    plan = HealingPlan()
    for number in range(MOST_WAITING + 3):
        plan.opened(opened(source=f"ab:{number}"), 0.0)
    assert (len(plan), plan.refused) == (MOST_WAITING, 3)


@given(st.lists(st.tuples(st.floats(0, 10), st.booleans()), max_size=40))
def test_questions_to_one_source_are_bounded_by_its_gaps(steps: list[tuple[float, bool]]) -> None:
    """However gaps open, each gap leads to no more questions than there are pauses."""
    plan, now, questions = HealingPlan(), 0.0, 0
    gaps: list[tuple[int, int]] = []
    for step, opens in steps:
        now += step
        if opens:
            first = 10 * len(gaps)
            gaps.append((first, first + 1))
            plan.opened(opened(first, first + 1), now)
        query = plan.next()
        if query is not None and query.due <= now:
            assert plan.wanted(query, gaps) is not None
            questions += 1
            plan.replied(query, gaps, now)
    assert questions <= ATTEMPTS * len(gaps)


def test_gaps_are_asked_for_before_what_is_only_told() -> None:
    plan = HealingPlan()
    plan.opened(opened(150, 150), 0.0)
    query = plan.next()
    assert query is not None
    assert plan.wanted(query, [(150, 150)], (200, 210)) == (150, 210)
    forged = (200, 2**31)
    assert plan.wanted(query, [(150, 150)], forged) == (150, 150 + MOST_NUMBERS - 1)
    assert plan.wanted(query, [(3, 3), (10**6, 10**6)], (10**6 + 1, 2**31)) == (
        10**6 - MOST_NUMBERS + 1,
        10**6,
    )
    assert plan.wanted(query, [], (200, 210)) == (200, 210)


def test_what_was_told_in_vain_does_not_keep_later_gaps_from_being_asked_for() -> None:
    plan = HealingPlan()
    plan.opened(opened(150, 150), 0.0)
    forged = (200, 2**31)
    # The gap is given up, and then what there was no room for.
    for _ in range(2 * ATTEMPTS):
        query = plan.next()
        assert query is not None
        assert plan.wanted(query, [(150, 150)], forged) is not None
        plan.replied(query, [(150, 150)], query.due, forged)
    assert plan.next() is None
    assert plan.abandoned == 2
    plan.opened(opened(300, 300), 100.0)
    query = plan.next()
    assert query is not None
    assert plan.wanted(query, [(150, 150)], (320, 2**31)) is None
    assert plan.wanted(query, [(150, 150), (300, 300)], (320, 2**31)) == (300, 300)
    # The source itself puts it right: that is worth a question.
    assert plan.wanted(query, [(150, 150)], (320, 330)) == (320, 330)
