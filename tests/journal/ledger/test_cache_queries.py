from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from zenlake.journal.ledger.cache_queries import ATTEMPTS, PAUSES, CacheQuery


def test_a_query_in_vain_is_made_again_after_a_longer_pause_and_then_given_up() -> None:
    query = CacheQuery(10.0)
    made = [query.due]
    while query.again(query.due):
        made.append(query.due)
    assert made == [10.0, 11.0, 16.0]


@given(st.lists(st.floats(0, 60), min_size=ATTEMPTS, max_size=ATTEMPTS))
def test_no_query_is_made_sooner_than_planned_nor_more_often(late: list[float]) -> None:
    query = CacheQuery(0.0)
    pauses = iter(PAUSES)
    for number, delay in enumerate(late, 1):
        now = query.due + delay
        assert query.again(now) is (number < ATTEMPTS)
        if number < ATTEMPTS:
            assert query.due == now + next(pauses)
