from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.keys.oracle import expressions
from tests.routing.policies import policy_of
from tests.steps import steps
from zenlake.keys.matching import includes, intersects
from zenlake.routing.policy import EGRESS, INGRESS, KINDS, Policy, PolicyGate, Subject

PUT, DELETE, QUERY, REPLY = (KINDS.index(name) for name in ("put", "delete", "query", "reply"))
DATA = ["put", "delete", "query", "reply"]


def gate(policy: Policy, who: Subject | None = None, flow: int = INGRESS) -> PolicyGate:
    interceptors = policy.for_neighbour(who or Subject())
    assert interceptors is not None
    found = interceptors.gate(flow)
    assert found is not None
    return found


def downsampling(*rules: tuple[str, float], **others: object) -> dict[str, object]:
    listed = [{"key_expr": key, "freq": freq} for key, freq in rules]
    return {"messages": ["put"], "rules": listed} | others


def low_pass(limit: int, *keys: str, **others: object) -> dict[str, object]:
    return {"messages": ["put"], "key_exprs": list(keys), "size_limit": limit} | others


# --- downsampling --------------------------------------------------------------------------------


def passed(one: PolicyGate, *times: float, key: str = "a", kind: int = PUT) -> list[float]:
    return [now for now in times if one.passes(kind, key, 0, now)]


def test_the_first_message_passes_and_the_next_after_a_period() -> None:
    one = gate(policy_of(downsampling=[downsampling(("a", 10))]))
    assert passed(one, 5.0, 5.05, 5.0999, 5.1, 5.15, 5.25) == [5.0, 5.1, 5.25]


def test_a_steady_rate_of_exactly_the_frequency_passes_whole() -> None:
    one = gate(policy_of(downsampling=[downsampling(("a", 10))]))
    times = [number / 10 for number in range(1000)]
    assert passed(one, *times) == times


def test_a_frequency_of_zero_lets_nothing_pass() -> None:
    one = gate(policy_of(downsampling=[downsampling(("a", 0))]))
    assert passed(one, 0.0, 1e9) == []


def test_the_first_rule_that_intersects_counts() -> None:
    one = gate(policy_of(downsampling=[downsampling(("a/*", 0), ("a/b", 1000), ("**", 1))]))
    assert passed(one, 0.0, 1.0, key="a/b") == []
    assert passed(one, 0.0, 0.5, 1.0, key="c") == [0.0, 1.0]
    # A key with wildcards meets rules for keys within it.
    assert passed(one, 9.0, key="a/**") == []


def test_all_keys_of_a_rule_share_its_clock() -> None:
    one = gate(policy_of(downsampling=[downsampling(("a/*", 1))]))
    assert one.passes(PUT, "a/b", 0, 0.0)
    assert not one.passes(PUT, "a/c", 0, 0.5)
    assert one.passes(PUT, "a/c", 0, 1.0)


def test_neighbours_and_flows_have_clocks_of_their_own() -> None:
    policy = policy_of(downsampling=[downsampling(("a", 1))])
    one, other = policy.for_neighbour(Subject()), policy.for_neighbour(Subject())
    assert one is not None
    assert other is not None
    assert one.allows(INGRESS, PUT, "a", 0.0)
    assert one.allows(EGRESS, PUT, "a", 0.0)
    assert other.allows(INGRESS, PUT, "a", 0.0)
    assert not one.allows(INGRESS, PUT, "a", 0.5)


def test_keys_and_messages_that_no_rule_concerns_always_pass() -> None:
    one = gate(policy_of(downsampling=[downsampling(("a", 0))]))
    assert passed(one, 0.0, 0.1, key="b") == [0.0, 0.1]
    assert passed(one, 0.0, 0.1, kind=DELETE) == [0.0, 0.1]


def test_a_message_must_pass_every_item() -> None:
    items = [downsampling(("a", 1)), downsampling(("a", 0.5))]
    assert passed(gate(policy_of(downsampling=items)), 0.0, 1.0, 2.0, 3.0, 4.0) == [0.0, 2.0, 4.0]


@pytest.mark.parametrize(
    ("others", "who", "applies"),
    [
        ({"interfaces": ["eth0"]}, Subject(interfaces=("eth0",)), True),
        ({"interfaces": ["eth0"]}, Subject(interfaces=("lo",)), False),
        ({"interfaces": ["eth0"]}, Subject(), False),
        ({"link_protocols": ["udp"]}, Subject(link_protocol="udp"), True),
        ({"link_protocols": ["udp"]}, Subject(link_protocol="tcp"), False),
        ({}, Subject(multicast=True), False),
    ],
)
def test_items_concern_the_neighbours_that_they_list(
    others: dict[str, object], who: Subject, applies: bool
) -> None:
    policy = policy_of(downsampling=[downsampling(("a", 1), **others)])
    assert (policy.for_neighbour(who) is not None) is applies


def test_an_item_for_one_flow_leaves_the_other_alone() -> None:
    policy = policy_of(downsampling=[downsampling(("a", 1), flows=["egress"])])
    interceptors = policy.for_neighbour(Subject())
    assert interceptors is not None
    assert interceptors.ingress is None
    assert interceptors.egress is not None


small_keys = st.one_of(expressions(2), st.sampled_from(["a", "b", "a/b", "**"]))
rules = st.lists(
    st.tuples(small_keys, st.sampled_from([0.0, 0.5, 1.0, 3.0])), min_size=1, max_size=4
)


@given(
    st.lists(st.tuples(rules, st.sets(st.sampled_from(DATA), min_size=1)), max_size=3),
    st.lists(st.tuples(small_keys, st.sampled_from(DATA), st.integers(0, 20)), max_size=30),
)
def test_downsampling_is_that_of_brute_force(
    items: list[tuple[list[tuple[str, float]], set[str]]], told: list[tuple[str, str, int]]
) -> None:
    listed = [downsampling(*found, messages=sorted(names)) for found, names in items]
    interceptors = policy_of(downsampling=listed).for_neighbour(Subject())
    last: dict[tuple[int, str], float] = {}
    now = 0.0
    for key, message, later in told:
        now += later / 8
        expected = True
        for place, (found, names) in enumerate(items):
            first = next((pair for pair in found if intersects(pair[0], key)), None)
            if message not in names or first is None or not expected:
                continue
            before = last.get((place, first[0]))
            waited = before is None or (now - before) * first[1] >= 1 - 1e-6
            expected = first[1] > 0 and waited
            if expected:
                last[place, first[0]] = now
        if interceptors is None:
            assert expected
        else:
            assert interceptors.allows(INGRESS, KINDS.index(message), key, now) is expected


def test_ten_thousand_rules_are_searched_as_quickly_as_ten() -> None:
    def searched(rules: int) -> tuple[int, int]:
        listed = [(f"robot/{number}/**", 1.0) for number in range(rules)]
        one = gate(policy_of(downsampling=[downsampling(*listed)]))
        for number in range(9):
            assert one.passes(PUT, f"robot/{number}/x", 0, 0.0)
            assert not one.passes(PUT, f"robot/{number}/y", 0, 0.5)
        return (
            steps(one.passes, PUT, "robot/9/x", 0, 0.0),
            steps(one.passes, PUT, "robot/9/y", 0, 0.5),
        )

    assert searched(10_000) == searched(10)


# --- low-pass ------------------------------------------------------------------------------------


def test_the_limit_itself_passes_and_one_more_byte_does_not() -> None:
    one = gate(policy_of(low_pass_filter=[low_pass(10, "a/**")]))
    assert one.passes(PUT, "a/b", 10, 0.0)
    assert not one.passes(PUT, "a/b", 11, 0.0)
    assert one.passes(PUT, "b", 11, 0.0)
    assert one.passes(DELETE, "a/b", 11, 0.0)


def test_a_limit_of_zero_lets_empty_messages_pass() -> None:
    one = gate(policy_of(low_pass_filter=[low_pass(0, "a")]))
    assert one.passes(PUT, "a", 0, 0.0)
    assert not one.passes(PUT, "a", 1, 0.0)


def test_the_smallest_limit_counts_even_on_the_same_key() -> None:
    filters = [low_pass(20, "**"), low_pass(10, "a"), low_pass(15, "a"), low_pass(12, "a")]
    one = gate(policy_of(low_pass_filter=filters))
    assert one.passes(PUT, "a", 10, 0.0)
    assert not one.passes(PUT, "a", 11, 0.0)
    assert one.passes(PUT, "b", 20, 0.0)


def test_a_filter_must_include_the_key() -> None:
    one = gate(policy_of(low_pass_filter=[low_pass(1, "a/b")]))
    assert one.passes(PUT, "a/*", 100, 0.0)
    assert not one.passes(PUT, "a/b", 100, 0.0)


def test_filters_concern_the_neighbours_and_flows_that_they_list() -> None:
    policy = policy_of(low_pass_filter=[low_pass(1, "a", interfaces=["eth0"], flows=["egress"])])
    assert policy.for_neighbour(Subject(interfaces=("lo",))) is None
    told = policy.for_neighbour(Subject(interfaces=("eth0",)))
    assert told is not None
    assert told.ingress is None
    assert told.egress is not None


@given(
    st.lists(
        st.tuples(
            st.integers(0, 9),
            st.lists(small_keys, min_size=1, max_size=3),
            st.sets(st.sampled_from(DATA), min_size=1),
        ),
        min_size=1,
        max_size=5,
    ),
    small_keys,
    st.sampled_from(DATA),
    st.integers(0, 12),
)
def test_limits_are_those_of_brute_force(
    filters: list[tuple[int, list[str], set[str]]], key: str, message: str, size: int
) -> None:
    listed = [low_pass(limit, *keys, messages=sorted(names)) for limit, keys, names in filters]
    limits = [
        limit
        for limit, keys, names in filters
        if message in names and any(includes(one, key) for one in keys)
    ]
    told = gate(policy_of(low_pass_filter=listed))
    assert told.passes(KINDS.index(message), key, size, 0.0) is all(size <= one for one in limits)


def test_declarations_have_no_limit() -> None:
    one = gate(policy_of(low_pass_filter=[low_pass(0, "**", messages=DATA)]))
    for kind in range(REPLY + 1, len(KINDS)):
        assert not one.kinds >> kind & 1
        assert one.passes(kind, "a", 100, 0.0)
