from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zenlake.expr import compiled, parse
from zenlake.routing.filters import (
    BUDGET,
    PAYLOAD_MAX,
    TEXT_MAX,
    FilterNotAsked,
    SampleFilters,
    SubscriberFilter,
    any_of,
    asked_by_routers,
    fields_of,
    heard_filter,
)

TEXTS = ["n<2", "n>=2", "n=1 OR n=3", "NOT n=1", "m IS NULL", "n<2 AND m=1"]


@given(st.lists(st.sampled_from(TEXTS), min_size=1), st.integers(0, 4))
def test_one_filter_for_several_is_true_when_one_of_them_is(texts: list[str], n: int) -> None:
    fields = fields_of("k", True, b'{"n": %d}' % n, "")
    one = SubscriberFilter(any_of(texts))
    assert one.holds(fields) == any(compiled(parse(text))(fields) is True for text in texts)


def test_too_many_for_one_filter_are_none() -> None:
    assert any_of([f"n={n}" for n in range(TEXT_MAX)]) == ""
    assert any_of(["n=1", "n=1"]) == "n=1"


@pytest.mark.parametrize("text", ["time()>now(-1s)", "year(time())=2026", "n=1 OR second(now())<3"])
def test_filters_about_time_are_not_for_routers(text: str) -> None:
    assert asked_by_routers(text) is None
    with pytest.raises(FilterNotAsked, match="about time"):
        heard_filter(text.encode())


def test_who_looks_too_much_looks_no_more_until_time_has_passed() -> None:
    filters = SampleFilters()
    asked = [SubscriberFilter("n<2")]
    assert not filters.affords(asked, PAYLOAD_MAX + 1, 0.0)
    looked = 0
    while filters.affords(asked, PAYLOAD_MAX, 0.0):
        looked += 1
    assert looked == pytest.approx(BUDGET / PAYLOAD_MAX, rel=0.1)
    assert filters.unasked == 2
    assert not filters.affords(asked, PAYLOAD_MAX, 0.0)
    assert filters.affords(asked, PAYLOAD_MAX, 0.5)


def test_what_a_router_may_read_otherwise_than_a_subscriber_passes() -> None:
    filters = SampleFilters()
    looks, asks_keys = SubscriberFilter("n<2"), SubscriberFilter("key()='a'")
    for encoding in ("application/cbor", "unknown(65535);application/msgpack"):
        assert not filters.affords([asks_keys, looks], 10, 0.0, encoding)
        assert filters.affords([asks_keys], 10, 0.0, encoding)
    assert filters.unasked == 2
    for encoding in ("zenoh/bytes", "application/json", "text/plain;x"):
        assert filters.affords([looks], 10, 0.0, encoding)


def test_a_pattern_cannot_take_long() -> None:
    fields = fields_of("k", True, b'{"text": "' + b"a" * (PAYLOAD_MAX - 20) + b'"}', "")
    wild = "%" + "a_" * 60 + "b%"
    for pattern in ("%" + "a" * 900 + "b%", wild, "%a" * 400 + "%b"):
        assert not SubscriberFilter(f"text LIKE '{pattern}'").holds(fields)
    with pytest.raises(FilterNotAsked, match="at most 128"):
        SubscriberFilter(f"text LIKE '{wild[:-1]}{wild[1:]}'")
    # A search with `_` is several walks, and so may be a search for what a payload says.
    plain, costly = SubscriberFilter("text LIKE '%a_%'"), SubscriberFilter(f"text LIKE '{wild}'")
    assert (plain.weight, costly.weight) == (2, 5)
    assert SubscriberFilter("NOT (text LIKE other OR a LIKE 'b_')").weight == 7
