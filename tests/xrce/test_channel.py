from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.xrce.weather import Pair, Weather, payloads
from zenlake import xrce
from zenlake.xrce.channel import (
    BestEffortReceiver,
    Lost,
    ReliableReceiver,
    ReliableSender,
    Sent,
    window_of,
)
from zenlake.xrce.session import CLOSED


def data(sn: int) -> xrce.StreamData:
    return xrce.StreamData(reliable=True, sn=sn, id=2, payload=b"%d" % sn)


def sender(bits: int = 14, first: int = 0, count: int = 0) -> ReliableSender:
    made = ReliableSender(bits, window_of(bits))
    made.base = made.next = first
    for _ in range(count):
        sn = made.number()
        made.sent(Sent(sn, xrce.write(data(sn)), 0, True))
    return made


def receiver(next: int, *early: int, bits: int = 14) -> ReliableReceiver:
    made = ReliableReceiver(bits, 64)
    made.next = made.high = next
    made.begun = True
    for sn in early:
        made.receive(data(sn))
    return made


# The table of section 7.5: what a receiver says in each situation.
@pytest.mark.parametrize(
    ("made", "high", "told"),
    [
        (receiver(0, 0, 1, 2, 3, 4), 5, "0f05"),
        (receiver(10), 11, "2f0a00"),
        (receiver(9, 11), 12, "2f0901"),
        (receiver(6), 9, "2f0603"),
        (receiver(9, 11), 13, "2f0905"),
        (receiver(16383), 1, "2fff7f01"),
    ],
)
def test_acknack_says_what_is_missing(made: ReliableReceiver, high: int, told: str) -> None:
    made.synch(high, (high - made.next) & 0x3FFF)
    assert xrce.write(made.acknack()).hex() == told


@pytest.mark.parametrize(
    ("made", "told", "again"),
    [
        (sender(first=3, count=5), "0f05", []),
        (sender(first=10, count=3), "2f0a00", [10]),
        (sender(first=9, count=3), "2f0901", [9, 10]),
        (sender(first=6, count=3), "2f0603", [6, 7, 8]),
        (sender(first=9, count=4), "2f0905", [9, 10, 12]),
        (sender(first=16383, count=3), "2fff7f01", [16383, 0]),
        (sender(first=6, count=2), "2f06ffffffff07", [6, 7]),
    ],
)
def test_a_sender_sends_again_what_the_mask_names(
    made: ReliableSender, told: str, again: list[int]
) -> None:
    (message,) = xrce.read_packet(bytes.fromhex(told))
    assert isinstance(message, xrce.AckNack)
    found = made.acknack(message, 1.0, 0.1)
    assert found is not None
    assert [sent.sn for sent in found] == again
    assert made.base == message.sn
    assert made.acknack(message, 1.05, 0.1) == []  # within a round trip nothing is sent twice


def test_an_acknack_outside_the_window_is_answered_by_a_synch() -> None:
    made = sender(first=5, count=2)
    assert made.acknack(xrce.AckNack(sn=9), 0.0, 0.0) is None
    assert made.pending == 2
    assert xrce.write(made.synch(ask=False)).hex() == "ce0702"


@pytest.mark.parametrize(
    ("made", "told"),
    [
        (sender(first=9, count=2), "ee0b02"),
        (sender(first=16, count=0), "6e10"),
        (sender(first=16382, count=4), "ee0204"),
    ],
)
def test_synch_says_where_a_channel_stands(made: ReliableSender, told: str) -> None:
    assert xrce.write(made.synch()).hex() == told


def test_best_effort_never_goes_back() -> None:
    made = BestEffortReceiver(7)
    assert [made.receive(sn) for sn in (0, 0, 5, 4, 6, 127, 7)] == [
        True, False, True, False, True, False, True,
    ]  # fmt: skip
    assert BestEffortReceiver(7).receive(90)  # who joins late begins there


def test_best_effort_goes_on_where_a_synch_says() -> None:
    made = BestEffortReceiver(7)
    made.synch(10)
    assert [made.receive(sn) for sn in (9, 10)] == [False, True]


def test_messages_that_came_early_wait_within_bounds() -> None:
    made = ReliableReceiver(14, 2)
    assert [made.receive(data(sn)) for sn in (1, 2, 3)] == [[], [], []]
    assert made.held == 2
    assert made.dropped == 1
    assert [m.sn for m in made.receive(data(0))] == [0, 1, 2]
    assert xrce.write(made.acknack()).hex() == "2f0300"


def test_an_old_synch_moves_nothing_and_a_loss_is_said() -> None:
    made = receiver(10)
    made.synch(5, 2)
    assert made.next == 10
    with pytest.raises(Lost, match="3 reliable messages from 10 on are gone"):
        made.synch(20, 7)


def test_who_joins_late_begins_with_the_first_synch() -> None:
    made = ReliableReceiver(14, 8, patient=True)
    assert made.receive(data(7)) == []
    made.synch(9, 2)
    assert [m.sn for m in made.receive(data(7))] == [7]


# ------------------------------------------------------------------------------ in bad weather

weathers = st.builds(
    Weather,
    loss=st.sampled_from([0.0, 0.05, 0.2, 0.4]),
    double=st.sampled_from([0.0, 0.2]),
    delay=st.sampled_from([0.001, 0.02]),
    jitter=st.sampled_from([0.0, 0.02]),
)


@given(
    weather=weathers,
    seed=st.integers(0, 1 << 30),
    bits=st.sampled_from([7, 8, 14, 63]),
    sizes=st.lists(st.integers(0, 400), max_size=60),
)
def test_a_reliable_channel_gives_exactly_what_was_sent(
    weather: Weather, seed: int, bits: int, sizes: list[int]
) -> None:
    # A window of 16: of 128 numbers, so many may be old ones that are still on their way.
    pair = Pair(
        weather, Random(seed), near={"bits": bits, "lease": 0, "window": 16, "mtu": 300},
        far={"lease": 0, "window": 16},
    ).opened()  # fmt: skip
    sent = [bytes([i % 256]) * size for i, size in enumerate(sizes)]
    for payload in sent:
        assert pair.send(payload)
        pair.run(0.003)
    pair.settle(600)
    assert payloads(pair.heard) == sent
    assert (pair.a.why, pair.b.why) == ("", "")


@given(seed=st.integers(0, 1 << 30), loss=st.sampled_from([0.1, 0.3]))
def test_best_effort_gives_a_part_in_order(seed: int, loss: float) -> None:
    pair = Pair(Weather(loss, 0.2, 0.001, 0.01), Random(seed), near={"bits": 7}).opened()
    sent = [b"%d" % i for i in range(80)]
    for payload in sent:
        pair.send(payload, reliable=False)
        pair.run(0.001)
    pair.run(0.1)
    found = [int(payload) for payload in payloads(pair.heard)]
    assert found == sorted(set(found))
    assert found


@pytest.mark.parametrize(("bits", "count"), [(7, 600), (14, 17000)])
def test_numbers_begin_again_under_load(bits: int, count: int) -> None:
    pair = Pair(
        Weather(0.02, 0.0, 0.001, 0.0), Random(1),
        near={"bits": bits, "lease": 0, "queue": 1 << 24}, far={"lease": 0},
    ).opened()  # fmt: skip
    for i in range(count):
        assert pair.send(b"%d" % i)
    pair.settle(600)
    assert payloads(pair.heard) == [b"%d" % i for i in range(count)]


def test_a_session_that_cannot_go_on_dies_and_says_so() -> None:
    pair = Pair(near={"lease": 10}, far={"lease": 10}).opened()
    pair.send(b"heard")
    pair.run(0.5)
    pair.weather.loss = 1.0
    pair.send(b"never")
    pair.run(3.0)
    assert pair.a.state == pair.b.state == CLOSED
    assert "the lease is over" in pair.a.why
    assert payloads(pair.heard) == [b"heard"]


def test_a_full_queue_refuses_and_counts() -> None:
    pair = Pair(near={"queue": 3000}).opened()
    pair.weather.loss = 1.0
    results = [pair.send(b"x" * 100) for _ in range(600)]
    assert results[0]
    assert not results[-1]
    assert pair.a.counters.refused == results.count(False)
