from __future__ import annotations

import inspect
from collections.abc import Callable

import pytest

from tests.aio.sessions import run
from tests.api.sessions import config
from zenlake import aio


async def settled(call: Callable[..., object]) -> None:
    outcome = call(urgency=1)
    if inspect.isawaitable(outcome):
        await outcome


def test_an_unknown_option_is_a_type_error_that_names_it() -> None:
    async def main() -> None:
        async with aio.open(config()) as session:
            publisher = await session.declare_publisher("demo/a")
            querier = await session.declare_querier("demo/a")
            queryable = await session.declare_queryable("demo/a")
            replies = session.get("demo/a")
            query = await queryable.recv()
            calls: list[Callable[..., object]] = [
                lambda **options: session.put("demo/a", b"", **options),
                lambda **options: session.try_put("demo/a", b"", **options),
                lambda **options: session.delete("demo/a", **options),
                lambda **options: session.get("demo/a", **options),
                lambda **options: session.declare_publisher("demo/a", **options),
                lambda **options: session.declare_subscriber("demo/a", **options),
                lambda **options: session.declare_queryable("demo/a", **options),
                lambda **options: session.declare_querier("demo/a", **options),
                lambda **options: session.liveliness().get("demo/a", **options),
                lambda **options: publisher.put(b"", **options),
                lambda **options: publisher.try_put(b"", **options),
                lambda **options: publisher.delete(**options),
                lambda **options: querier.get(**options),
                lambda **options: query.reply("demo/a", b"", **options),
                lambda **options: query.reply_del("demo/a", **options),
            ]
            for call in calls:
                with pytest.raises(TypeError, match="'urgency'"):
                    await settled(call)
            await query.drop()
            assert [reply async for reply in replies] == []

    run(main)
