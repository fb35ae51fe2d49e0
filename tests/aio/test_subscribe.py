from __future__ import annotations

import asyncio
import time

import pytest

import zenlake
from tests.aio.sessions import BLOCK, joined, matched, run
from tests.api.sessions import config
from tests.waiting import SECONDS
from zenlake import aio
from zenlake.engine.tasks import CHECK_EVERY, would_block
from zenlake.handlers import Callback, FifoChannel, RingChannel
from zenlake.links.stream import READ_SIZE


def test_samples_come_in_order_and_iteration_ends_with_the_subscriber() -> None:
    async def main() -> None:
        async with (
            joined() as (here, there),
            there.declare_publisher("a/b", congestion_control=BLOCK) as publisher,
        ):
            subscriber = await here.declare_subscriber("a/*")
            await matched(publisher)
            got: list[int] = []

            async def consume() -> None:
                async for sample in subscriber:
                    got.append(int(sample.payload.to_string()))
                    if len(got) == 5000:
                        await subscriber.undeclare()

            consuming = asyncio.create_task(consume())
            for n in range(5000):
                await publisher.put(str(n))
            await consuming
            assert got == list(range(5000))

    run(main)


def test_a_subscriber_that_only_a_loop_holds_lives_as_long_as_the_loop() -> None:
    async def main() -> None:
        async with aio.open(config()) as session:
            samples = aiter(await session.declare_subscriber("a"))
            await asyncio.sleep(0)
            await session.put("a", "1")
            assert (await anext(samples)).payload == b"1"
            del samples
            await asyncio.sleep(0)
            assert session.try_put("a", "2") is zenlake.PutOutcome.NOBODY_LISTENS

    run(main)


def test_a_slow_consumer_slows_its_publisher_and_loses_nothing() -> None:
    async def main() -> None:
        async with (
            joined() as (here, there),
            here.declare_subscriber("a", FifoChannel(2)) as subscriber,
            there.declare_publisher("a", congestion_control=BLOCK) as publisher,
        ):
            await matched(publisher)
            count, most = 2000, 0
            sent = 0
            payload = bytes(20_000)

            async def publish() -> None:
                nonlocal sent
                for n in range(count):
                    await publisher.put(n.to_bytes(4, "big") + payload)
                    sent += 1

            publishing = asyncio.create_task(publish())
            for n in range(count):
                sample = await subscriber.recv()
                assert int.from_bytes(sample.payload.to_bytes()[:4], "big") == n
                most = max(most, subscriber.stats.queued)
            await publishing
            assert subscriber.stats.dropped == {"oldest": 0, "full": 0, "cancelled": 0}
            # A link is read in chunks, so that as much more than the bound may wait.
            assert most <= 2 + 1 + READ_SIZE // len(payload)

    run(main)


def test_a_publisher_that_may_wait_waits_for_a_subscriber_that_takes_nothing() -> None:
    async def main() -> None:
        async with (
            joined() as (here, there),
            here.declare_subscriber("a", FifoChannel(1)) as subscriber,
            there.declare_publisher("a", congestion_control=BLOCK) as publisher,
        ):
            await matched(publisher)
            sent = 0

            async def publish() -> None:
                nonlocal sent
                while True:
                    await publisher.put(bytes(60_000))
                    sent += 1

            publishing = asyncio.create_task(publish())
            async with asyncio.timeout(SECONDS):
                while not would_block(publisher._publication):
                    await asyncio.sleep(0)
            before = sent
            assert before > 0
            for _ in range(sent):
                await subscriber.recv()
            assert sent > before
            publishing.cancel()
            await asyncio.wait([publishing])

    run(main)


def test_what_may_be_dropped_is_dropped_and_the_loop_goes_on() -> None:
    async def main() -> None:
        async with (
            joined() as (here, there),
            here.declare_subscriber("a", FifoChannel(1)),
            there.declare_publisher("a") as publisher,
        ):
            await matched(publisher)
            turns = 0

            async def others() -> None:
                nonlocal turns
                while True:
                    turns += 1
                    await asyncio.sleep(0)

            other = asyncio.create_task(others())
            while not publisher._publication.dropped:
                await publisher.put(bytes(60_000))
            before = turns
            # By this clock, since a time-out of the loop would need a turn itself.
            deadline = time.monotonic() + SECONDS
            while turns == before:
                assert time.monotonic() < deadline
                await publisher.put(bytes(60_000))
            other.cancel()
            await asyncio.wait([other])

    run(main)


def test_a_program_that_fills_its_own_channel_waits_for_its_other_task() -> None:
    async def main() -> None:
        async with aio.open(config()) as session:
            subscriber = await session.declare_subscriber("a", FifoChannel(10))

            async def consume() -> list[int]:
                got = []
                async for sample in subscriber:
                    got.append(int(sample.payload.to_string()))
                    assert subscriber.stats.queued <= 10
                    await asyncio.sleep(0)
                    if got[-1] == 499:
                        break
                return got

            consuming = asyncio.create_task(consume())
            for n in range(500):
                await session.put("a", str(n))
            assert await consuming == list(range(500))

    run(main)


def test_a_task_that_always_finds_something_gives_others_their_turn() -> None:
    async def main() -> None:
        async with aio.open(config()) as session:
            subscriber = await session.declare_subscriber("a")
            for n in range(200):
                session.try_put("a", str(n))
            taken, taken_before, most = 0, 0, 0

            async def others() -> None:
                nonlocal taken_before, most
                while True:
                    most, taken_before = max(most, taken - taken_before), taken
                    await asyncio.sleep(0)

            other = asyncio.create_task(others())
            async for _ in subscriber:
                taken += 1
                busy = time.perf_counter() + 0.0002
                while time.perf_counter() < busy:
                    pass
                if taken == 200:
                    break
            # The clock is looked at after sixteen items, which take longer than a fair share.
            assert most <= 2 * CHECK_EVERY
            other.cancel()
            await asyncio.wait([other])

    run(main)


def test_a_cancelled_wait_takes_nothing() -> None:
    async def main() -> None:
        async with aio.open(config()) as session:
            subscriber = await session.declare_subscriber("a")
            first = asyncio.create_task(subscriber.recv())
            second = asyncio.create_task(subscriber.recv())
            await asyncio.sleep(0)
            await session.put("a", "x")
            # Woken, and cancelled before it ran: the sample is for the other one.
            first.cancel()
            assert (await second).payload == b"x"
            assert first.cancelled()
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0):
                    await subscriber.recv()
            await session.put("a", "y")
            assert (await subscriber.recv()).payload == b"y"

    run(main)


def test_a_ring_keeps_the_newest() -> None:
    async def main() -> None:
        async with (
            aio.open(config()) as session,
            session.declare_subscriber("a", RingChannel(2)) as subscriber,
        ):
            for n in range(5):
                await session.put("a", str(n))
            assert [(await subscriber.recv()).payload.to_string() for _ in range(2)] == ["3", "4"]
            assert subscriber.try_recv() is None
            assert subscriber.stats.dropped["oldest"] == 3

    run(main)


def test_a_function_is_called_at_once_and_a_coroutine_function_by_a_task() -> None:
    async def main() -> None:
        async with aio.open(config()) as session:
            at_once: list[bytes] = []
            slowly: list[bytes] = []
            over = asyncio.Event()
            ended = asyncio.Event()

            async def slow(sample: zenlake.Sample) -> None:
                await asyncio.sleep(0)
                slowly.append(sample.payload.to_bytes())
                if sample.payload == b"1":
                    raise ValueError("the next one is delivered all the same")
                if sample.payload == b"3":
                    over.set()

            await session.declare_subscriber("a", lambda s: at_once.append(s.payload.to_bytes()))
            task = await session.declare_subscriber("a", (Callback(slow, ended.set), slowly))
            assert task.handler is slowly
            for n in range(4):
                await session.put("a", str(n))
            assert at_once == [b"0", b"1", b"2", b"3"]
            assert slowly == []
            await over.wait()
            assert slowly == at_once
            with pytest.raises(TypeError, match="nothing to take"):
                await task.recv()
            await task.undeclare()
            await ended.wait()

    run(main)


def test_undeclared_things_say_so() -> None:
    async def main() -> None:
        async with aio.open(config()) as session:
            subscriber = await session.declare_subscriber("a")
            await session.undeclare(subscriber)
            with pytest.raises(zenlake.ZError, match="Undeclared subscriber"):
                await subscriber.recv()
            with pytest.raises(zenlake.ZError, match="Undeclared subscriber"):
                await subscriber.undeclare()
            key = await session.declare_keyexpr("a/b")
            await session.undeclare(key)
        with pytest.raises(zenlake.ZError, match="session closed"):
            await session.put("a", "x")
        with pytest.raises(zenlake.ZError, match="session closed"):
            session.get("a")

    run(main)


def test_things_show_what_they_are() -> None:
    async def main() -> None:
        async with (
            aio.open(config()) as session,
            session.declare_subscriber("a/*") as subscriber,
            session.declare_publisher("a/b", encoding="text/plain") as publisher,
        ):
            assert subscriber.key_expr == "a/*"
            assert subscriber.id.zid == session.zid()
            assert repr(subscriber) == "<Subscriber a/*>"
            assert repr(subscriber.handler) == "Handler[Sample]"
            assert publisher.key_expr == "a/b"
            assert publisher.matching_status
            assert str(publisher.encoding) == "text/plain"
            assert publisher.priority is zenlake.Priority.DATA
            assert publisher.reliability is zenlake.Reliability.RELIABLE
            assert publisher.congestion_control is zenlake.CongestionControl.DROP
            assert publisher.id != subscriber.id
            await publisher.put("x", attachment="y")
            await publisher.delete()
            await session.delete("a/c")
            assert publisher.try_put("z")
            kinds = [(await subscriber.recv()).kind.name for _ in range(4)]
            assert kinds == ["PUT", "DELETE", "DELETE", "PUT"]

    run(main)
