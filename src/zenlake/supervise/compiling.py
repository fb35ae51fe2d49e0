"""The compiler that `./zenlake up` of a checkout starts in the background, seen from `zenlake up`.

ZENLAKE_COMPILING names the build folder, which holds

compiling.lock   the number of the process that compiles; empty when it has ended in good order
compiling.txt    how far it is, in one line of words
compiling.log    what it printed
"""

from __future__ import annotations

import contextlib
import os
import re
from pathlib import Path
from typing import Final, Self

from zenlake.supervise.screen import span
from zenlake.supervise.throttle import Line

__all__ = ["Compilation"]

SUCCEEDED: Final = "compiled in "
"""How the words begin when the compiler is done."""

START_SECONDS: Final = 10.0
"""A compiler that no process was seen of after so long has failed to start."""


COUNTED: Final = re.compile(r"(\d+) of (\d+)")


class Compilation:
    """The state of one compilation in the background; `look` updates it."""

    def __init__(self, folder: Path, now: float) -> None:
        """`now`: seconds since 1970, when the compiler was started."""
        self._folder = folder
        self._began = now
        self._was_running = False
        self._over = False
        #: When the first count of files was seen, and how many there were then.
        self._counted: tuple[float, int] | None = None
        #: The progress of the compiler, with the time left or spent; empty when it has ended.
        self.words = ""

    @classmethod
    def of_environment(cls, now: float) -> Self | None:
        """Return the compilation that the environment names; None if there is none."""
        folder = os.environ.get("ZENLAKE_COMPILING")
        return cls(Path(folder), now) if folder else None

    def process(self) -> int:
        """Return the number of the process that compiles; 0 if it has ended."""
        with contextlib.suppress(OSError, ValueError):
            number = int((self._folder / "compiling.lock").read_text())
            os.kill(number, 0)
            return number
        return 0

    def look(self, now: float) -> Line | None:
        """Return the line to print when the compiler has ended, once."""
        if self._over:
            return None
        running = bool(self.process())
        words = ""
        with contextlib.suppress(OSError):
            words = (self._folder / "compiling.txt").read_text("utf-8", "replace").strip()
        if running:
            self._was_running = True
            if words:
                self.words = f"{words}, {self._time(words, now)}"
            return None
        if not self._was_running and now - self._began < START_SECONDS:
            return None
        self._over, self.words = True, ""
        if words.startswith(SUCCEEDED):
            return Line(now, f"{words}; the next start is faster", bad=False)
        log = self._folder / "compiling.log"
        return Line(now, f"compiling failed, all runs interpreted, which is slower; see {log}")

    def _time(self, words: str, now: float) -> str:
        """Return how long it still takes, if files are counted, else for how long it has run."""
        found = COUNTED.search(words)
        if found is not None:
            done, total = int(found[1]), int(found[2])
            since, first = self._counted = self._counted or (now, done)
            if done > first:
                return f"{span((now - since) * (total - done) / (done - first))} left"
        return f"for {span(now - self._began)}"
