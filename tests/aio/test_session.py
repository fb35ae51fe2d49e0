from __future__ import annotations

import asyncio
import gc
import socket
import warnings

import pytest

import zenlake
from tests.aio.sessions import (
    alone,
    connected,
    joined,
    listening,
    matched,
    run,
    where,
)
from tests.api.sessions import config, connecting_to
from zenlake import aio


def test_a_session_is_entered_or_awaited() -> None:
    async def main() -> None:
        async with aio.open(config()) as session:
            assert not session.is_closed()
            assert session.zid() == session.info.zid() == session.id.zid
        assert session.is_closed()
        session = await aio.open(config())
        async with session as same:
            assert same is session
        assert session.is_closed()
        await session.close()

    run(main)


def test_an_exception_closes_everything_on_its_way_out() -> None:
    async def main() -> None:
        async with listening() as here:
            with pytest.raises(KeyError):
                async with (
                    connected(here) as there,
                    there.declare_subscriber("a") as subscriber,
                    there.liveliness().declare_token("t"),
                ):
                    raise KeyError
            assert there.is_closed()
            with pytest.raises(zenlake.ZError):
                await subscriber.recv()
            await alone(here)

    run(main)


def test_closing_ends_whoever_waits() -> None:
    async def main() -> None:
        async with aio.open(config()) as session:
            subscriber = await session.declare_subscriber("a")

            async def count() -> int:
                return len([sample async for sample in subscriber])

            counting = asyncio.create_task(count())
            await session.put("a", "x")
            await asyncio.sleep(0)
        assert await counting == 1

    run(main)


def test_two_tasks_may_close_a_session_and_both_find_it_closed() -> None:
    async def main() -> None:
        async with listening() as here:
            there = await connected(here)
            await asyncio.gather(there.close(), there.close())
            assert not there.runtime.pumps

    run(main)


def test_a_callback_may_close_its_own_session() -> None:
    async def main() -> None:
        session = await aio.open(config())
        closed = asyncio.Event()

        async def close(_sample: zenlake.Sample) -> None:
            await session.close()
            closed.set()

        await session.declare_subscriber("a", close)
        await session.put("a", "x")
        await closed.wait()
        await asyncio.sleep(0)

    run(main)


def test_a_session_that_is_forgotten_is_closed_with_a_warning() -> None:
    async def main() -> None:
        async with listening() as here:
            there = await connected(here)
            with warnings.catch_warnings(record=True) as told:
                warnings.simplefilter("always")
                del there
                gc.collect()
            assert [str(one.category) for one in told] == [str(ResourceWarning)]
            await alone(here)

    run(main)


def test_opening_says_what_it_tried() -> None:
    async def main() -> None:
        async with listening() as here:
            gone = where(here)
        with pytest.raises(zenlake.ZError, match="no session could be opened; tried tcp/127"):
            await aio.open(
                config(mode='"client"', connect__endpoints=f'["{gone}"]', connect__timeout_ms="0")
            )
        with pytest.raises(zenlake.ZError, match="nobody to connect to"):
            await aio.open(config(mode='"client"', scouting__timeout="1"))

    run(main)


def test_a_session_is_opened_with_a_config_alone() -> None:
    with pytest.raises(TypeError, match="not str"):
        aio.open("tcp/localhost:7447")  # type: ignore[arg-type]


def test_what_is_never_awaited_is_told_by_the_interpreter() -> None:
    async def main() -> None:
        async with aio.open(config()) as session:
            with pytest.warns(RuntimeWarning, match="never awaited"):
                session.declare_subscriber("a")

    run(main)


def test_everything_works_on_uvloop() -> None:
    uvloop = pytest.importorskip("uvloop")

    async def main() -> None:
        async with (
            joined() as (here, there),
            here.declare_subscriber("a") as subscriber,
            there.declare_publisher("a") as publisher,
        ):
            await matched(publisher)
            for n in range(1000):
                await publisher.put(n.to_bytes(2, "big"))
            got = [(await subscriber.recv()).payload.to_bytes() for _ in range(1000)]
            assert got == [n.to_bytes(2, "big") for n in range(1000)]
        assert here.runtime.pumps == there.runtime.pumps == {}

    run(main, uvloop.new_event_loop)


def test_a_session_of_a_loop_and_one_of_a_thread_are_neighbours() -> None:
    # The thread of the ordinary interface is started first: it is not one of this test's.
    with zenlake.open(config(listen__endpoints='["tcp/127.0.0.1:0"]')) as here:
        endpoint = here.runtime.node.settings.locators[0]
        here.declare_queryable("q", lambda query: query.reply("q", "yes"))
        here.declare_subscriber("a", lambda sample: here.put("echo", sample.payload))

        async def main() -> None:
            async with (
                aio.open(config(**connecting_to(endpoint))) as there,
                there.declare_subscriber("echo") as echo,
                there.declare_publisher("a") as publisher,
                there.declare_querier("q") as querier,
            ):
                await matched(publisher)
                await matched(querier)
                await publisher.put("x")
                assert (await echo.recv()).payload == b"x"
                replies = [reply async for reply in querier.get()]
                assert [reply.ok.payload.to_string() for reply in replies if reply.ok] == ["yes"]

        run(main, others=True)


def test_info_tells_of_neighbours_that_come_and_go() -> None:
    async def main() -> None:
        async with (
            listening() as here,
            here.info.declare_link_events_listener() as links,
            here.info.declare_transport_events_listener() as transports,
        ):
            async with connected(here) as there:
                assert (await transports.recv()).kind is zenlake.SampleKind.PUT
                assert (await links.recv()).link.zid == there.zid()
                assert here.info.peers_zid() == [there.zid()]
                assert [link.zid for link in here.info.links()] == [there.zid()]
                assert here.info.routers_zid() == []
            assert (await transports.recv()).transport.zid == there.zid()

    run(main)


def test_nothing_is_left_when_opening_takes_too_long() -> None:
    async def main() -> None:
        with socket.create_server(("127.0.0.1", 0)) as silent:
            port = silent.getsockname()[1]
            settings = config(mode='"client"', connect__endpoints=f'["tcp/127.0.0.1:{port}"]')
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.05):
                    await aio.open(settings)

    run(main)
