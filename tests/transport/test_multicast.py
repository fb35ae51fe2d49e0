"""A multicast group, its members joined by a list of datagrams and a clock that is a number."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zenlake.transport.handshake import Terms
from zenlake.transport.listener import Listener
from zenlake.transport.multicast import MulticastTransport
from zenlake.transport.multicast_terms import MulticastTerms
from zenlake.transport.outbox import Outbox
from zenlake.wire.codec_network import Push
from zenlake.wire.codec_transport import Join, read_transport
from zenlake.wire.codec_zenoh import Put
from zenlake.wire.cursor import Reader
from zenlake.wire.message import Message

TERMS = MulticastTerms(
    zid=b"\x01",
    whatami=1,
    resolution=0x0A,
    batch_size=8192,
    lease=10_000,
    qos=False,
    join_interval=2.5,
    max_members=10,
    max_message=1 << 20,
    initial_sn=100,
)


class Ear(Listener):
    """Remembers what one member said."""

    def __init__(self, zid: bytes) -> None:
        self.zid = zid
        self.values: list[bytes] = []
        self.is_open = False
        self.error: Exception | None = None

    def opened(self, terms: Terms, now: float) -> None:
        self.is_open = True

    def heard(self, message: Message, priority: int, reliable: bool) -> None:
        assert isinstance(message, Push)
        assert isinstance(message.body, Put)
        self.values.append(message.body.payload)

    def closed(self, error: Exception | None, now: float) -> None:
        self.is_open = False
        self.error = error


class Somebody:
    """One member, and what it hears of the others."""

    def __init__(self, name: str, terms: MulticastTerms) -> None:
        self.name = name
        self.ears: list[Ear] = []
        self.group = MulticastTransport(terms, Outbox(8192, 0, 0, 0, False, 16), self._meet)

    def _meet(self, zid: bytes, whatami: int, source: str) -> Listener:
        self.ears.append(Ear(zid))
        return self.ears[-1]

    def put(self, value: bytes, priority: int = 5) -> None:
        message = Push(scope=0, suffix="a", sender_mapping=False, body=Put(payload=value))
        assert self.group.outbox.send(message, priority, True)

    def said(self) -> Iterator[bytes]:
        while batch := self.group.outbox.take():
            yield batch

    def ear(self, zid: bytes) -> Ear:
        [ear] = [ear for ear in self.ears if ear.zid == zid and ear.is_open]
        return ear


def member(number: int, **changes: object) -> Somebody:
    terms = dataclasses.replace(TERMS, zid=bytes((number,)), **changes)  # type: ignore[arg-type]
    return Somebody(f"10.0.0.{number}:7447", terms)


def exchange(everybody: list[Somebody], now: float) -> None:
    """Carry all datagrams to everybody, their sender too, as a socket might."""
    for somebody in everybody:
        for batch in somebody.said():
            for other in everybody:
                other.group.receive(batch, somebody.name, now)


def joined(*everybody: Somebody) -> list[Somebody]:
    for somebody in everybody:
        somebody.group.start(0.0)
    exchange(list(everybody), 0.0)
    return list(everybody)


def test_whoever_joined_is_heard_by_all_and_nobody_hears_itself() -> None:
    one, two, three = everybody = joined(member(1), member(2), member(3))
    one.put(b"hello")
    exchange(everybody, 0.1)
    assert two.ear(b"\x01").values == [b"hello"]
    assert three.ear(b"\x01").values == [b"hello"]
    assert [ear.zid for ear in one.ears] == [b"\x02", b"\x03"]


def test_who_has_not_joined_is_passed_over_until_its_next_join() -> None:
    one, late = member(1), member(2)
    one.group.start(0.0)
    exchange([one], 0.0)
    late.group.start(1.0)
    one.put(b"lost")
    exchange([one, late], 1.0)
    assert late.group.strangers == 1
    assert late.ears == []
    one.group.tick(2.5)
    one.put(b"heard")
    exchange([one, late], 2.5)
    assert late.ear(b"\x01").values == [b"heard"]


def test_presence_is_repeated_at_its_interval() -> None:
    one = member(1)
    one.group.start(0.0)
    kinds = []
    for _ in range(4):
        kinds += [type(read_transport(Reader(batch))) for batch in one.said()]
        assert one.group.deadline == pytest.approx(2.5 * len(kinds))
        one.group.tick(one.group.deadline)
    assert kinds == [Join] * 4


def test_silence_beyond_the_lease_parts() -> None:
    one, two = everybody = joined(member(1, lease=3000), member(2))
    ear = two.ear(b"\x01")
    two.group.tick(2.9)
    assert ear.is_open
    two.group.tick(3.0)
    assert not ear.is_open
    assert "lease" in str(ear.error)
    one.group.tick(3.0)
    exchange(everybody, 3.0)
    assert two.ear(b"\x01").is_open


def test_goodbye_parts_at_once_and_only_from_the_one_who_said_it() -> None:
    one, two, three = everybody = joined(member(1), member(2), member(3))
    one.group.close(1.0)
    exchange(everybody, 1.0)
    assert [ear.zid for ear in three.ears if ear.is_open] == [b"\x02"]
    two.put(b"still here")
    exchange(everybody, 1.1)
    assert three.ear(b"\x02").values == [b"still here"]


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"batch_size": 4096}, "batch size"),
        ({"resolution": 0x09}, "resolution"),
        ({"qos": True}, "priorities"),
    ],
)
def test_who_does_not_fit_is_refused_and_counted(changes: dict[str, object], why: str) -> None:
    _, two = joined(member(1, **changes), member(2))
    assert two.ears == []
    assert two.group.refused == {why: 1}


def test_priorities_have_sequence_numbers_of_their_own() -> None:
    one, two = everybody = joined(member(1, qos=True), member(2, qos=True))
    one.put(b"data", 5)
    one.put(b"urgent", 1)
    exchange(everybody, 0.1)
    assert sorted(two.ear(b"\x01").values) == [b"data", b"urgent"]
    late = member(3, qos=True)
    late.group.start(1.0)
    one.group.tick(2.5)
    exchange([one, two, late], 2.5)
    one.put(b"more", 1)
    exchange([one, two, late], 2.6)
    assert late.ear(b"\x01").values == [b"more"]


def test_a_value_larger_than_a_datagram_travels_in_fragments() -> None:
    one, two = everybody = joined(member(1), member(2))
    value = bytes(range(256)) * 200
    one.put(value)
    exchange(everybody, 0.1)
    assert two.ear(b"\x01").values == [value]


def test_a_datagram_that_comes_twice_is_heard_once() -> None:
    one, two = joined(member(1), member(2))
    one.put(b"once")
    [batch] = one.said()
    two.group.receive(batch, one.name, 0.1)
    two.group.receive(batch, one.name, 0.1)
    assert two.ear(b"\x01").values == [b"once"]


def test_there_are_no_more_members_than_allowed() -> None:
    *_, last = joined(member(1), member(2), member(3), member(4, max_members=2))
    assert len(last.ears) == 2
    assert last.group.refused == {"too many members": 1}


@given(data=st.binary(max_size=200), known=st.booleans())
def test_any_datagram_costs_at_most_its_sender(data: bytes, known: bool) -> None:
    _, two, three = joined(member(1), member(2), member(3))
    three.group.receive(data, "10.0.0.1:7447" if known else "10.0.0.9:1", 0.1)
    two.put(b"fine")
    exchange([two, three], 0.2)
    assert three.ear(b"\x02").values == [b"fine"]
