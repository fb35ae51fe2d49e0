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


@pytest.fixture(params=_loops())
def run(request: pytest.FixtureRequest) -> Iterator[Run]:
    """Runs a test on a loop of each kind, and demands that it leaves nothing on it."""
    loop: asyncio.AbstractEventLoop = importlib.import_module(request.param).new_event_loop()
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
    return left


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    """Somebody who signs certificates, believed by those who are told to."""
    return Authority(tmp_path)
