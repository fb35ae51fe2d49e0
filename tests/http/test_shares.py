"""What clients share, in total and by address."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zenlake.http.answer_pace import AnswerPace
from zenlake.http.connections import Connections
from zenlake.http.limits import HttpLimits
from zenlake.http.shares import Shares, holder_of


def test_one_address_leaves_a_quarter_to_others() -> None:
    shares = Shares(8)
    assert sum(shares.take("a") for _ in range(10)) == 6
    assert shares.refusal("a") == "address"
    assert sum(shares.take("b") for _ in range(10)) == 2
    assert shares.refusal("b") == "all"
    shares.give_back("a")
    assert shares.take("b")


@pytest.mark.parametrize(
    ("address", "holder"),
    [
        ("192.0.2.1", "192.0.2.1"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::"),
        ("2001:db8:1:2::9%eth0", "2001:db8:1:2::"),
        ("::ffff:192.0.2.1", "192.0.2.1"),
        ("no:address", "no:address"),
    ],
)
def test_a_network_of_ipv6_is_one_client(address: str, holder: str) -> None:
    assert holder_of(address) == holder


@given(st.lists(st.tuples(st.sampled_from("abc"), st.integers(1, 9))))
def test_what_is_held_stays_within_bounds_and_is_forgotten(takes: list[tuple[str, int]]) -> None:
    shares = Shares(20)
    taken = [(who, amount) for who, amount in takes if shares.take(who, amount)]
    for who in "abc":
        assert sum(amount for name, amount in taken if name == who) <= 15
    assert shares.taken == sum(amount for _, amount in taken) <= 20
    for who, amount in taken:
        shares.give_back(who, amount)
    assert (shares.taken, shares.holders) == (0, 0)


def test_connections_leave_descriptors_for_the_bus_and_the_disk() -> None:
    assert HttpLimits().within(1500).connections == 187
    assert HttpLimits().within(1 << 20).connections == HttpLimits().connections
    assert HttpLimits().within(0) == HttpLimits()


def test_a_seat_gives_back_all_that_it_holds_once() -> None:
    connections = Connections(HttpLimits(connections=4, buffered_bytes=100))
    seat = connections.admit("a")
    assert seat is not None
    assert seat.hold(60)
    assert not seat.hold(80)
    assert seat.hold(70)
    assert connections.memory.taken == 70
    seat.leave()
    seat.leave()
    assert (connections.places.taken, connections.memory.taken) == (0, 0)


def test_a_client_must_take_its_answer_fast_enough() -> None:
    pace = AnswerPace(10.0, 100)
    assert not pace.is_too_slow(0.0, 5000)
    assert not pace.is_too_slow(9.0, 5000)
    assert not pace.is_too_slow(10.0, 4000)
    assert pace.is_too_slow(20.0, 3001)
    pace.restart()
    assert not pace.is_too_slow(21.0, 3001)
