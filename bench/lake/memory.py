"""How much memory a piece of work takes at most: of the driver, its Java and their workers."""

from __future__ import annotations

import os
import threading
from types import TracebackType
from typing import Self

import psutil

EVERY = 0.5


class PeakMemory:
    """Looks at this process and all that it started, every half second, while it is entered.

    Pages that forked workers share count once for each of those that share them, by parts (PSS):
    the sum of all is what the machine must have.
    """

    def __init__(self) -> None:
        self.peaks: dict[str, int] = {}
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._over.set()
        self._thread.join()

    def megabytes(self) -> dict[str, int]:
        """The most that each kind of process had, and the most that all had together."""
        return {name: peak // 1_000_000 for name, peak in sorted(self.peaks.items())}

    def _look(self) -> None:
        own = psutil.Process()
        while not self._over.wait(EVERY):
            now = {"driver": 0, "java": 0, "workers": 0}
            for one in (own, *own.children(recursive=True)):
                try:
                    kind = "driver" if one.pid == os.getpid() else one.name()
                    now[kind if kind in now else "workers"] += one.memory_full_info().pss
                except psutil.NoSuchProcess:
                    continue
            now["together"] = sum(now.values())
            for name, size in now.items():
                self.peaks[name] = max(self.peaks.get(name, 0), size)
