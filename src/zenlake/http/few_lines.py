"""A bound on the lines that strangers make the HTTP server write: so many a minute, then it counts.

A request that is no HTTP costs its sender nothing, and would cost us a line of the log.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import Final, final

from zenlake.clock.throttle import LineBudget

__all__ = ["LINES", "FewLines", "bounded_log"]

LINES: Final = 20
"""Lines of the HTTP server in a period."""
PERIOD: Final = 60.0


@final
class FewLines(logging.Filter):
    """Lets so many records through in a period; the last of them says that there are more."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        """Nothing was written yet."""
        super().__init__()
        self._clock = clock
        self._budget = LineBudget(LINES, PERIOD)
        self.left_out = 0

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether a record is written."""
        left = self._budget.take(self._clock())
        if left < 0:
            self.left_out += 1
            return False
        if left == 0:
            record.msg = f"{record.getMessage()} (no more such lines for {PERIOD:g} s)"
            record.args = None
        return True


def bounded_log(name: str) -> logging.Logger:
    """Return a logger for what strangers cause; what it writes is bounded from now on."""
    log = logging.getLogger(name)
    if not any(isinstance(each, FewLines) for each in log.filters):
        log.addFilter(FewLines())
    return log
