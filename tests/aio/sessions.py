"""Sessions in one loop: over loopback, and over wires that are only memory."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any, TypeVar

import zenlake
from tests.api.sessions import config, connecting_to
from tests.waiting import SECONDS
from zenlake import aio

T = TypeVar("T")
BLOCK = zenlake.CongestionControl.BLOCK
TCP = "tcp/127.0.0.1:0"


def run(
    main: Callable[[], Coroutine[Any, Any, T]],
    loop_factory: Callable[[], asyncio.AbstractEventLoop] = asyncio.new_event_loop,
    others: bool = False,
) -> T:
    """Run a test on a loop; afterwards nothing of it may be left: no task, no reader, no thread.

    `others`: there are sessions that are not of this loop, and have threads.
    """
    threads = set(threading.enumerate())

    async def checked() -> T:
        async with asyncio.timeout(SECONDS):
            result = await main()
        assert leftovers() == []
        if not others:
            assert set(threading.enumerate()) <= threads
        return result

    with asyncio.Runner(loop_factory=loop_factory) as runner:
        return runner.run(checked())


def leftovers() -> list[object]:
    """What is still under way on this loop: tasks of others, and what is watched."""
    loop = asyncio.get_running_loop()
    left: list[object] = [
        task for task in asyncio.all_tasks() if task is not asyncio.current_task()
    ]
    if isinstance(loop, asyncio.SelectorEventLoop):
        watched = loop._selector.get_map().values()  # type: ignore[attr-defined]
        # The loop itself watches the one socket by which threads wake it.
        left += [key for key in watched if key.fd != loop._ssock.fileno()]  # type: ignore[attr-defined]
    return left


def where(session: aio.Session) -> str:
    """The endpoint that a session listens on."""
    return session.runtime.node.settings.locators[0]


def listening(endpoint: str = TCP, **keys: str) -> aio.Declaring[aio.Session]:
    """A session that others can connect to."""
    return aio.open(config(listen__endpoints=f'["{endpoint}"]', **keys))


def connected(to: aio.Session, **keys: str) -> aio.Declaring[aio.Session]:
    """A session that is connected to another, and knows what that one has declared."""
    return aio.open(config(**connecting_to(where(to)) | keys))


@asynccontextmanager
async def joined(**keys: str) -> AsyncIterator[tuple[aio.Session, aio.Session]]:
    """Two peers with a session between them."""
    async with listening(**keys) as here, connected(here, **keys) as there:
        yield here, there


async def matched(entity: aio.Publisher | aio.Querier) -> None:
    """Wait until somebody listens to a publisher, or answers a querier."""
    async with entity.declare_matching_listener() as listener:
        while not (await listener.recv()).matching:
            pass


async def alone(session: aio.Session) -> None:
    """Wait until a session has no neighbours."""
    async with session.info.declare_transport_events_listener() as events:
        while session.info.transports():
            await events.recv()
