"""Log connections that are not taken: not a line for each, for strangers decide how many come."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import Final, final

from zenlake.clock.throttle import LineBudget, Throttle

__all__ = ["RefusalLog"]

log = logging.getLogger("zenlake.links")

LINES: Final = 20
"""Lines of one listener in a minute."""


@final
class RefusalLog:
    """The refusals of one listener."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        """Nothing was refused yet."""
        self._clock = clock
        self._throttle = Throttle(budget=LineBudget(LINES))

    def warn(self, text: str) -> None:
        """Log a line, unless the same was logged a moment ago, or too many others were."""
        line = self._throttle.line(self._clock(), text)
        if line is not None:
            log.warning("%s", line)
