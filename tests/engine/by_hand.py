"""A node on a loop that is turned by hand, and links that are only memory.

Nothing runs by itself: `HandLoop.step` runs what was scheduled, `HandLoop.advance` the timers. The
objects under test are the real ones; only sockets and the event loop are replaced.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, cast

import pytest

from tests.api.sessions import config
from zenlake.engine.loop import EventLoop
from zenlake.engine.pump import Pump
from zenlake.engine.runtime import Runtime
from zenlake.errors import LinkError
from zenlake.links.link import MAX_BATCH, OnData, OnLost, UnicastLink
from zenlake.wire import (
    Declare,
    DeclareSubscriber,
    Frame,
    InitAck,
    InitSyn,
    Message,
    OpenSyn,
    Push,
    Put,
    TransportMessage,
    read_batch,
    write,
)


class Timer:
    """What `call_later` returns."""

    def __init__(self, when: float, call: Callable[[], object]) -> None:
        self.when = when
        self.call = call
        self.cancelled = False

    def cancel(self) -> None:
        self.cancelled = True


class Schedule:
    """The part of an event loop that the engine uses, turned by hand."""

    def __init__(self) -> None:
        self.ready: list[Callable[[], object]] = []
        self.timers: list[Timer] = []
        self.now = 0.0
        #: How often another thread has woken the loop.
        self.wakes = 0

    def call_soon(self, call: Callable[..., object], *arguments: object) -> None:
        self.ready.append(lambda: call(*arguments))

    def call_soon_threadsafe(self, call: Callable[..., object], *arguments: object) -> None:
        self.wakes += 1
        self.call_soon(call, *arguments)

    def call_later(self, delay: float, call: Callable[..., object], *arguments: object) -> Timer:
        timer = Timer(self.now + delay, lambda: call(*arguments))
        self.timers.append(timer)
        return timer


class HandLoop(EventLoop):
    """A loop whose thread is whichever thread turns it."""

    def __init__(self) -> None:
        self.schedule = Schedule()
        super().__init__(cast(asyncio.AbstractEventLoop, self.schedule), 0)

    @property
    def alive(self) -> bool:
        return True

    def step(self) -> int:
        """Run what is scheduled now, as the loop's thread; how many calls."""
        calls, self.schedule.ready = self.schedule.ready, []
        with self.as_loop():
            for call in calls:
                call()
        return len(calls)

    def settle(self) -> None:
        """Run until nothing is scheduled."""
        while self.step():
            pass

    def advance(self, seconds: float) -> None:
        """Let time pass: the timers that are due ring in order, each followed by what it caused."""
        schedule = self.schedule
        until = schedule.now + seconds
        while True:
            due = [t for t in schedule.timers if t.when <= until and not t.cancelled]
            if not due:
                break
            timer = min(due, key=lambda timer: timer.when)
            schedule.timers.remove(timer)
            schedule.now = max(schedule.now, timer.when)
            with self.as_loop():
                timer.call()
            self.settle()
        schedule.now = until

    @contextmanager
    def as_loop(self) -> Iterator[None]:
        """What happens inside happens on the thread of the loop."""
        before, self.ident = self.ident, threading.get_ident()
        try:
            yield
        finally:
            self.ident = before


class MemoryLink(UnicastLink):
    """A link without a network: what was sent, and how much more it takes."""

    stream = True
    reliable = True
    thread_safe = False
    mtu = MAX_BATCH

    def __init__(self, room: int = 1 << 30) -> None:
        super().__init__("memory/here", "memory/there")
        self.room = room
        self.sent = b""
        self.paused = False
        self.watched = True
        self.closed = False
        self.admitted = False
        self.descriptor = -1
        #: What it was told to read at once, last.
        self.read_size = 0
        #: What `read_now` finds.
        self.arrived: list[bytes] = []
        self.reads = 0
        self.on_data: OnData | None = None
        self.on_lost: OnLost | None = None
        self.on_writable: Callable[[], None] | None = None
        #: Whether it has an end of the other side to wait for, and whom to call then.
        self.has_other_side = False
        self.on_end: Callable[[], None] | None = None

    @property
    def interfaces(self) -> list[str]:
        return []

    @property
    def fd(self) -> int:
        return self.descriptor

    def start(self, on_data: OnData, on_lost: OnLost) -> None:
        self.on_data, self.on_lost = on_data, on_lost

    def send(self, data: bytes) -> int:
        if self.closed:
            raise LinkError("the link is closed")
        taken = min(len(data), self.room)
        self.room -= taken
        self.sent += data[:taken]
        return taken

    def when_writable(self, callback: Callable[[], None]) -> None:
        self.on_writable = callback

    def becomes_writable(self, room: int) -> None:
        """Take so many bytes more, and call back as a loop would."""
        self.room = room
        callback, self.on_writable = self.on_writable, None
        if callback is not None:
            callback()

    def finish(self, on_end: Callable[[], None]) -> bool:
        self.on_end = on_end
        return self.has_other_side

    def read_now(self) -> None:
        self.reads += 1
        if self.descriptor >= 0:
            with contextlib.suppress(BlockingIOError):
                os.read(self.descriptor, 4096)
        while self.arrived and self.on_data is not None:
            self.on_data(self.arrived.pop(0))

    def read_at_most(self, size: int) -> None:
        self.read_size = size

    def unwatch(self) -> None:
        self.watched = False

    def watch(self) -> None:
        self.watched = True

    def pause(self) -> None:
        self.paused = True

    def resume(self) -> None:
        self.paused = False

    def admit(self) -> None:
        self.admitted = True

    def close(self) -> None:
        self.closed = True

    def batches(self) -> list[TransportMessage]:
        """The messages in all complete batches that were sent so far; they are taken out."""
        messages: list[TransportMessage] = []
        while len(self.sent) >= 2:
            size = int.from_bytes(self.sent[:2], "little")
            if len(self.sent) < 2 + size:
                break
            messages += cast("list[TransportMessage]", list(read_batch(self.sent[2 : 2 + size])))
            self.sent = self.sent[2 + size :]
        return messages


class Client:
    """A program at the other end of a memory link, which speaks to a node by hand."""

    def __init__(self, runtime: Runtime, loop: HandLoop, link: MemoryLink, zid: bytes) -> None:
        self.runtime = runtime
        self.loop = loop
        self.link = link
        self.zid = zid
        self.sn = 0
        with loop.as_loop():
            runtime._accepted(link)
        loop.settle()

    @property
    def pump(self) -> Pump:
        """The pump of the link."""
        [pump] = [pump for pump in self.runtime.pumps if pump.link is self.link]
        return pump

    def say(self, message: Message) -> None:
        """One batch of one message arrives at the node, on its loop."""
        assert self.link.on_data is not None
        with self.loop.as_loop():
            self.link.on_data(framed(message))
        self.loop.settle()

    def open(self, lease: int = 60_000) -> None:
        """Open the session; `lease`: its milliseconds."""
        self.say(InitSyn(version=9, whatami=2, zid=self.zid, qos=True, patch=1))
        [ack] = self.link.batches()
        assert isinstance(ack, InitAck)
        self.say(OpenSyn(lease=lease, initial_sn=0, cookie=ack.cookie))
        self.link.batches()

    def frame(self, *messages: Any) -> Frame:
        """The next frame."""
        frame = Frame(sn=self.sn, reliable=True, messages=messages)
        self.sn += 1
        return frame

    def put(self, key: str, payload: bytes, count: int = 1) -> None:
        """Publications in one frame."""
        push = Push(scope=0, suffix=key, qos=0x0D, body=Put(payload=payload))
        self.say(self.frame(*[push] * count))

    def subscribe(self, key: str) -> None:
        """Declare a subscriber."""
        self.say(self.frame(Declare(body=DeclareSubscriber(id=1, scope=0, suffix=key))))
        self.link.batches()


def framed(message: Message) -> bytes:
    """A batch as it is on a stream."""
    batch = write(message)
    return len(batch).to_bytes(2, "little") + batch


class HandTime:
    """The module `time`, of which the monotonic clock is that of a loop."""

    def __init__(self, loop: HandLoop) -> None:
        self._loop = loop

    def monotonic(self) -> float:
        return self._loop.schedule.now

    def __getattr__(self, name: str) -> Any:
        return getattr(time, name)


def timed(monkeypatch: pytest.MonkeyPatch) -> HandLoop:
    """A loop of whose time nodes are from now on: between two calls of `advance` none passes."""
    loop = HandLoop()
    hand = HandTime(loop)
    for name in ("assembly", "runtime"):
        monkeypatch.setattr(f"zenlake.engine.{name}.time", hand)
    for name in ("locked", "pump", "timer"):
        monkeypatch.setattr(f"zenlake.engine.{name}.monotonic", hand.monotonic)
    return loop


def started(loop: HandLoop | None = None, **settings: str) -> tuple[Runtime, HandLoop]:
    """A node that listens nowhere and connects nowhere, on a loop that is turned by hand."""
    keys = {"mode": '"router"', "scouting__gossip__enabled": "false", **settings}
    loop = loop or HandLoop()
    runtime = Runtime(loop, config(**keys))
    for step in (runtime._listen, runtime._begin):
        with loop.as_loop(), _finished(step()):
            pass
    loop.settle()
    return runtime, loop


@contextmanager
def _finished(work: Any) -> Iterator[None]:
    """A coroutine that has nothing to wait for, run to its end."""
    try:
        work.send(None)
    except StopIteration:
        yield
    else:
        raise AssertionError("it waits for a real loop")


def connected(
    runtime: Runtime, loop: HandLoop, zid: bytes = b"\x11", room: int = 1 << 30
) -> Client:
    """A client with an open session."""
    client = Client(runtime, loop, MemoryLink(room), zid)
    client.open()
    return client
