"""Waiting as a task: for an item of a channel, for room in an outbox, for other tasks.

A node on the event loop of its program has no thread that could wait. What makes a thread wait
elsewhere makes a task wait here, in the same queues and as long: a task adds a `TaskWaker` where a
thread adds a lock.
"""

from __future__ import annotations

import asyncio
from collections.abc import Generator, Iterator, MutableSequence
from contextlib import contextmanager
from time import perf_counter
from typing import TYPE_CHECKING, Final

from zenlake.engine.back_pressure import PATIENCE, Waker
from zenlake.engine.channel import Channel
from zenlake.engine.handlers import SampleQueue
from zenlake.engine.shared import SharedOutbox
from zenlake.values.qos import QOS_EXPRESS, QOS_PRIORITY
from zenlake.wire.codec_network import push_head

if TYPE_CHECKING:
    from zenlake.node.entities import Publication
    from zenlake.transport.outbox import Outbox
    from zenlake.wire.codec_network import Push

#: By task: the channel that it empties, calling a coroutine function.
emptying: dict[asyncio.Task[object], Channel] = {}
#: How long a task may go on before other tasks run, in seconds.
SLICE: Final = 0.001
#: How many items it handles before it looks at the clock.
CHECK_EVERY: Final = 16


class TaskWaker:
    """Wakes a task that awaits its future, from any thread."""

    __slots__ = ("future",)

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        """Of a task that runs on `loop`."""
        self.future: asyncio.Future[None] = loop.create_future()

    def release(self) -> None:
        """Wake the task."""
        future = self.future
        loop = future.get_loop()
        try:
            on_loop = asyncio.get_running_loop() is loop
        except RuntimeError:
            on_loop = False
        if on_loop:
            self._wake()
        elif not loop.is_closed():
            loop.call_soon_threadsafe(self._wake)

    def _wake(self) -> None:
        if not self.future.done():
            self.future.set_result(None)


class Yield:
    """An awaitable that gives every other task one round, without the cost of a future."""

    __slots__ = ()

    def __await__(self) -> Generator[None, None, None]:
        """Come back in the next round of the loop."""
        yield


YIELD: Final = Yield()


class TimeSlice:
    """How long a task that never has to wait has kept the loop to itself."""

    __slots__ = ("left", "since")

    def __init__(self) -> None:
        """A slice that begins now."""
        self.left: int = CHECK_EVERY
        self.since: float = perf_counter()

    def spent(self) -> bool:
        """Whether other tasks should run; called when `left` has come to nothing."""
        self.left = CHECK_EVERY
        now = perf_counter()
        if now - self.since < SLICE:
            return False
        self.since = now
        return True

    def renew(self) -> None:
        """Begin anew: other tasks have run."""
        self.left = CHECK_EVERY
        self.since = perf_counter()


async def join_tasks(tasks: list[asyncio.Task[None]]) -> None:
    """Wait for tasks that were cancelled, even if the waiting task is cancelled too."""
    cancelled: asyncio.CancelledError | None = None
    while any(not task.done() for task in tasks):
        try:
            await asyncio.wait(tasks)
        except asyncio.CancelledError as error:
            cancelled = error
    if cancelled is not None:
        raise cancelled


# ------------------------------------------------------------------------------------ taking


@contextmanager
def back_pressure_lifted() -> Iterator[None]:
    """Around a wait: lift the back-pressure of the channel that this very task empties."""
    task = asyncio.current_task()
    channel = None if task is None else emptying.get(task)
    if channel is None:
        yield
        return
    channel.back_pressure.lift()
    try:
        yield
    finally:
        channel.back_pressure.restore()


async def wait_for_item(channel: Channel) -> None:
    """Wait until there may be something to take, or there will be no more."""
    items = channel.queue.items
    if channel.back_pressure.watched and not items:
        channel.back_pressure.drained()
    waker = TaskWaker(asyncio.get_running_loop())
    wakers = channel.takers.wakers
    wakers.append(waker)
    try:
        # Looked at again only now: another thread may have brought something meanwhile.
        if not items and not channel.ended:
            with back_pressure_lifted():
                await waker.future
    except BaseException:
        # A task that is cancelled just as it is woken leaves the item to another waiter.
        if waker not in wakers and items and wakers:
            wakers.popleft().release()
        raise
    finally:
        if waker in wakers:
            wakers.remove(waker)


# ------------------------------------------------------------------------------------ giving


def would_block(publication: Publication) -> bool:
    """Whether a publication would have to wait now: a lane of one of its remotes is full."""
    if publication.version != publication.node.tables.version:
        publication.routes.renew(publication)
    priority = publication.priority
    for remote in publication.remotes:  # noqa: SIM110 - a generator costs more than the check
        if remote.outbox.full(priority):
            return True
    return False


async def publish(publication: Publication, push: Push) -> bool:
    """Take the steps of `Publication.publish`, awaiting room where there is none."""
    stack = publication.begin(push)
    taken = True
    for remote in list(publication.remotes):
        if not publication.address(remote, push):
            continue
        outbox, priority, reliable = remote.outbox, push.qos & QOS_PRIORITY, publication.reliable
        patience = publication.patience(push)
        if not await wait_for_room(
            outbox, priority, reliable, patience, remote.key
        ) or not outbox.offer_message(
            push, priority, reliable, patience, push.qos & QOS_EXPRESS != 0
        ):
            taken = False
    publication.finish(push, stack, taken)
    return taken


async def wait_for_room(
    outbox: Outbox, priority: int, reliable: bool, congestion: int, key: str
) -> bool:
    """Wait until a lane has room, as long as the message may; False if it is not to be sent.

    Then it is counted as dropped, under its `key`.
    """
    if not isinstance(outbox, SharedOutbox) or not outbox.full(priority):
        return True
    rules = outbox.congestion
    droppable = rules.may_drop(priority, reliable, congestion)
    dropped = [push_head(scope=0, suffix=key)]
    if droppable and rules.congested[priority]:
        outbox.lose(priority, dropped, 1)
        return False
    first = not droppable and not rules.blocking[priority]
    if first:
        rules.blocking[priority] = True
    try:
        has_room = await wait_for_room_within(outbox, priority, rules.patience(droppable))
    finally:
        if first:
            rules.blocking[priority] = False
    if not has_room:
        outbox.lose(priority, dropped, 1)
        outbox.give_up(priority, droppable)
    return has_room


async def wait_for_room_within(outbox: SharedOutbox, priority: int, patience: float) -> bool:
    """Wait a while until a lane has room; False if it has none, or is no more."""
    deadline = perf_counter() + patience
    while outbox.full(priority) and not outbox.closed and perf_counter() < deadline:
        await wait_for_waker(outbox.room.wakers, deadline)
    return not outbox.full(priority) and not outbox.closed


async def wait_for_local_room(publication: Publication) -> None:
    """Wait a while for subscribers of this very node whose channels are full."""
    for subscriber in list(publication.locals):
        sink = subscriber.sink
        if isinstance(sink, SampleQueue):
            channel = sink.channel
            back_pressure = channel.back_pressure
            if channel.is_full() and not back_pressure.stuck:
                back_pressure.watched = True
                await wait_for_waker(back_pressure.wakers, perf_counter() + PATIENCE)
                # If no item was taken, perhaps this very task takes: it is not made to wait again.
                back_pressure.stuck = channel.is_full()


async def wait_for_waker(wakers: MutableSequence[Waker], deadline: float) -> None:
    """Add a waker to `wakers`, and wait until it is released or the deadline is over."""
    loop = asyncio.get_running_loop()
    waker = TaskWaker(loop)
    wakers.append(waker)
    timer = loop.call_later(max(0.0, deadline - perf_counter()), waker.release)
    try:
        with back_pressure_lifted():
            await waker.future
    finally:
        timer.cancel()
        if waker in wakers:
            wakers.remove(waker)
