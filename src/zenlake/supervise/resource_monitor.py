"""A thread that looks at disks and processes, so that a slow disk does not delay a restart."""

from __future__ import annotations

import contextlib
import os
import shutil
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from zenlake.lake.maintain.status_file import read_status
from zenlake.lake.model.status import LakeStatus
from zenlake.supervise.child import usage
from zenlake.supervise.disk import Disk, Trend, forecast

__all__ = ["ResourceMonitor", "folder_size"]

LOOK: Final = 1.0
SIZES: Final = 10.0
PROCESSES: Final = 5.0


def folder_size(folder: Path) -> int:
    """How many bytes the files below a folder take."""
    total = 0
    waiting = [str(folder)]
    while waiting:
        with contextlib.suppress(OSError), os.scandir(waiting.pop()) as entries:
            for entry in entries:
                with contextlib.suppress(OSError):
                    if entry.is_dir(follow_symlinks=False):
                        waiting.append(entry.path)
                    else:
                        total += entry.stat(follow_symlinks=False).st_size
    return total


class ResourceMonitor:
    """What was seen last; each attribute is replaced as a whole."""

    def __init__(
        self, data: Path, budget: int | None, sessions: Callable[[], dict[str, int]]
    ) -> None:
        """`sessions`: the processes to look at, by part."""
        self._data = data
        self._budget = budget
        self._sessions = sessions
        self.disk = Disk(0, 0)
        self.full_in: float | None = None
        self.lake: LakeStatus | None = None
        self.usage: dict[str, tuple[int, float]] = {}
        self._journal, self._free, self._lake = Trend(), Trend(), Trend()
        self._over = threading.Event()
        self._thread = threading.Thread(
            target=self._run, name="zenlake resource monitor", daemon=True
        )
        self._thread.start()

    def close(self) -> None:
        """Look no more; a look that hangs is not waited for."""
        self._over.set()
        self._thread.join(1.0)

    def _run(self) -> None:
        sizes = processes = -1e9
        journal = 0
        while True:
            now = time.monotonic()
            with contextlib.suppress(OSError):
                self.lake = read_status(self._data / "lake")
                if now - sizes >= SIZES:
                    sizes = now
                    journal = folder_size(self._data / "journal")
                if now - processes >= PROCESSES:
                    processes = now
                    groups = self._sessions()
                    self.usage = {name: usage(session) for name, session in groups.items()}
                self._look(now, journal)
            if self._over.wait(LOOK):
                return

    def _look(self, now: float, journal: int) -> None:
        room = shutil.disk_usage(self._data)
        lake = 0 if self.lake is None else self.lake.bytes_total
        self.disk = Disk(room.total, room.free, journal, lake)
        for trend, value in ((self._journal, journal), (self._free, room.free), (self._lake, lake)):
            trend.add(now, value)
        growth = self._journal.rate
        if growth is not None:
            shrinks = -(self._free.rate or 0.0)
            other = max(self._lake.rate or 0.0, shrinks - growth)
            self.full_in = forecast(self.disk, self._budget, growth, other)
        else:
            self.full_in = forecast(self.disk, self._budget, 0.0, 0.0)
