"""A thread that waits for data polls the sockets in the loop's place."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from tests.engine.by_hand import Client, HandLoop, MemoryLink, connected, framed, started
from tests.waiting import SECONDS
from zenlake.engine.channel import Channel
from zenlake.engine.handlers import SampleQueue
from zenlake.engine.polling import LOOK, LOOKS, SocketPoller
from zenlake.engine.runtime import Runtime
from zenlake.wire import Push, Put


@dataclass
class Scene:
    """A node with one client whose link has a descriptor, and a subscribed channel."""

    runtime: Runtime
    loop: HandLoop
    client: Client
    poller: SocketPoller
    channel: Channel
    wire: socket.socket

    @property
    def link(self) -> MemoryLink:
        return self.client.link

    def arrives(self, payload: bytes = b"v") -> None:
        """A sample comes to the socket, which shows it to whoever polls."""
        push = Push(scope=0, suffix="k", body=Put(payload=payload))
        self.link.arrived.append(framed(self.client.frame(push)))
        self.wire.send(b"!")


@pytest.fixture
def scene() -> Iterator[Scene]:
    runtime, loop = started()
    client = connected(runtime, loop)
    here, there = socket.socketpair()
    here.setblocking(False)
    client.link.descriptor = here.fileno()
    poller = SocketPoller(runtime)
    poller.add(client.pump)
    channel = Channel()
    channel.mark = runtime.mark
    channel.takers.poll = poller.poll_for
    with runtime.locked() as node:
        node.local.subscribe("**", SampleQueue(channel))
    with here, there:
        yield Scene(runtime, loop, client, poller, channel, there)
        poller.close()


def test_the_thread_that_waits_reads_the_link_itself(scene: Scene) -> None:
    scene.arrives(b"v")
    assert scene.poller.poll_for(scene.channel)
    assert scene.link.reads == 1
    assert scene.channel.received == 1
    assert scene.channel.takers.interrupt is None, "no thread polls any more"


def test_a_channel_that_has_something_is_not_waited_for(scene: Scene) -> None:
    scene.channel.push("here", 0)
    assert scene.poller.poll_for(scene.channel)
    assert scene.link.reads == 0


def test_a_thread_stays_a_moment_and_then_sleeps_as_others_do(scene: Scene) -> None:
    assert not scene.poller.poll_for(scene.channel)


def test_one_thread_polls_and_the_others_sleep(scene: Scene) -> None:
    second: list[bool] = []
    received = scene.link.on_data
    assert received is not None

    def on_data(data: bytes) -> None:
        # In the middle of the first one's turn.
        second.append(scene.poller.poll_for(Channel()))
        received(data)

    scene.link.on_data = on_data
    scene.arrives()
    assert scene.poller.poll_for(scene.channel)
    assert second == [False]


def test_without_links_there_is_nothing_to_poll(scene: Scene) -> None:
    scene.poller.remove(scene.client.pump)
    scene.arrives()
    assert not scene.poller.poll_for(scene.channel)
    assert scene.link.reads == 0


def test_a_paused_link_is_not_read(scene: Scene) -> None:
    scene.client.pump.pauses = 1
    scene.arrives()
    scene.channel.end()
    assert scene.poller.poll_for(scene.channel), "the channel is ended: nothing to wait for"
    scene.client.pump.pauses = 0
    assert scene.link.reads == 0


def test_a_paused_link_keeps_no_thread_busy_and_is_polled_again_when_it_is_resumed(
    scene: Scene,
) -> None:
    scene.client.pump.pauses = 1
    scene.arrives()
    assert not scene.poller.poll_for(scene.channel), "it sleeps as others do"
    assert scene.link.reads == 0
    with scene.loop.as_loop():
        scene.client.pump.resume()
    assert scene.poller.poll_for(scene.channel)
    assert (scene.link.reads, scene.channel.received) == (1, 1)


def test_a_link_that_is_resumed_while_it_is_left_out_is_not_forgotten(scene: Scene) -> None:
    scene.arrives()
    scene.poller._leave_out(scene.link.descriptor)  # its pause was over before that
    assert scene.poller.poll_for(scene.channel)
    assert scene.link.reads == 1


def test_the_loop_leaves_the_sockets_to_the_poller_and_takes_them_back(scene: Scene) -> None:
    scene.arrives()
    assert scene.link.watched
    scene.poller.poll_for(scene.channel)
    assert scene.poller.hot
    scene.loop.settle()
    assert not scene.link.watched, "the loop has left them to the thread"
    # The thread does something else: the loop reads in its place.
    scene.arrives()
    reads = scene.link.reads
    scene.loop.advance(LOOK)
    assert scene.link.reads == reads + 1
    assert scene.channel.received == 2
    # And keeps them when the thread has not come back for a while.
    scene.loop.advance(LOOK * LOOKS)
    assert not scene.poller.hot
    assert scene.link.watched
    reads = scene.link.reads
    scene.loop.advance(LOOK * LOOKS)
    assert scene.link.reads == reads


def test_the_loop_does_not_take_the_sockets_from_a_thread_that_polls(scene: Scene) -> None:
    received = scene.link.on_data
    assert received is not None
    looked: list[int] = []

    def on_data(data: bytes) -> None:
        scene.loop.settle()
        reads = scene.link.reads
        scene.loop.advance(LOOK * LOOKS * 3)
        looked.append(scene.link.reads - reads)
        received(data)

    scene.link.on_data = on_data
    scene.arrives()
    assert scene.poller.poll_for(scene.channel)
    assert looked == [0]
    assert scene.poller.hot


def test_a_link_that_comes_while_a_thread_polls_is_left_to_it_too(scene: Scene) -> None:
    scene.arrives()
    scene.poller.poll_for(scene.channel)
    scene.loop.settle()
    new = connected(scene.runtime, scene.loop, b"\x44")
    here, there = socket.socketpair()
    with here, there:
        new.link.descriptor = here.fileno()
        with scene.loop.as_loop():
            scene.poller.add(new.pump)
        assert not new.link.watched
        scene.poller.remove(new.pump)


def polling(scene: Scene) -> tuple[threading.Thread, list[object]]:
    """A thread that has begun to take from the channel, and polls."""
    got: list[object] = []
    thread = threading.Thread(target=lambda: got.append(scene.channel.take()))
    thread.start()
    while not scene.poller._owner:
        os.sched_yield()
    return thread, got


def test_what_comes_another_way_calls_the_polling_thread_back(scene: Scene) -> None:
    thread, got = polling(scene)
    scene.channel.push("from the program itself", 0)
    scene.channel.commit()
    thread.join(SECONDS)
    assert got == ["from the program itself"]


def test_closing_calls_the_polling_thread_back(scene: Scene) -> None:
    thread, _ = polling(scene)
    scene.poller.close()
    scene.channel.end()
    thread.join(SECONDS)
    assert not thread.is_alive()
    assert not scene.poller.poll_for(scene.channel)
