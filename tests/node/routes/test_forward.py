"""What passes through a router leaves it alike on the short way and on the long one."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.node.clients import Client
from zenlake.clock import Hlc, ZenohId
from zenlake.node.routes.forward import RUN
from zenlake.node.stamps import Timestamper
from zenlake.testing import spec
from zenlake.testing.network import Network
from zenlake.testing.strategies import messages
from zenlake.wire import (
    Declare,
    DeclareKeyExpr,
    DeclareSubscriber,
    Del,
    Frame,
    Message,
    Push,
    Put,
    SourceInfo,
    Timestamp,
    UndeclareKeyExpr,
    UndeclareSubscriber,
    read_batch,
    write,
)

NOW = 1_700_000_000
KEYS = ["k", "k/two", "other/" + "x" * 150]
PLAIN = Push(scope=0, suffix="k", body=Put(payload=b"x"))


class Passage:
    """A router, one who publishes, and others who subscribe to everything."""

    def __init__(self, stamping: bool = True, subscribers: int = 2) -> None:
        self.network = Network()
        self.router = self.network.node("router", "router", zid=b"\x0f")
        if stamping:
            clock = Hlc(ZenohId(b"\x0f"))
            self.router.node.stamps = Timestamper(clock, lambda: NOW * 10**9, False)
        self.publisher = Client(self.network, self.router, b"\x01")
        self.subscribers = [
            Client(self.network, self.router, bytes((2 + number,))) for number in range(subscribers)
        ]
        for subscriber in self.subscribers:
            subscriber.say(Declare(body=DeclareSubscriber(id=1, scope=0, suffix="**")))
        # One of them has a number for a key, so that it is told other words.
        if self.subscribers:
            self.subscribers[0].say(Declare(body=DeclareKeyExpr(id=9, scope=0, suffix="k")))

    def forget(self) -> None:
        """Have the router know no head by its bytes."""
        self.router.node.by_zid[b"\x01"].pushes.forget_heads()

    def heard(self) -> list[list[tuple[bytes, int, bool]]]:
        """What each of them heard."""
        return [subscriber.heard() for subscriber in self.subscribers]


def passable(push: Message) -> bool:
    assert isinstance(push, Push)
    return push.timestamp is None and not (isinstance(push.body, Put) and push.body.shm)


@settings(max_examples=25, deadline=None)
@given(
    st.lists(
        st.tuples(messages(spec("Push")).filter(passable), st.sampled_from(KEYS), st.booleans()),
        min_size=1,
        max_size=4,
    ),
    st.booleans(),
)
def test_the_short_way_leads_to_the_same_bytes(
    said: list[tuple[Message, str, bool]], stamping: bool
) -> None:
    short, long = Passage(stamping), Passage(stamping)
    # Each twice: the first time a head is learnt.
    for push, key, reliable in [*said, *said]:
        assert isinstance(push, Push)
        push.scope, push.suffix, push.sender_mapping, push.node_id = 0, key, True, 0
        short.publisher.say(push, push, reliable=reliable)
        for _ in range(2):
            long.forget()
            long.publisher.say(push, reliable=reliable)
        assert short.heard() == long.heard()


def test_a_value_without_a_time_goes_on_with_one_and_all_hear_the_same() -> None:
    passage = Passage()
    passage.publisher.say(PLAIN)
    passage.heard()
    passage.publisher.say(*[PLAIN] * 300)
    first, second = passage.heard()
    bodies = [read_batch(write(Frame(sn=0, messages=()))[:2] + raw) for raw, _, _ in second]
    times = []
    for [frame] in bodies:
        assert isinstance(frame, Frame)
        [push] = frame.messages
        assert isinstance(push, Push)
        assert isinstance(push.body, Put)
        assert push.body.timestamp is not None
        assert push.body.timestamp.id == b"\x0f"
        times.append((push.body.timestamp.seconds, push.body.timestamp.fraction))
    assert len(set(times)) == 300
    assert times == sorted(times)
    assert {seconds for seconds, _ in times} == {NOW}
    # In other words, but with the same times: only the key is written differently.
    assert [raw[-13:] for raw, _, _ in first] == [raw[-13:] for raw, _, _ in second]


def test_a_time_of_the_future_is_replaced_on_the_short_way_too() -> None:
    passage = Passage()
    stamp = Timestamp(seconds=NOW, fraction=0, id=b"\x07")
    future = Timestamp(seconds=NOW + 1, fraction=0, id=b"\x07")
    passage.publisher.say(*[Push(scope=0, suffix="k", body=Put(timestamp=stamp))] * 3)
    assert [b"\x01\x07" in raw for raw, _, _ in passage.heard()[1]] == [True] * 3
    passage.publisher.say(*[Push(scope=0, suffix="k", body=Put(timestamp=future))] * 3)
    assert [b"\x01\x0f" in raw for raw, _, _ in passage.heard()[1]] == [True] * 3
    stamps = passage.router.node.stamps
    assert stamps is not None
    assert stamps.replaced == 3


def test_everything_of_one_sender_keeps_its_order() -> None:
    passage = Passage()
    kinds: list[Push] = [
        Push(scope=0, suffix=key, body=body)
        for key in ("a", "b")
        for body in (Put(payload=b"1"), Del(), Put(payload=b"2", attachment=b"x"))
    ]
    for _ in range(3):
        said = [
            Push(scope=push.scope, suffix=push.suffix, qos=5, body=push.body) for push in kinds * 3
        ]
        passage.publisher.say(*said)
        heard = passage.heard()[1]
        assert [name_of(raw) for raw, _, _ in heard] == [push.suffix for push in said]


def name_of(raw: bytes) -> str:
    [frame] = read_batch(write(Frame(sn=0, messages=()))[:2] + raw)
    assert isinstance(frame, Frame)
    [push] = frame.messages
    assert isinstance(push, Push)
    return push.suffix


def test_one_who_leaves_hears_no_more_and_one_who_comes_hears_at_once() -> None:
    passage = Passage()
    passage.publisher.say(PLAIN, PLAIN)
    assert [len(heard) for heard in passage.heard()] == [2, 2]
    passage.subscribers[1].say(Declare(body=UndeclareSubscriber(id=1)))
    passage.publisher.say(PLAIN, PLAIN)
    assert [len(heard) for heard in passage.heard()] == [2, 0]
    passage.subscribers[1].say(Declare(body=DeclareSubscriber(id=2, scope=0, suffix="k")))
    passage.publisher.say(PLAIN, PLAIN)
    assert [len(heard) for heard in passage.heard()] == [2, 2]
    passage.subscribers[0].link.hang_up()
    passage.network.run(0.01)
    passage.publisher.say(PLAIN, PLAIN)
    assert [len(heard) for heard in passage.heard()] == [0, 2]


def test_a_number_that_somebody_takes_back_is_used_no_more() -> None:
    passage = Passage()
    passage.publisher.say(PLAIN, PLAIN)
    assert [b"\x09" in raw[:3] for raw, _, _ in passage.heard()[0]] == [True, True]
    passage.subscribers[0].say(Declare(body=UndeclareKeyExpr(id=9)))
    passage.publisher.say(PLAIN, PLAIN)
    assert [raw[1:4] for raw, _, _ in passage.heard()[0]] == [b"\x00\x01k"] * 2


def test_the_router_hears_itself_what_it_passes_on() -> None:
    passage = Passage()
    samples = passage.router.subscribe("**")
    passage.publisher.say(*[PLAIN] * 3)
    assert [len(heard) for heard in passage.heard()] == [3, 3]
    times = [sample.timestamp for sample in samples.samples]
    assert len(set(times)) == 3
    assert all(time is not None and bytes(time.get_id()) == b"\x0f" for time in times)


def test_time_goes_on_where_nothing_is_passed_on() -> None:
    passage = Passage(subscribers=0)
    samples = passage.router.subscribe("**")
    now = NOW * 10**9
    passage.router.node.stamps = Timestamper(Hlc(ZenohId(b"\x0f")), lambda: now, False)
    passage.publisher.say(PLAIN, PLAIN)
    now += 10**9
    passage.publisher.say(PLAIN, PLAIN)
    seconds = [s.timestamp.seconds for s in samples.samples if s.timestamp is not None]
    assert seconds == [NOW, NOW, NOW + 1, NOW + 1]


@pytest.mark.parametrize("size", [RUN - 100, RUN + 1, 65_400])
def test_large_values_pass_whole(size: int) -> None:
    passage = Passage()
    put = Push(scope=0, suffix="k", body=Put(payload=bytes(size)))
    for _ in range(3):
        passage.publisher.say(put)
        assert [[len(raw) > size for raw, _, _ in heard] for heard in passage.heard()] == [
            [True],
            [True],
        ]


@pytest.mark.parametrize(
    "damaged",
    [
        b"\x3d\x00\x01k\x81\x41\x03\x00\x00\x00\x00",  # a source without an id
        b"\x3d\x00\x01k\x41\x80",  # an encoding without an end
        b"\x3d\x00\x01k\x01\x09abc",  # a value that is not there
        b"\x3d\x00\x01k\x21\x01\x02\x00\x00",  # a time whose clock has no id
    ],
)
def test_nothing_damaged_is_passed_on(damaged: bytes) -> None:
    passage = Passage()
    whole = [
        Put(payload=b"x"),
        Put(payload=b"x", encoding=3),
        Put(payload=b"x", source_info=SourceInfo(zid=b"\x01", eid=1, sn=1)),
        Put(payload=b"x", timestamp=Timestamp(seconds=NOW, fraction=0, id=b"\x01")),
    ]
    for body in whole:
        passage.publisher.say(*[Push(scope=0, suffix="k", body=body)] * 2)
    assert [len(heard) for heard in passage.heard()] == [8, 8]
    publisher = passage.publisher
    publisher.link.say(write(Frame(sn=publisher.sn, messages=()))[:2] + write(PLAIN) + damaged)
    passage.network.run(0.01)
    assert publisher.link.closed
    assert [len(heard) for heard in passage.heard()] == [1, 1]


def test_what_may_not_be_dropped_crowds_and_says_so() -> None:
    passage = Passage(subscribers=0)
    slow = Client(passage.network, passage.router, b"\x22")
    slow.say(Declare(body=DeclareSubscriber(id=1, scope=0, suffix="**")))
    node = passage.router.node
    neighbour = node.by_zid[b"\x01"]
    for qos, kept in ((0x05, False), (0x0D, True)):
        put = Push(scope=0, suffix="k", qos=qos, body=Put(payload=bytes(60_000)))
        for _ in range(12):
            frame = write(Frame(sn=passage.publisher.sn, reliable=True, messages=(put,)))
            passage.publisher.sn += 1
            node.receive(neighbour, len(frame).to_bytes(2, "little") + frame, 1.0)
        assert bool(neighbour.pushes.relay.crowded) is kept
        passage.network.run(0.01)
        assert (len(slow.heard()) == 12) is kept
