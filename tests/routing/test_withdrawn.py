"""What is declared no more: who is told, and for how long."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from zenlake.routing.resources import SUBSCRIBER, TOKEN
from zenlake.routing.trees import Trees
from zenlake.routing.withdrawn import REMEMBERED, WITHDRAWN, Withdrawn

ME, NEW, OLD, FAR = b"\x01", b"\x02", b"\x03", b"\x04"
LINK = 7


def line(*routers: bytes) -> Trees:
    """Trees of routers in a row, as the first of them sees them."""
    links: dict[bytes, dict[bytes, int]] = {zid: {} for zid in routers}
    for one, other in pairwise(routers):
        links[one][other] = links[other][one] = 0
    return Trees(ME, links)


def test_who_was_there_is_told_for_a_while_and_who_came_later_is_not() -> None:
    withdrawn = Withdrawn()
    withdrawn.known([ME, OLD], 0.0)
    withdrawn.withdraw(ME, SUBSCRIBER, "a", 1.0)
    withdrawn.known([ME, OLD, NEW], 2.0)
    assert withdrawn.missed(ME, LINK, OLD, line(ME, OLD), 2.0) == [(SUBSCRIBER, "a")]
    assert withdrawn.missed(ME, LINK, NEW, line(ME, NEW), 2.0) == []
    assert withdrawn.lately(ME, SUBSCRIBER, "a", 2.0)
    late = 2.0 + REMEMBERED
    assert withdrawn.missed(ME, LINK, OLD, line(ME, OLD), late) == []
    assert not withdrawn.lately(ME, SUBSCRIBER, "a", late)


def test_a_newcomer_is_told_once_somebody_is_behind_it_who_was_there() -> None:
    withdrawn = Withdrawn()
    withdrawn.known([ME, OLD], 0.0)
    withdrawn.withdraw(ME, TOKEN, "a", 1.0)
    withdrawn.known([ME, OLD, NEW, FAR], 2.0)
    # Another newcomer behind it changes nothing.
    assert withdrawn.missed(ME, LINK, NEW, line(ME, NEW, FAR), 2.0) == []
    assert withdrawn.spared() == [(LINK, ME)]
    assert withdrawn.missed(ME, LINK, NEW, line(ME, NEW, FAR, OLD), 3.0) == [(TOKEN, "a")]
    assert withdrawn.spared() == []
    # Who was away has forgotten everything.
    withdrawn.known([ME, NEW, FAR], 4.0)
    withdrawn.known([ME, OLD, NEW, FAR], 5.0)
    assert withdrawn.missed(ME, LINK, NEW, line(ME, NEW, FAR, OLD), 5.0) == []


def test_what_is_declared_again_is_not_withdrawn_and_a_link_that_is_gone_is_not_looked_at() -> None:
    withdrawn = Withdrawn()
    withdrawn.known([ME], 0.0)
    withdrawn.withdraw(ME, SUBSCRIBER, "a", 1.0)
    withdrawn.known([NEW], 2.0)
    assert withdrawn.missed(ME, LINK, NEW, line(ME, NEW), 2.0) == []
    withdrawn.unlinked(LINK)
    assert withdrawn.spared() == []
    withdrawn.declare(ME, SUBSCRIBER, "a")
    assert not withdrawn.holds(ME, SUBSCRIBER, "a")
    withdrawn.withdraw(OLD, SUBSCRIBER, "a", 1.0)
    withdrawn.keep({ME: {}})
    assert not withdrawn.holds(OLD, SUBSCRIBER, "a")


def test_so_many_are_remembered_the_newest() -> None:
    withdrawn = Withdrawn()
    for n in range(WITHDRAWN + 1):
        withdrawn.withdraw(ME, SUBSCRIBER, str(n), float(n))
    assert len(withdrawn.rows[ME]) <= WITHDRAWN
    assert not withdrawn.holds(ME, SUBSCRIBER, "0")
    assert withdrawn.holds(ME, SUBSCRIBER, str(WITHDRAWN))


@given(
    came=st.lists(st.integers(0, 20), min_size=1, max_size=6),
    withdrawn_at=st.lists(st.integers(0, 20), max_size=6),
)
def test_a_row_of_routers_hears_all_that_the_oldest_of_them_may_have_missed(
    came: list[int], withdrawn_at: list[int]
) -> None:
    withdrawn = Withdrawn()
    others = [bytes([2 + n]) for n in range(len(came))]
    for now in sorted(set(came)):
        there = [zid for when, zid in zip(came, others, strict=True) if when <= now]
        withdrawn.known(there, float(now))
    for n, when in enumerate(withdrawn_at):
        withdrawn.withdraw(ME, SUBSCRIBER, str(n), float(when))
    found = withdrawn.missed(ME, LINK, others[0], line(ME, *others), 20.0)
    missed = {str(n) for n, when in enumerate(withdrawn_at) if when >= min(came)}
    assert {key for _, key in found} == missed
    assert bool(withdrawn.spared()) == (len(missed) < len(withdrawn_at))
