from __future__ import annotations

import asyncio

import pytest

import zenlake
from tests.aio.sessions import run
from tests.api.sessions import config
from zenlake import aio


def scouting() -> zenlake.Config:
    """A peer that answers on a group of its own."""
    return config(
        listen__endpoints='["tcp/127.0.0.1:0"]',
        scouting__multicast__enabled="true",
        scouting__multicast__interface='"lo"',
        scouting__multicast__address='"224.0.0.232:7992"',
    )


def test_whoever_is_there_is_found_and_looking_ends_with_the_block() -> None:
    async def main() -> None:
        settings = scouting()
        async with aio.open(settings) as session, aio.scout(config=settings) as scout:
            async for hello in scout:
                if hello.zid == session.zid():
                    break
            assert hello.whatami is zenlake.WhatAmI.PEER
            assert scout.stats.delivered >= 1
        assert repr(scout) == "<Scout stopped>"
        with pytest.raises(zenlake.ZError, match="Stopped scout"):
            await scout.recv()

    run(main)


def test_a_function_may_be_told_whom_a_scout_finds() -> None:
    async def main() -> None:
        settings = scouting()
        found: asyncio.Queue[zenlake.Hello] = asyncio.Queue()
        async with aio.open(settings) as session:
            scout = await aio.scout(found.put_nowait, config=settings)
            while (await found.get()).zid != session.zid():
                pass
            with pytest.raises(TypeError, match="nothing to take"):
                scout.try_recv()
            await scout.stop()
            with pytest.raises(TypeError, match="plain function"):
                aio.scout(found.put, config=settings)

    run(main)
