"""Cancelled at any await, a program leaves nothing behind.

A scenario that uses all of the interface is driven step by step: at the chosen suspensions its
task is cancelled. Afterwards its session is closed, nothing of it runs on the loop, no wire is
open, and the neighbour knows of nothing that it had declared.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine, Generator
from contextlib import asynccontextmanager
from typing import Any

import hypothesis
from hypothesis import strategies as st

import zenlake
from tests.aio.sessions import BLOCK, leftovers, matched, run
from tests.aio.wires import Wires
from tests.api.sessions import config
from tests.waiting import SECONDS
from zenlake import aio
from zenlake.handlers import FifoChannel

LARGE = bytes(60_000)


class Driven:
    """A coroutine whose task is cancelled at some of its suspensions, counted from 1."""

    def __init__(self, work: Coroutine[Any, Any, None], cancels: frozenset[int]) -> None:
        self._work = work
        self._cancels = cancels
        self.suspensions = 0

    def __await__(self) -> Generator[Any, None, None]:
        thrown: BaseException | None = None
        while True:
            try:
                waits_for = self._work.send(None) if thrown is None else self._work.throw(thrown)
            except StopIteration:
                return
            self.suspensions += 1
            if self.suspensions in self._cancels:
                task = asyncio.current_task()
                assert task is not None
                task.cancel()
            thrown = None
            try:
                yield waits_for
            except BaseException as error:
                thrown = error


@asynccontextmanager
async def witness() -> AsyncIterator[aio.Session]:
    """A neighbour that publishes, asks, answers and takes its time."""
    listen = config(listen__endpoints='["sim/here:1"]')

    async def answer(query: aio.Query) -> None:
        for n in range(3):
            await query.reply(f"w/{n}", LARGE)

    async def slowly(_sample: zenlake.Sample) -> None:
        for _ in range(5):
            await asyncio.sleep(0)

    async def publish(session: aio.Session) -> None:
        while True:
            await session.put("to/them", LARGE, congestion_control=BLOCK)
            for _ in range(20):
                await asyncio.sleep(0)

    async def ask(session: aio.Session) -> None:
        while True:
            async for _ in session.get("q"):
                pass
            for _ in range(20):
                await asyncio.sleep(0)

    async with aio.open(listen) as session, asyncio.TaskGroup() as tasks:
        await session.declare_queryable("w/*", answer)
        await session.declare_subscriber("from/them", slowly)
        running = [tasks.create_task(publish(session)), tasks.create_task(ask(session))]
        try:
            yield session
        finally:
            for task in running:
                task.cancel()


async def scenario(opened: list[aio.Session]) -> None:
    """Everything that a program may wait for, once."""
    connect = config(connect__endpoints='["sim/here:1"]')
    async with aio.open(connect) as session:
        opened.append(session)

        async def answer(query: aio.Query) -> None:
            async with query:
                await query.reply("q", "yes")

        async with (
            session.declare_publisher("from/them", congestion_control=BLOCK) as publisher,
            session.declare_querier("w/*", consolidation=zenlake.ConsolidationMode.NONE) as querier,
            session.liveliness().declare_token("alive/them"),
            session.liveliness().declare_subscriber("alive/*", history=True) as living,
        ):
            await session.declare_queryable("q", answer)
            await matched(publisher)
            await matched(querier)
            for _ in range(12):
                await publisher.put(LARGE)
            async with session.declare_subscriber("to/*", FifoChannel(2)) as subscriber:
                taken = 0
                async for _ in subscriber:
                    taken += 1
                    if taken == 3:
                        break
                await subscriber.recv()
            assert len([reply async for reply in querier.get()]) == 3
            async with session.get("w/*") as replies:
                async for _ in replies:
                    break
            await living.recv()
            await session.put("from/them", LARGE, congestion_control=BLOCK)
        async with asyncio.TaskGroup() as tasks:
            other = await session.declare_subscriber("to/*")
            tasks.create_task(other.recv())
            tasks.create_task(other.recv())


async def cancelled_at(cancels: frozenset[int], seed: int) -> int:
    """Run the scenario; the number of its suspensions."""
    with Wires(seed) as wires:
        async with witness() as neighbour:
            tokens = await neighbour.liveliness().declare_subscriber("alive/*")
            before = set(asyncio.all_tasks())
            opened: list[aio.Session] = []
            driven = Driven(scenario(opened), cancels)

            async def drive() -> None:
                await driven

            task = asyncio.create_task(drive())
            async with asyncio.timeout(SECONDS):
                await asyncio.wait([task])
            reached = any(at <= driven.suspensions for at in cancels)
            assert task.cancelled() == reached
            if not reached:
                task.result()
            assert all(session.is_closed() for session in opened)
            assert set(asyncio.all_tasks()) == before
            # The neighbour hears of it as soon as the wire has carried the last words.
            async with asyncio.timeout(SECONDS):
                while neighbour.info.transports() or wires.open:
                    await asyncio.sleep(0)
            node = neighbour.runtime.node
            assert list(node.neighbours) == []
            assert node.local.liveliness.alive("alive/*") == []
            news = [sample.kind.name for sample in iter(tokens.try_recv, None)]
            assert news in ([], ["PUT", "DELETE"])
        assert leftovers() == []
    return driven.suspensions


def test_the_scenario_comes_to_its_end_when_nobody_cancels_it() -> None:
    assert run(lambda: cancelled_at(frozenset(), 0)) > 10


def test_cancelled_at_any_await_a_program_leaves_nothing() -> None:
    at, suspensions = 1, 1
    while at <= suspensions:
        suspensions = run(lambda at=at: cancelled_at(frozenset({at}), 0))  # type: ignore[misc]
        at += 1
    assert at > 10


@hypothesis.given(
    seed=st.integers(0, 1000),
    first=st.integers(1, 60),
    then=st.lists(st.integers(1, 4), max_size=4),
)
def test_cancelled_again_and_again_it_leaves_nothing_either(
    seed: int, first: int, then: list[int]
) -> None:
    cancels = [first]
    for gap in then:
        cancels.append(cancels[-1] + gap)
    run(lambda: cancelled_at(frozenset(cancels), seed))
