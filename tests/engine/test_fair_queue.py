"""Askers in turn, whatever each of them has waiting."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from zenlake.engine.fair_queue import FairQueue


def filled(items: list[tuple[str, int]]) -> FairQueue[int]:
    queue: FairQueue[int] = FairQueue()
    for asker, item in items:
        queue.add(asker, item)
    return queue


def drained(queue: FairQueue[int]) -> list[tuple[str, int]]:
    taken = []
    while (asker := queue.next_asker()) is not None:
        taken.append((str(asker), queue.take(asker)))
    return taken


def test_who_asks_much_waits_behind_itself() -> None:
    queue = filled([("much", 1), ("much", 2), ("much", 3), ("little", 4)])
    assert drained(queue) == [("much", 1), ("little", 4), ("much", 2), ("much", 3)]
    assert (len(queue), queue.waiting_of("much")) == (0, 0)


def test_an_asker_that_may_not_have_a_turn_is_passed_over_and_stays_first() -> None:
    queue = filled([("busy", 1), ("free", 2)])
    assert queue.next_asker(lambda asker: asker != "busy") == "free"
    assert queue.next_asker(lambda _: False) is None
    assert queue.next_asker() == "busy"


def test_what_gives_up_has_had_no_turn() -> None:
    queue = filled([("one", 1), ("one", 2), ("other", 3)])
    queue.remove("one", 1)
    assert (queue.first_of("one"), queue.next_asker()) == (2, "one")


@given(st.lists(st.tuples(st.sampled_from("abc"), st.integers())))
def test_each_asker_keeps_its_order_and_none_has_two_turns_while_another_waits(
    items: list[tuple[str, int]],
) -> None:
    taken = drained(filled(items))
    for asker in "abc":
        assert [i for a, i in taken if a == asker] == [i for a, i in items if a == asker]
    left = Counter(asker for asker, _ in items)
    for (asker, _), (following, _) in pairwise(taken):
        left[asker] -= 1
        if following == asker:
            assert not any(count for other, count in left.items() if other != asker)
