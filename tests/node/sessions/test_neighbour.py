"""What a neighbour says is heard alike on the short way and on the long one."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from zenlake.node.sample import Sample
from zenlake.testing import spec
from zenlake.testing.network import Network, SampleRecorder, Stranger
from zenlake.testing.strategies import messages
from zenlake.wire import (
    Declare,
    DeclareKeyExpr,
    Frame,
    InitAck,
    Message,
    OpenSyn,
    Push,
    Put,
    UndeclareKeyExpr,
    read_batch,
    write,
)


class Line:
    """A peer that hears everything, and a client played by the test."""

    def __init__(self) -> None:
        self.network = Network()
        self.peer = self.network.node("peer")
        self.samples: SampleRecorder = self.peer.subscribe("**")
        self.sn = 0
        self.client: Stranger = self.network.stranger(self.peer)
        self.client.say(bytes.fromhex("81090266812701"))
        self.network.run(0.01)
        [ack] = read_batch(self.client.heard()[0])
        assert isinstance(ack, InitAck)
        self.client.say(write(OpenSyn(lease=10_000, initial_sn=0, cookie=ack.cookie)))
        self.network.run(0.01)

    def say(self, *said: Message) -> list[Sample]:
        """Say something; what was heard of it."""
        before = len(self.samples.samples)
        self.client.say(write(Frame(sn=self.sn, reliable=True, messages=said)))
        self.sn += 1
        self.network.run(0.01)
        return self.samples.samples[before:]


def seen(sample: Sample) -> tuple[object, ...]:
    """Everything that a program can see of a sample."""
    return (
        str(sample.key_expr), bytes(sample.payload), sample.kind, str(sample.encoding),
        sample.timestamp, sample.qos, sample.reliability, sample.source_info,
        None if sample.attachment is None else bytes(sample.attachment), sample.timestamp_stack,
    )  # fmt: skip


@given(messages(spec("Push")), st.sampled_from(["a", "a/b", "*", "é/" + "x" * 150]))
def test_the_second_time_a_key_is_said_the_same_is_heard(push: Message, key: str) -> None:
    assert isinstance(push, Push)
    push.scope, push.suffix, push.sender_mapping, push.node_id = 0, key, True, 0
    if isinstance(push.body, Put) and push.body.shm:
        return  # shared memory was never agreed
    line = Line()
    first = line.say(push)
    again = line.say(push, push)
    assert [seen(sample) for sample in again] == [seen(sample) for sample in first] * 2
    assert len(first) == 1


@given(st.lists(st.tuples(st.sampled_from(["a", "a/b", "c"]), st.binary(max_size=1500))))
def test_whatever_order_keys_come_in_each_brings_its_own(said: list[tuple[str, bytes]]) -> None:
    line = Line()
    pushes = [Push(scope=0, suffix=key, body=Put(payload=payload)) for key, payload in said]
    for _ in range(2):  # the second time all keys are known
        heard = line.say(*pushes)
        assert [(str(one.key_expr), bytes(one.payload)) for one in heard] == said


def test_every_message_of_a_run_is_counted() -> None:
    line = Line()
    put = Push(scope=0, suffix="a", body=Put(payload=b"x"))
    line.say(put)
    counts = line.peer.node.neighbours[0].unicast
    assert counts is not None
    before = counts.received
    line.say(*[put] * 5)
    assert counts.received - before == 5


def test_a_number_that_changes_its_meaning_is_followed() -> None:
    line = Line()
    put = Push(scope=7, body=Put(payload=b"x"))
    line.say(Declare(body=DeclareKeyExpr(id=7, scope=0, suffix="old")))
    assert [str(sample.key_expr) for sample in line.say(put, put)] == ["old", "old"]
    line.say(
        Declare(body=UndeclareKeyExpr(id=7)),
        Declare(body=DeclareKeyExpr(id=7, scope=0, suffix="new")),
    )
    assert [str(sample.key_expr) for sample in line.say(put, put)] == ["new", "new"]
    line.say(Declare(body=UndeclareKeyExpr(id=7)))
    assert line.say(put, put) == []


def test_a_subscriber_that_comes_and_goes_is_followed() -> None:
    line = Line()
    put = Push(scope=0, suffix="k", body=Put(payload=b"x"))
    line.say(put, put)
    late = line.peer.subscribe("k")
    line.say(put, put)
    assert len(late.samples) == 2
    assert late.subscriber is not None
    line.peer.node.local.unsubscribe(late.subscriber)
    line.say(put, put)
    assert len(late.samples) == 2
    assert len(line.samples.samples) == 6
