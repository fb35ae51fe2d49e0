from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from zenlake.node.incidents import DENIED, KINDS, LOGIN, MOST, PERIOD, Incident, Incidents
from zenlake.node.rejections import LOGIN as BY_LOGIN
from zenlake.node.rejections import Rejections


def test_equal_events_are_one_with_a_count_until_a_minute_has_passed() -> None:
    events, told = Incidents(), list[Incident]()
    events.tell = told.append
    for n in range(100):
        events.add(LOGIN, n * 0.1, peer="10.0.0.7", user="anna", reason="wrong password")
    (event,) = events.newest()
    assert (event.count, event.first, event.last) == (100, 0.0, 9.9)
    assert len(told) == 1
    events.add(LOGIN, 10 + PERIOD, peer="10.0.0.7", user="anna", reason="wrong password")
    assert len(told) == 2
    assert events.counts[LOGIN] == 101


def test_denials_are_told_apart_by_key() -> None:
    events = Incidents()
    for key in ("a", "b", "a"):
        events.add(DENIED, 1.0, peer="x", key=key, reason="put on ingress: denied")
    assert sorted((e.key, e.count) for e in events.newest()) == [("a", 2), ("b", 1)]


@given(st.lists(st.tuples(st.sampled_from(KINDS), st.text(), st.text(), st.floats(0, 1e6))))
def test_whatever_happens_so_many_are_kept_and_all_are_counted(
    told: list[tuple[str, str, str, float]],
) -> None:
    events = Incidents()
    for kind, peer, reason, now in told:
        events.add(kind, now, peer=peer, reason=reason)
    assert len(events.newest()) <= MOST
    assert sum(events.counts.values()) == len(told)


def test_rejections_are_events_with_the_host_and_the_user() -> None:
    rejections, events = Rejections(), Incidents()
    rejections.incidents = events
    rejections.add(BY_LOGIN, "tcp/10.0.0.7:5555", "no session: wrong", 1.0, "anna")
    (event,) = events.newest()
    assert (event.kind, event.peer, event.user) == (LOGIN, "10.0.0.7", "anna")
    assert event.plain(3.0)["last_seconds_ago"] == 2.0
