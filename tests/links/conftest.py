from __future__ import annotations

import asyncio
import importlib
import importlib.util
import time
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.links.authority import Authority
from tests.links.watching import PATIENCE
from tests.waiting import STEP

Run = Callable[[Coroutine[Any, Any, None]], None]


def _loops() -> list[str]:
    return ["asyncio", "uvloop"] if importlib.util.find_spec("uvloop") else ["asyncio"]


def _new_loop(package: str) -> asyncio.AbstractEventLoop:
    """Return a loop that remembers its datagram sockets, as uvloop shows them to nobody.

    Closed with one of them open, uvloop warns from a callback of C. Here warnings are errors: the
    socket stays open, and the loop waits for it for ever.
    """
    name = "SelectorEventLoop" if package == "asyncio" else "Loop"
    kind: type[asyncio.AbstractEventLoop] = getattr(importlib.import_module(package), name)
    opened: list[asyncio.BaseTransport] = []

    async def create_datagram_endpoint(
        self: asyncio.AbstractEventLoop, *args: Any, **options: Any
    ) -> tuple[asyncio.BaseTransport, asyncio.BaseProtocol]:
        made: tuple[asyncio.BaseTransport, asyncio.BaseProtocol]
        made = await kind.create_datagram_endpoint(self, *args, **options)
        opened.append(made[0])
        return made

    members = {"create_datagram_endpoint": create_datagram_endpoint, "datagram_sockets": opened}
    loop: asyncio.AbstractEventLoop = type("WatchedLoop", (kind,), members)()
    return loop


@pytest.fixture(params=_loops())
def run(request: pytest.FixtureRequest) -> Iterator[Run]:
    """Runs a test on a loop of each kind, and demands that it leaves nothing on it."""
    loop = _new_loop(request.param)
    failures: list[dict[str, Any]] = []
    loop.set_exception_handler(lambda _, context: failures.append(context))
    yield loop.run_until_complete
    try:
        # A link that was closed may still send its last words.
        deadline = time.monotonic() + PATIENCE
        while _left(loop) and time.monotonic() < deadline:
            loop.run_until_complete(asyncio.sleep(STEP))
        assert _left(loop) == []
        assert not failures
    finally:
        loop.run_until_complete(loop.shutdown_default_executor())
        loop.close()


def _left(loop: asyncio.AbstractEventLoop) -> list[object]:
    """Return what is under way on a loop that does not run: tasks, sockets and timers."""
    left: list[object] = list(asyncio.all_tasks(loop))
    if isinstance(loop, asyncio.SelectorEventLoop):
        watched = loop._selector.get_map().values()  # type: ignore[attr-defined]
        # The loop itself watches the one socket by which threads wake it.
        left += [key for key in watched if key.fd != loop._ssock.fileno()]  # type: ignore[attr-defined]
        timers = loop._scheduled  # type: ignore[attr-defined]
        left += [timer for timer in timers if not timer.cancelled()]
    opened: list[asyncio.BaseTransport] = loop.datagram_sockets  # type: ignore[attr-defined]
    return left + [transport for transport in opened if not transport.is_closing()]


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    """Somebody who signs certificates, believed by those who are told to."""
    return Authority(tmp_path)
