"""A session on a loop, beside one of Eclipse Zenoh's."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from tests.aio.sessions import BLOCK, alone, matched, run
from tests.api.sessions import config, connecting_to
from tests.ports import free_port
from tests.waiting import holding
from zenlake import aio

pytestmark = pytest.mark.interop
eclipse: Any = pytest.importorskip("zenoh")


@pytest.fixture
def endpoint() -> str:
    return f"tcp/127.0.0.1:{free_port()}"


@pytest.fixture
def theirs(endpoint: str) -> Iterator[Any]:
    """A peer of theirs that echoes what it hears and answers what it is asked."""
    settings = eclipse.Config()
    settings.insert_json5("listen/endpoints", f'["{endpoint}"]')
    settings.insert_json5("scouting/multicast/enabled", "false")
    with eclipse.open(settings) as session:
        echo = session.declare_publisher("echo", congestion_control=eclipse.CongestionControl.BLOCK)
        kept = [
            session.declare_subscriber("a", lambda sample: echo.put(sample.payload)),
            session.declare_queryable("q/*", lambda query: answered(query)),
        ]
        yield session
        for entity in kept:
            entity.undeclare()


def answered(query: Any) -> None:
    for n in range(100):
        query.reply(f"q/{n}", bytes(10_000))
    query.drop()


def test_samples_and_answers_go_both_ways(theirs: Any, endpoint: str) -> None:
    async def main() -> None:
        async with (
            aio.open(config(**connecting_to(endpoint))) as session,
            session.declare_subscriber("echo") as echo,
            session.declare_publisher("a", congestion_control=BLOCK) as publisher,
            session.declare_querier("q/*") as querier,
        ):
            await matched(publisher)
            await matched(querier)

            async def publish() -> None:
                for n in range(2000):
                    await publisher.put(n.to_bytes(2, "big") * 500)

            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(publish())
                for n in range(2000):
                    sample = await echo.recv()
                    assert sample.payload.to_bytes() == n.to_bytes(2, "big") * 500
            assert len([reply async for reply in querier.get()]) == 100

            async def answer(query: aio.Query) -> None:
                async with query:
                    await query.reply("ours", query.payload or b"")

            await session.declare_queryable("ours", answer)
            token = await session.liveliness().declare_token("alive/ours")
            ask = theirs.declare_querier("ours")
            await holding(lambda: ask.matching_status.matching)
            replies = await asyncio.to_thread(lambda: list(ask.get(payload="x")))
            assert [reply.ok.payload.to_bytes() for reply in replies] == [b"x"]
            alive = await asyncio.to_thread(lambda: list(theirs.liveliness().get("alive/*")))
            assert [str(reply.ok.key_expr) for reply in alive] == ["alive/ours"]
            await token.undeclare()

    run(main, others=True)


def test_they_are_told_when_a_task_is_cancelled(theirs: Any, endpoint: str) -> None:
    news = theirs.liveliness().declare_subscriber("alive/*")

    async def main() -> None:
        async def program() -> None:
            async with (
                aio.open(config(**connecting_to(endpoint))) as session,
                session.liveliness().declare_token("alive/ours"),
                session.declare_subscriber("never") as subscriber,
            ):
                await subscriber.recv()

        task = asyncio.create_task(program())
        assert (await asyncio.to_thread(news.recv)).kind == eclipse.SampleKind.PUT
        task.cancel()
        assert (await asyncio.to_thread(news.recv)).kind == eclipse.SampleKind.DELETE
        await asyncio.wait([task])
        assert task.cancelled()

    run(main, others=True)


def test_their_end_is_noticed(endpoint: str) -> None:
    settings = eclipse.Config()
    settings.insert_json5("listen/endpoints", f'["{endpoint}"]')
    settings.insert_json5("scouting/multicast/enabled", "false")
    theirs = eclipse.open(settings)

    async def main() -> None:
        async with aio.open(config(**connecting_to(endpoint))) as session:
            assert len(session.info.transports()) == 1
            await asyncio.to_thread(theirs.close)
            await alone(session)

    run(main, others=True)
