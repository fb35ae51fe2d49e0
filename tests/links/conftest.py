from __future__ import annotations

import asyncio
import importlib
import importlib.util
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.links.authority import Authority

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
    loop.run_until_complete(asyncio.sleep(0))
    try:
        assert not asyncio.all_tasks(loop)
        assert not failures
        if isinstance(loop, asyncio.SelectorEventLoop):
            # Nothing is watched but the loop's own alarm, and nobody waits for a time.
            assert len(loop._selector.get_map()) == 1  # type: ignore[attr-defined]
            timers = loop._scheduled  # type: ignore[attr-defined]
            assert not [timer for timer in timers if not timer.cancelled()]
    finally:
        loop.run_until_complete(loop.shutdown_default_executor())
        loop.close()


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    """Somebody who signs certificates, believed by those who are told to."""
    return Authority(tmp_path)
