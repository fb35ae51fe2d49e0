"""Keeps full collections of the interpreter's garbage short, however much a router knows.

A full collection looks at every object that can be part of a cycle, and everything else waits.
Where neighbours have declared 100 000 keys it takes a quarter of a second, comes again for every
quarter that the objects grow, and finds next to nothing: withdrawn declarations and sessions that
are over are freed by their reference counts. So what has survived one that took long is set aside
(the interpreter calls it frozen), and the next looks only at what came since. Now and then, all are
looked at again, for what died meanwhile.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from typing import Final

__all__ = ["Survivors", "set_survivors_aside"]

#: The seconds that a full collection may take before its survivors are set aside.
LONG: Final = 0.005
#: All are looked at again after so many seconds at the earliest,
OFTEN: Final = 60.0
#: and after so many times the seconds that it took the last time.
TIMES: Final = 1000.0
#: There is a full collection after so many smaller ones, if it is worth it; ten are usual. Where it
#: looks only at what came since the last, more of them are shorter and take no longer together.
SMALLER: Final = 3


class Survivors:
    """What the interpreter calls before and after each collection."""

    def __init__(
        self,
        clock: Callable[[], float] = time.monotonic,
        set_aside: Callable[[], None] = gc.freeze,
        take_back: Callable[[], None] = gc.unfreeze,
    ) -> None:
        """`clock` tells the time in seconds; the others concern all objects that there are."""
        self._clock = clock
        self._set_aside = set_aside
        self._take_back = take_back
        self._began = clock()
        #: Whether there are some aside, and when those are looked at again.
        self._aside = False
        self._next = 0.0
        #: Whether this collection looks at all.
        self._thorough = True

    def __call__(self, phase: str, info: dict[str, int]) -> None:
        """`phase` is "start" or "stop"."""
        if info["generation"] != 2:
            return
        now = self._clock()
        if phase == "start":
            self._began = now
            if self._aside and now >= self._next:
                self._aside = False
                self._take_back()
            self._thorough = not self._aside
            return
        took = now - self._began
        if self._thorough:
            self._aside = took >= LONG
            self._next = now + max(OFTEN, TIMES * took)
        if self._aside:
            self._set_aside()


def set_survivors_aside() -> None:
    """Have full collections of this process leave out what has survived a long one.

    It concerns the whole process: a program decides it, not a library.
    """
    if not any(isinstance(one, Survivors) for one in gc.callbacks):
        gc.callbacks.append(Survivors())
        gc.set_threshold(*gc.get_threshold()[:2], SMALLER)
    gc.collect()  # the program itself lives long, too
