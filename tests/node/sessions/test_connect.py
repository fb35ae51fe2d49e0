from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zenlake.clock.backoff import Backoff
from zenlake.node.sessions.connect import ConnectPlan


def test_a_peer_keeps_all_its_endpoints() -> None:
    plan = ConnectPlan(False)
    plan.configure(("a", "b"), 0.0)
    one, two = plan.due(0.0)
    assert (one.endpoint, two.endpoint) == ("a", "b")
    assert plan.due(0.0) == []
    assert plan.deadline == float("inf")
    plan.over(one.id, False, "refused", 5.0)
    assert plan.deadline == 6.0
    assert plan.due(5.9) == []
    assert [attempt.endpoint for attempt in plan.due(6.0)] == ["a"]


def test_pauses_grow_to_a_limit_and_begin_anew_after_success() -> None:
    plan = ConnectPlan(False, Backoff(1.0, 4.0))
    plan.configure(("a",), 0.0)
    now, pauses = 0.0, []
    for _ in range(5):
        [attempt] = plan.due(now)
        plan.over(attempt.id, False, "refused", now)
        pauses.append(plan.deadline - now)
        now = plan.deadline
    assert pauses == [1.0, 2.0, 4.0, 4.0, 4.0]
    [attempt] = plan.due(now)
    plan.opened(attempt.id)
    plan.over(attempt.id, True, "lost", now)
    pauses = [plan.deadline - now]
    for _ in range(7):
        now = plan.deadline
        [attempt] = plan.due(now)
        plan.over(attempt.id, False, "refused", now)
        pauses.append(plan.deadline - now)
    assert pauses == pytest.approx([0.01, 0.1, 0.2, 0.4, 0.8, 1.0, 2.0, 4.0])


def test_what_was_lost_is_never_tried_at_longer_periods_than_configured() -> None:
    plan = ConnectPlan(False, Backoff(0.05, 0.1))
    plan.configure(("a",), 0.0)
    [attempt] = plan.due(0.0)
    plan.over(attempt.id, True, "lost", 0.0)
    for pause in (0.05, 0.1, 0.1):
        now = plan.deadline
        [attempt] = plan.due(now)
        plan.over(attempt.id, False, "refused", now)
        assert plan.deadline == pytest.approx(now + pause)


def test_a_client_takes_its_endpoints_in_turn_without_waiting_between_them() -> None:
    plan = ConnectPlan(True)
    plan.configure(("a", "b"), 0.0)
    [first] = plan.due(0.0)
    plan.over(first.id, False, "refused", 0.0)
    [second] = plan.due(0.0)
    assert (first.endpoint, second.endpoint) == ("a", "b")
    plan.over(second.id, False, "refused", 0.0)
    assert plan.due(0.0) == []
    assert plan.deadline == 1.0
    assert plan.due(1.0)[0].endpoint == "a"


def test_a_found_node_is_tried_at_each_of_its_locators() -> None:
    plan = ConnectPlan(False)
    attempt = plan.find(("x", "y", "z"), b"\x01")
    assert attempt is not None
    assert plan.find(("x",), b"\x01") is None  # under way already
    tried = [attempt.endpoint]
    while attempt is not None:
        plan.over(attempt.id, False, "refused", 0.0)
        assert (plan.deadline <= 0.0) is (len(tried) < 3)
        following = plan.due(0.0)
        attempt = following[0] if following else None
        if attempt is not None:
            assert attempt.expected == b"\x01"
            tried.append(attempt.endpoint)
    assert tried == ["x", "y", "z"]
    assert plan.attempts == {}


def test_a_found_node_that_was_reached_is_not_tried_elsewhere() -> None:
    plan = ConnectPlan(False)
    attempt = plan.find(("x", "y"), b"\x01")
    assert attempt is not None
    plan.over(attempt.id, True, "lost", 0.0)
    assert plan.due(0.0) == []


def test_a_client_with_endpoints_does_not_follow_what_is_found() -> None:
    plan = ConnectPlan(True)
    assert plan.find(("x",), b"\x01") is not None
    assert plan.find(("y",), b"\x02") is None
    configured = ConnectPlan(True)
    configured.configure(("a",), 0.0)
    assert configured.find(("x",), b"\x01") is None


def test_an_endpoint_that_leads_to_a_known_node_waits_for_its_end() -> None:
    plan = ConnectPlan(False)
    plan.configure(("a",), 0.0)
    [attempt] = plan.due(0.0)
    plan.taken(attempt.id, b"\x01", 0.0)
    plan.over(attempt.id, False, "connected already", 0.0)
    assert plan.deadline == float("inf")
    plan.released(b"\x02", 5.0)
    assert plan.deadline == float("inf")
    plan.released(b"\x01", 5.0)
    assert plan.deadline == 5.01


def test_a_stopped_plan_wants_nothing() -> None:
    plan = ConnectPlan(False)
    plan.configure(("a",), 0.0)
    plan.stopped = True
    assert plan.due(0.0) == []
    assert plan.find(("x",), b"\x01") is None


@given(st.booleans(), st.lists(st.tuples(st.booleans(), st.floats(0, 10)), max_size=30))
def test_no_endpoint_is_ever_tried_twice_at_once(
    single: bool, events: list[tuple[bool, float]]
) -> None:
    plan = ConnectPlan(single)
    plan.configure(("a", "b", "c"), 0.0)
    now, busy = 0.0, []
    for succeeded, pause in events:
        now += pause
        busy += plan.due(now)
        assert len({attempt.endpoint for attempt in busy}) == len(busy) <= (1 if single else 3)
        if busy:
            ended = busy.pop(0)
            if succeeded:
                plan.opened(ended.id)
            plan.over(ended.id, succeeded, "over", now)
        assert plan.deadline < float("inf") or len(busy) == (1 if single else 3)


def test_other_endpoints_keep_what_they_share_with_the_old_ones() -> None:
    plan = ConnectPlan(False)
    plan.configure(("tcp/a:1", "tcp/b:1"), 0.0)
    first, second = plan.due(0.0)
    plan.opened(first.id)
    plan.opened(second.id)
    assert plan.change(("tcp/b:1", "tcp/c:1"), 5.0) == [first.id]
    assert [endpoint.text for endpoint in plan.endpoints] == ["tcp/b:1", "tcp/c:1"]
    assert [attempt.endpoint for attempt in plan.due(5.0)] == ["tcp/c:1"]
    plan.over(first.id, True, "closed", 6.0)
    assert plan.due(100.0) == []
    assert plan.change((), 7.0) == [second.id, 3]
    assert plan.deadline == float("inf")
