"""Waiting for what must happen, instead of sleeping until it probably has."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

SECONDS = 60.0
#: The first pause and the longest: what is asked may cost something itself.
STEP, LONGEST = 0.002, 0.1


def until(
    holds: Callable[[], object], what: str = "it did not happen", seconds: float = SECONDS
) -> None:
    """Wait until something holds; fail with `what` if it does not in time."""
    deadline = time.monotonic() + seconds
    step = STEP
    while not holds():
        assert time.monotonic() < deadline, f"{what} within {seconds:g} s"
        time.sleep(step)
        step = min(LONGEST, step * 1.5)


async def holding(
    holds: Callable[[], object], what: str = "it did not happen", seconds: float = SECONDS
) -> None:
    """Wait, as a task, until something holds; fail with `what` if it does not in time."""
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, f"{what} within {seconds:g} s"
        await asyncio.sleep(STEP)
