"""What clients share, in total and by address."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zenlake.http.answer_pace import AnswerPace
from zenlake.http.connections import Connections
from zenlake.http.limits import HttpLimits
from zenlake.http.shares import Holding, Shares, holder_of


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
    connections = Connections(HttpLimits(connections=4, buffered_bytes=100, unsent_bytes=100))
    seat = connections.admit("a")
    assert seat is not None
    assert seat.reading.hold(60)
    assert not seat.reading.hold(80)
    assert seat.reading.hold(70)
    assert connections.memory.taken == 70
    assert seat.making.hold(75)
    seat.waiting.force(200)
    assert connections.answers.taken == 275
    seat.leave()
    seat.leave()
    assert (connections.places.taken, connections.memory.taken) == (0, 0)
    assert connections.answers.taken == 0
    # What is made for a client that has gone holds nothing.
    assert not seat.making.hold(1)
    seat.waiting.force(1)
    assert connections.answers.taken == 0


@given(st.lists(st.tuples(st.sampled_from("abc"), st.booleans(), st.integers(0, 20))))
def test_what_holdings_hold_is_what_is_taken(changes: list[tuple[str, bool, int]]) -> None:
    shares = Shares(20)
    holdings = {who: Holding(shares, "one" if who == "c" else "two") for who in "abc"}
    for who, is_forced, amount in changes:
        held = holdings[who]
        before = held.amount
        if is_forced:
            held.force(amount)
            assert held.amount == amount
        elif held.hold(amount):
            assert held.amount == amount
        else:
            assert (amount > before, held.amount) == (True, before)
        assert shares.taken == sum(one.amount for one in holdings.values())
    for held in holdings.values():
        held.close()
    assert (shares.taken, shares.holders) == (0, 0)


PACE = HttpLimits(stalled_seconds=10.0, answer_seconds=100.0)
"""A client takes 40 960 bytes in ten seconds, and all within 110 seconds."""


def test_a_client_must_take_its_answer_fast_enough() -> None:
    pace = AnswerPace(PACE)
    assert not pace.is_too_slow(0.0, 100_000)
    assert not pace.is_too_slow(9.0, 100_000)
    assert not pace.is_too_slow(10.0, 59_000)
    assert pace.is_too_slow(20.0, 58_000)
    pace.restart()
    assert not pace.is_too_slow(21.0, 58_000)


@pytest.mark.parametrize(("bytes_per_second", "is_cut"), [(85_000, True), (95_000, False)])
def test_who_lets_much_wait_takes_it_faster(bytes_per_second: int, is_cut: bool) -> None:
    pace = AnswerPace(PACE)
    size = 10_000_000
    cut = [
        second
        for second in range(size // bytes_per_second)
        if pace.is_too_slow(float(second), size - second * bytes_per_second)
    ]
    assert bool(cut) == is_cut


def test_a_stalled_client_is_cut_once_much_waits() -> None:
    pace = AnswerPace(PACE)
    cut = [second for second in range(12) if pace.is_too_slow(float(second), 10_000_000)]
    assert cut == [10, 11]
