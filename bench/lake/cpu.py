"""How much CPU a piece of work takes: of this process and all that it started."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Final, final

import psutil

EVERY_SECONDS: Final = 0.5


@final
class CpuTime:
    """Looks at the processes every half second, so that those count which end meanwhile.

    Their parents do not have their times: PySpark's daemon lets the system forget its workers.
    """

    def __init__(self) -> None:
        self._seen: dict[tuple[int, float], float] = {}

    def took(self, work: Callable[[], object]) -> tuple[float, float]:
        """Return the seconds of work, and the seconds of CPU of all processes."""
        over = threading.Event()
        before, began = self._spent(), time.perf_counter()
        thread = threading.Thread(target=self._look, args=(over,), daemon=True)
        thread.start()
        try:
            work()
        finally:
            over.set()
            thread.join()
        return time.perf_counter() - began, self._spent() - before

    def _look(self, over: threading.Event) -> None:
        while not over.wait(EVERY_SECONDS):
            self._spent()

    def _spent(self) -> float:
        own = psutil.Process()
        for one in (own, *own.children(recursive=True)):
            with suppress(psutil.NoSuchProcess):
                times = one.cpu_times()
                self._seen[one.pid, one.create_time()] = times.user + times.system
        return sum(self._seen.values())
