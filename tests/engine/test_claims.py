from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from zenlake.engine.claims import HISTORY, JOURNAL, NEWEST, Claims
from zenlake.keys import includes

EXPRS = ["a/**", "a/b", "**", "c/*"]
KEYS = ["a/b", "a/c", "c/d", "e"]


def test_a_storage_replies_for_the_present_and_a_journal_for_the_past() -> None:
    claims = Claims()
    journal = claims.claim("**", JOURNAL, JOURNAL)
    storage = claims.claim("a/**", HISTORY, NEWEST)
    assert claims.is_first(storage, "a/b", past=False)
    assert not claims.is_first(journal, "a/b", past=False)
    assert claims.is_first(journal, "a/b", past=True)
    assert claims.is_first(journal, "c", past=False)
    claims.release(storage)
    assert claims.is_first(journal, "a/b", past=False)


@given(
    st.lists(st.tuples(st.sampled_from(EXPRS), st.integers(0, 3), st.integers(0, 3)), min_size=1),
    st.sampled_from(KEYS),
    st.booleans(),
)
def test_exactly_one_of_those_that_claim_a_key_replies_for_it(
    wanted: list[tuple[str, int, int]], key: str, past: bool
) -> None:
    claims = Claims()
    made = [claims.claim(*each) for each in wanted]
    able = [claim for claim in made if includes(claim.expr, key)]
    first = [claim for claim in able if claims.is_first(claim, key, past=past)]
    assert len(first) == (1 if able else 0)
