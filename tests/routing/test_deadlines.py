"""Deadlines: the earliest first, whatever was over before."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from zenlake.routing.deadlines import NEVER, UNSWEPT, Deadlines, Timed


def test_nothing_is_waited_for_at_first() -> None:
    deadlines = Deadlines()
    assert deadlines.next() == NEVER
    assert deadlines.due(1e9) == []


def test_what_is_over_is_not_due() -> None:
    deadlines = Deadlines()
    one, two = Timed(1.0), Timed(2.0)
    deadlines.add(one)
    deadlines.add(two)
    deadlines.over(one)
    deadlines.over(one)
    assert deadlines.waiting == 1
    assert deadlines.next() == 2.0
    assert deadlines.due(1.5) == []
    assert deadlines.due(2.0) == [two]
    deadlines.over(two)
    assert deadlines.waiting == 0


def test_what_is_over_is_not_kept_for_ever() -> None:
    """A stranger may ask with endless patience again and again, and be answered at once."""
    deadlines = Deadlines()
    deadlines.add(Timed(5.0))
    for number in range(10_000):
        item = Timed(1e18 + number)
        deadlines.add(item)
        deadlines.over(item)
    assert len(deadlines) <= UNSWEPT + 1
    assert deadlines.next() == 5.0


@given(
    st.lists(st.tuples(st.sampled_from(["add", "over", "due"]), st.integers(0, 20)), max_size=300)
)
def test_it_is_what_a_list_would_be(steps: list[tuple[str, int]]) -> None:
    deadlines = Deadlines()
    waiting: list[Timed] = []
    for step, number in steps:
        if step == "add":
            item = Timed(float(number))
            waiting.append(item)
            deadlines.add(item)
        elif step == "over" and waiting:
            deadlines.over(waiting.pop(number % len(waiting)))
        elif step == "due":
            due = [item for item in waiting if item.deadline <= number]
            waiting = [item for item in waiting if item.deadline > number]
            assert deadlines.due(float(number)) == sorted(due, key=lambda item: item.deadline)
        assert deadlines.waiting == len(waiting)
        assert deadlines.next() == min((item.deadline for item in waiting), default=NEVER)
