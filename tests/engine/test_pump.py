"""Between a link and a node: every step taken by hand, on a link that is only memory."""

from __future__ import annotations

import pytest

from tests.engine.by_hand import Client, MemoryLink, connected, framed, started
from zenlake.engine.channel import Channel
from zenlake.engine.handlers import SampleQueue
from zenlake.engine.pump import LAST_WORDS, MEANWHILE, MOUTHFUL
from zenlake.engine.runtime import Runtime
from zenlake.errors import LinkError
from zenlake.links.stream import READ_SIZE
from zenlake.wire import (
    Close,
    Declare,
    DeclareSubscriber,
    Frame,
    InitAck,
    InitSyn,
    KeepAlive,
    OpenAck,
    OpenSyn,
    Push,
    Put,
)

BATCH = 60_000


def subscribed(runtime: Runtime, capacity: int) -> Channel:
    """A channel of the node itself that is subscribed to everything."""
    channel = Channel(capacity)
    channel.mark = runtime.mark
    channel.on_loop = runtime.on_loop
    with runtime.locked() as node:
        node.local.subscribe("**", SampleQueue(channel))
    return channel


def test_what_a_link_brings_is_answered_on_it() -> None:
    runtime, loop = started()
    link = MemoryLink()
    client = Client(runtime, loop, link, b"\x11")
    client.say(InitSyn(version=9, whatami=2, zid=b"\x11", qos=True, patch=1))
    [ack] = link.batches()
    assert isinstance(ack, InitAck)
    assert not link.admitted
    client.say(OpenSyn(lease=60_000, initial_sn=0, cookie=ack.cookie))
    assert isinstance(link.batches()[0], OpenAck)
    assert link.admitted, "the link is told that a session runs over it"
    assert [bytes(n.face.zid) for n in runtime.neighbours() if n.face] == [b"\x11"]


def test_a_link_that_takes_part_of_a_batch_is_written_again_when_it_is_writable() -> None:
    runtime, loop = started()
    link = MemoryLink(room=5)
    client = Client(runtime, loop, link, b"\x11")
    client.say(InitSyn(version=9, whatami=2, zid=b"\x11", qos=True, patch=1))
    assert len(link.sent) == 5
    assert link.on_writable is not None
    with loop.as_loop():
        link.becomes_writable(3)
    assert len(link.sent) == 8
    assert link.on_writable is not None, "it did not take all of it again"
    with loop.as_loop():
        link.becomes_writable(1 << 20)
    assert isinstance(link.batches()[0], InitAck)
    assert link.on_writable is None


def test_a_link_is_paused_for_a_full_channel_and_resumed_when_it_is_half_empty() -> None:
    runtime, loop = started()
    client = connected(runtime, loop)
    channel = subscribed(runtime, 4)
    client.put("k", b"x", 3)
    assert not client.link.paused
    client.put("k", b"x", 3)
    assert client.link.paused
    assert client.pump.pauses == 1
    taken = 0
    while client.link.paused:
        assert channel.take(False) is not None
        taken += 1
        loop.settle()
    assert len(channel.queue.items) == 2, "half of what it holds"
    assert taken == 4


def test_less_is_read_at_once_of_a_link_that_sends_more_than_its_turns_handle() -> None:
    runtime, loop = started(limits__node__turn_messages="10")
    busy, _ = connected(runtime, loop), connected(runtime, loop, b"\x12")
    declared = [
        Declare(body=DeclareSubscriber(id=id, scope=0, suffix=f"k/{id}")) for id in range(1, 100)
    ]
    assert busy.link.on_data is not None
    with loop.as_loop():
        busy.link.on_data(framed(busy.frame(*declared)))
    assert busy.link.paused, "others have their turn first"
    assert busy.link.read_size == MOUTHFUL
    loop.settle()
    assert not busy.link.paused
    busy.say(busy.frame(declared[0]))
    assert busy.link.read_size == READ_SIZE


def test_a_neighbour_above_its_rate_is_read_later_and_named_and_loses_nothing() -> None:
    runtime, loop = started(limits__session__messages_per_second="100")
    client = connected(runtime, loop)
    channel = subscribed(runtime, 1000)
    client.put("k", b"x", 300)
    assert client.link.paused
    assert len(channel.queue.items) == 300
    [event] = runtime.node.incidents.newest()
    assert (event.kind, event.peer) == ("limit", "there")
    assert "limits/session/messages_per_second" in event.reason
    loop.advance(1.5)
    assert client.link.paused, "a second's worth came at once, and two more"
    loop.advance(1.0)
    assert not client.link.paused


def test_silence_of_a_paused_link_does_not_count_against_the_neighbour() -> None:
    runtime, loop = started()
    client = connected(runtime, loop)
    channel = subscribed(runtime, 1)
    client.put("k", b"x", 2)
    assert client.pump.pauses == 1
    unicast = client.pump.unicast
    unicast.last_heard = -1e9  # longer than any lease
    channel.discard()
    channel.back_pressure.drained()
    loop.settle()
    assert unicast.last_heard > 0
    assert not client.link.paused


def test_a_slow_subscriber_pauses_the_publisher_and_not_the_node() -> None:
    runtime, loop = started()
    slow = connected(runtime, loop, b"\x22")
    slow.subscribe("k")
    slow.link.room = 0
    fast = connected(runtime, loop, b"\x33")
    for _ in range(100):
        if fast.link.paused:
            break
        fast.put("k", bytes(BATCH))
    assert fast.link.paused
    assert not slow.link.paused
    # Nothing that may not be dropped is lost: all of it arrives when the link takes it.
    with loop.as_loop():
        slow.link.becomes_writable(1 << 30)
    loop.settle()
    assert not fast.link.paused
    with loop.as_loop():
        slow.pump.flush()
    pushes = [m for m in slow.link.batches() if isinstance(m, Frame) for m in m.messages]
    assert len([m for m in pushes if isinstance(m, Push)]) == fast.sn
    assert sum(slow.pump.outbox.drops) == 0


def test_a_neighbour_that_takes_nothing_while_others_are_paused_for_it_is_given_up() -> None:
    runtime, loop = started()
    patience = runtime.settings.transport.link.tx.queue.congestion_control.block.wait_before_close
    slow = connected(runtime, loop, b"\x22")
    slow.subscribe("k")
    slow.link.room = 0
    fast = connected(runtime, loop, b"\x33")
    while not fast.link.paused:
        fast.put("k", bytes(BATCH))
    pump = slow.pump
    with loop.as_loop():
        slow.link.becomes_writable(1)  # it took something: it is given time once more
    loop.advance(patience / 1e6)
    assert pump.outbox.room.supervised
    assert not slow.link.closed
    loop.advance(patience / 1e6)
    assert not pump.outbox.room.supervised
    loop.advance(LAST_WORDS)
    assert slow.link.closed
    assert not fast.link.paused, "the link that waited for it is read again"
    assert b"\x22" not in runtime.node.by_zid


def test_the_loop_comes_again_while_callers_fill_batches() -> None:
    runtime, loop = started()
    client = connected(runtime, loop)
    outbox = client.pump.outbox
    outbox.request.streaming = True
    with loop.as_loop():
        client.pump.flush()
    assert outbox.request.requested, "no thread needs to wake it"
    loop.advance(MEANWHILE)
    assert not outbox.request.requested


def test_what_waits_is_written_before_a_link_is_closed() -> None:
    runtime, loop = started()
    client = connected(runtime, loop, room=1 << 20)
    client.link.room = 1
    with loop.as_loop(), runtime.locked():
        client.pump.unicast.close(0.0)
    loop.settle()
    assert not client.link.closed, "the link has not taken Close yet"
    with loop.as_loop():
        client.link.becomes_writable(1 << 20)
    assert isinstance(client.link.batches()[-1], Close)
    assert client.link.closed
    assert not runtime.pumps


@pytest.mark.parametrize("answered", [True, False], ids=["answered", "silent"])
def test_a_closed_session_waits_a_moment_for_the_other_side_to_end(answered: bool) -> None:
    runtime, loop = started()
    client = connected(runtime, loop)
    client.link.has_other_side = True
    with loop.as_loop(), runtime.locked():
        client.pump.unicast.close(0.0)
    loop.settle()
    assert isinstance(client.link.batches()[-1], Close)
    assert not client.link.closed
    if answered:
        assert client.link.on_end is not None
        with loop.as_loop():
            client.link.on_end()
    else:
        loop.advance(LAST_WORDS)
    assert client.link.closed
    assert not runtime.pumps


def test_a_link_that_does_not_take_the_close_is_closed_all_the_same() -> None:
    runtime, loop = started()
    client = connected(runtime, loop)
    client.link.room = 0
    with loop.as_loop(), runtime.locked():
        client.pump.unicast.close(0.0)
    loop.settle()
    assert not client.link.closed
    loop.advance(LAST_WORDS)
    assert client.link.closed


@pytest.mark.parametrize("error", [None, LinkError("reset")], ids=["ended", "broken"])
def test_a_lost_link_ends_its_session_and_frees_what_waits_for_it(error: LinkError | None) -> None:
    runtime, loop = started()
    slow = connected(runtime, loop, b"\x22")
    slow.subscribe("k")
    slow.link.room = 0
    fast = connected(runtime, loop, b"\x33")
    while not fast.link.paused:
        fast.put("k", bytes(BATCH))
    outbox = slow.pump.outbox
    assert slow.link.on_lost is not None
    with loop.as_loop():
        slow.link.on_lost(error)
    loop.settle()
    assert slow.link.closed
    assert outbox.closed
    assert b"\x22" not in runtime.node.by_zid
    assert not fast.link.paused


def test_damaged_bytes_close_the_link_that_brought_them_and_no_other() -> None:
    runtime, loop = started()
    good = connected(runtime, loop, b"\x22")
    bad = connected(runtime, loop, b"\x33")
    assert bad.link.on_data is not None
    with loop.as_loop():
        bad.link.on_data(b"\x02\x00\x05\xff")
    loop.settle()
    assert bad.link.closed
    assert not good.link.closed
    good.say(KeepAlive())
    assert list(runtime.node.by_zid) == [b"\x22"]


def test_a_batch_may_come_byte_by_byte() -> None:
    runtime, loop = started()
    client = connected(runtime, loop)
    channel = subscribed(runtime, 4)
    assert client.link.on_data is not None
    push = Push(scope=0, suffix="k", body=Put(payload=b"v"))
    for byte in framed(client.frame(push)):
        with loop.as_loop():
            client.link.on_data(bytes([byte]))
    assert channel.received == 1
