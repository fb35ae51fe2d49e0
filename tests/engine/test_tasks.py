"""Tasks that wait: for an item, for room in an outbox, for a round. Nothing waits for a clock."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine
from typing import Any

import pytest

from tests.waiting import SECONDS
from zenlake.engine import tasks
from zenlake.engine.channel import Channel
from zenlake.engine.congestion import BLOCK, BLOCK_FIRST, DROP
from zenlake.engine.loop import CallerLoop
from zenlake.engine.shared import SharedOutbox
from zenlake.engine.tasks import (
    CHECK_EVERY,
    SLICE,
    YIELD,
    TaskWaker,
    TimeSlice,
    back_pressure_lifted,
    emptying,
    join_tasks,
    wait_for_item,
    wait_for_room,
)
from zenlake.transport.drops import DropLog

FOREVER = 1e6
DATA = 5


def run(work: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(work, SECONDS))


async def rounds(count: int = 3) -> None:
    """Give all other tasks some rounds of the loop."""
    for _ in range(count):
        await YIELD


# --- waking --------------------------------------------------------------------------------------


def test_a_task_is_woken_from_its_loop_and_from_any_thread() -> None:
    async def work() -> None:
        loop = asyncio.get_running_loop()
        here, elsewhere = TaskWaker(loop), TaskWaker(loop)
        here.release()
        here.release()
        assert here.future.done()
        thread = threading.Thread(target=elsewhere.release)
        thread.start()
        await elsewhere.future
        thread.join(SECONDS)

    run(work())


def test_waking_a_task_of_a_closed_loop_does_nothing() -> None:
    loop = asyncio.new_event_loop()
    waker = TaskWaker(loop)
    loop.close()
    waker.release()
    assert not waker.future.done()


def test_a_yield_gives_every_other_task_one_round() -> None:
    async def work() -> None:
        seen: list[str] = []

        async def other() -> None:
            for _ in range(2):
                seen.append("other")
                await YIELD

        task = asyncio.create_task(other())
        await YIELD
        seen.append("this")
        await task
        assert seen == ["other", "this", "other"]

    run(work())


def test_a_slice_is_spent_by_time_and_looked_at_by_count(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0
    monkeypatch.setattr(tasks, "perf_counter", lambda: now)
    share = TimeSlice()
    share.left = 0
    now = SLICE / 2
    assert not share.spent()
    assert share.left == CHECK_EVERY
    now = SLICE
    assert share.spent()
    assert not share.spent(), "a new slice has begun"
    now = 10.0
    share.renew()
    assert not share.spent()


def test_cancelled_tasks_are_waited_for_even_by_a_task_that_is_cancelled() -> None:
    async def work() -> None:
        leave = asyncio.Event()
        ended: list[str] = []

        async def slow() -> None:
            try:
                await asyncio.Event().wait()
            finally:
                await leave.wait()
                ended.append("slow")

        inner = asyncio.create_task(slow())
        await rounds()
        inner.cancel()
        waiting = asyncio.create_task(join_tasks([inner]))
        await rounds()
        waiting.cancel()
        await rounds()
        assert not waiting.done(), "it waits on for the task that is still at work"
        leave.set()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        assert ended == ["slow"]

    run(work())


def test_the_loop_of_the_caller_is_asked_for_where_there_is_one() -> None:
    with pytest.raises(RuntimeError):
        CallerLoop()

    async def work() -> None:
        loop = CallerLoop()
        called = asyncio.Event()
        assert loop.is_current()
        loop.soon(called.set)
        await called.wait()
        called.clear()
        thread = threading.Thread(target=lambda: loop.soon(called.set))
        thread.start()
        await called.wait()
        thread.join(SECONDS)

    run(work())


# --- an item -------------------------------------------------------------------------------------


def test_a_task_waits_until_a_commit_and_not_when_there_is_an_item() -> None:
    async def work() -> None:
        channel = Channel()
        waiting = asyncio.create_task(wait_for_item(channel))
        await rounds()
        assert len(channel.takers.wakers) == 1
        channel.push("x", 0)
        await rounds()
        assert not waiting.done(), "a push alone wakes no task"
        channel.commit()
        await waiting
        assert not channel.takers.wakers
        await wait_for_item(channel)
        assert not channel.takers.wakers

    run(work())


def test_the_end_of_a_channel_wakes_all_tasks() -> None:
    async def work() -> None:
        channel = Channel()
        waiting = [asyncio.create_task(wait_for_item(channel)) for _ in range(3)]
        await rounds()
        channel.end()
        await asyncio.gather(*waiting)

    run(work())


def test_a_task_cancelled_as_it_is_woken_leaves_the_item_to_another() -> None:
    async def work() -> None:
        channel = Channel()
        first = asyncio.create_task(wait_for_item(channel))
        await rounds()
        second = asyncio.create_task(wait_for_item(channel))
        await rounds()
        channel.push("x", 0)
        channel.commit()
        first.cancel()
        with pytest.raises(asyncio.CancelledError):
            await first
        await second
        assert channel.take(False) == "x"

    run(work())


def test_a_task_cancelled_while_it_waits_is_forgotten() -> None:
    async def work() -> None:
        channel = Channel()
        waiting = asyncio.create_task(wait_for_item(channel))
        await rounds()
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        assert not channel.takers.wakers

    run(work())


def test_a_task_that_waits_lifts_the_back_pressure_of_what_it_empties() -> None:
    async def work() -> None:
        channel = Channel(1)
        channel.push("x", 0)
        task = asyncio.current_task()
        assert task is not None
        assert channel.is_full()
        emptying[task] = channel
        try:
            with back_pressure_lifted():
                assert not channel.is_full()
            assert channel.is_full()
        finally:
            del emptying[task]
        with back_pressure_lifted():
            assert channel.is_full(), "it empties nothing now"

    run(work())


# --- room ----------------------------------------------------------------------------------------


class Wire:
    """A link that takes as many bytes as it has room for."""

    def __init__(self) -> None:
        self.room = 0

    def write(self, data: bytes) -> int:
        taken = min(len(data), self.room)
        self.room -= taken
        return taken


def full(patience: float = FOREVER) -> tuple[SharedOutbox, Wire]:
    """An outbox whose lane is full, since its link takes nothing."""
    box = SharedOutbox(True, 2, lambda _: None, lambda: False, patience, patience)
    wire = Wire()
    box.attach(wire.write)
    while box.push(b"", bytes(60_000), DATA, True):
        pass
    box.flush()
    while box.push(b"", bytes(60_000), DATA, True):
        pass
    assert box.full(DATA)
    return box, wire


def test_a_lane_with_room_is_not_waited_for() -> None:
    async def work() -> None:
        box = SharedOutbox(True, 2, lambda _: None, lambda: False, 0.0, 0.0)
        assert await wait_for_room(box, DATA, True, BLOCK, "robot/7")

    run(work())


def test_a_task_goes_on_when_a_batch_has_left() -> None:
    async def work() -> None:
        box, wire = full()
        waiting = asyncio.create_task(wait_for_room(box, DATA, True, BLOCK, "robot/7"))
        await rounds()
        assert len(box.room.wakers) == 1
        assert box.congestion.blocking[DATA]
        wire.room = 1 << 30
        assert box.flush()
        assert await waiting
        assert not box.congestion.blocking[DATA]
        assert sum(box.drops) == 0

    run(work())


def test_a_message_that_may_be_dropped_waits_once_and_the_next_ones_not_at_all() -> None:
    async def work() -> None:
        box, wire = full(patience=0.0)
        box.lost = DropLog()
        assert not await wait_for_room(box, DATA, True, DROP, "robot/7")
        assert box.congestion.congested[DATA]
        box.congestion.wait_before_drop = FOREVER
        assert not await wait_for_room(box, DATA, False, BLOCK, "robot/7"), (
            "best effort may be dropped"
        )
        assert box.drops[DATA] == 2
        assert box.lost.tallies["congestion"].rows == {"robot/7": 2}
        wire.room = 1 << 30
        box.flush()
        assert not box.congestion.congested[DATA]

    run(work())


def test_a_message_that_may_not_be_dropped_gives_the_neighbour_up() -> None:
    async def work() -> None:
        box, _ = full(patience=0.0)
        given_up: list[bool] = []
        box.congestion.unresponsive = lambda: given_up.append(True)
        assert not await wait_for_room(box, DATA, True, BLOCK, "robot/7")
        assert given_up == [True]
        assert not box.congestion.congested[DATA]

    run(work())


def test_of_several_that_block_first_one_blocks_and_the_others_are_dropped() -> None:
    async def work() -> None:
        box, wire = full()
        box.congestion.wait_before_drop = 0.0
        first = asyncio.create_task(wait_for_room(box, DATA, True, BLOCK_FIRST, "robot/7"))
        await rounds()
        assert not await wait_for_room(box, DATA, True, BLOCK_FIRST, "robot/7")
        wire.room = 1 << 30
        box.flush()
        assert await first

    run(work())


def test_an_outbox_that_is_shut_lets_all_go() -> None:
    async def work() -> None:
        box, _ = full()
        box.congestion.unresponsive = lambda: pytest.fail("it is closed already")
        waiting = [
            asyncio.create_task(wait_for_room(box, DATA, True, BLOCK, "robot/7")) for _ in range(3)
        ]
        await rounds()
        box.shut()
        assert await asyncio.gather(*waiting) == [False] * 3

    run(work())


def test_a_task_cancelled_while_it_waits_for_room_blocks_no_longer() -> None:
    async def work() -> None:
        box, _ = full()
        waiting = asyncio.create_task(wait_for_room(box, DATA, True, BLOCK, "robot/7"))
        await rounds()
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        assert not box.congestion.blocking[DATA]
        assert not box.room.wakers

    run(work())
