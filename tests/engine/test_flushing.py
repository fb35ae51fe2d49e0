"""Flushing on the loop: what threads leave to it is written once, and nothing is forgotten."""

from __future__ import annotations

from itertools import permutations

import pytest

from tests.engine.by_hand import Client, HandLoop, connected, started
from zenlake.engine.congestion import BLOCK
from zenlake.engine.flush_request import FlushRequest
from zenlake.engine.flushing import Flushing
from zenlake.engine.polling import LOOK, LOOKS, SocketPoller
from zenlake.engine.runtime import Runtime
from zenlake.engine.shared import SharedOutbox
from zenlake.transport.outbox import Outbox
from zenlake.wire import Push, Put, write

#: All of a publication but the length of its payload.
HEAD = write(Push(scope=0, suffix="k", body=Put()))[:-1]


def offered(client: Client, payload: bytes = b"x") -> None:
    """A publication that a thread of a program puts into the outbox of a client."""
    assert client.pump.outbox.offer(HEAD, payload, 5, True, BLOCK, False)


@pytest.fixture
def pair() -> tuple[Runtime, HandLoop, Client, Client]:
    runtime, loop = started()
    return runtime, loop, connected(runtime, loop, b"\x22"), connected(runtime, loop, b"\x33")


Pair = tuple[Runtime, HandLoop, Client, Client]


def test_the_loop_is_woken_once_for_all_outboxes_and_messages(pair: Pair) -> None:
    runtime, loop, one, other = pair
    wakes = loop.schedule.wakes
    for _ in range(10):
        offered(one)
        offered(other)
    assert loop.schedule.wakes == wakes + 1
    assert not runtime.flushing.is_idle()
    assert one.link.sent == other.link.sent == b""
    loop.settle()
    assert runtime.flushing.is_idle()
    for client in pair[2:]:
        [frame] = client.link.batches()
        assert len(frame.messages) == 10  # type: ignore[union-attr]


def test_the_loop_itself_needs_no_wake(pair: Pair) -> None:
    _, loop, one, _ = pair
    wakes = loop.schedule.wakes
    with loop.as_loop():
        offered(one)
    assert loop.schedule.wakes == wakes
    loop.settle()
    assert one.link.sent


def test_what_is_added_while_the_loop_flushes_is_flushed_too(pair: Pair) -> None:
    _, loop, one, other = pair
    sent = one.link.send

    def send(data: bytes) -> int:
        # As another thread would, in the middle of the flush.
        if not other.link.sent:
            offered(other)
        return sent(data)

    one.pump.outbox.link.write = send
    offered(one)
    loop.settle()
    assert one.link.sent
    assert other.link.sent


def test_an_outbox_whose_link_has_gone_is_passed_over(pair: Pair) -> None:
    runtime, loop, one, other = pair
    offered(one)
    offered(other)
    runtime.flushing.remove(one.pump.outbox)
    loop.settle()
    assert one.link.sent == b""
    assert other.link.sent
    assert runtime.flushing.pump_of(one.pump.outbox) is None
    assert runtime.flushing.pump_of(other.pump.outbox) is other.pump


def test_a_blocked_link_is_not_asked_for_again(pair: Pair) -> None:
    _, loop, one, _ = pair
    one.link.room = 1
    offered(one)
    loop.settle()
    wakes = loop.schedule.wakes
    offered(one)
    assert loop.schedule.wakes == wakes, "the link calls when it is writable"
    assert loop.step() == 0
    with loop.as_loop():
        one.link.becomes_writable(1 << 20)
    assert len(one.link.batches()) == 2
    offered(one)
    assert loop.schedule.wakes == wakes + 1


@pytest.mark.parametrize("order", list(permutations(["look", "leave", "cool"])))
def test_nothing_left_for_later_is_forgotten_when_the_loop_stops_looking(order: list[str]) -> None:
    runtime, loop = started()
    client = connected(runtime, loop)
    poller = SocketPoller(runtime)
    flushing = Flushing(loop, poller)
    outbox = client.pump.outbox
    flushing.add(outbox, client.pump)
    outbox.request.look_later = flushing.later
    poller.hot = True
    left: list[bool] = []
    for step in order:
        if step == "leave":
            outbox.push(HEAD, b"x", 5, True)
            left.append(outbox.request.ask_later(outbox))
        elif step == "look":
            flushing.flush_later()
        else:
            # As the poller does when no thread polls any more: first the flag, then the list.
            poller.hot = False
            flushing.flush_later()
    taken_over = order.index("leave") < order.index("cool")
    assert left == [taken_over]
    assert bool(client.link.sent) == taken_over, "what was taken over was written"
    assert not outbox.request.later
    poller.close()


def test_replies_wait_for_the_check_of_the_loop_while_a_thread_polls() -> None:
    runtime, loop = started()
    client = connected(runtime, loop)
    poller = SocketPoller(runtime)
    runtime.flushing = Flushing(loop, poller)
    runtime.flushing.add(client.pump.outbox, client.pump)
    outbox = client.pump.outbox
    outbox.request.look_later = runtime.flushing.later
    poller.hot = True
    with loop.as_loop():
        poller._hand_over()
    wakes = loop.schedule.wakes
    for _ in range(3):
        assert outbox.reply(HEAD, b"x", 5, True)
    assert loop.schedule.wakes == wakes
    assert client.link.sent == b""
    loop.advance(LOOK)
    [frame] = client.link.batches()
    assert len(frame.messages) == 3  # type: ignore[union-attr]
    loop.advance(LOOK * LOOKS)
    assert not poller.hot
    assert outbox.reply(HEAD, b"x", 5, True)
    assert loop.schedule.wakes == wakes + 1, "the loop no longer checks by itself: it is woken"
    poller.close()


def test_a_request_is_made_once_until_it_is_done() -> None:
    asked: list[Outbox] = []
    request = FlushRequest(asked.append)
    box = SharedOutbox(True, 2, asked.append, lambda: False, 0.0, 0.0)
    request.request_flush(box)
    request.request_flush(box)
    assert asked == [box]
    request.flushed(False)
    assert request.requested, "the link is blocked and will call"
    request.flushed(True)
    assert not request.requested
    request.streaming = True
    request.flushed(True)
    assert request.requested
    assert request.comes_again
    request.flushed(True)
    assert not request.comes_again
    assert not request.ask_later(box), "no loop checks by itself"


def test_what_waits_for_the_next_round_is_written_before_something_long(pair: Pair) -> None:
    runtime, loop, one, other = pair
    with loop.as_loop():
        offered(one)
        assert not one.link.sent
        runtime.flushing.flush_now()
        assert one.link.sent
        offered(other)  # after it, and before the round that was asked for
    loop.settle()
    assert other.link.sent
    assert runtime.flushing.is_idle()
