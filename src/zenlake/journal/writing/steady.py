"""A clock that nobody sets."""

from __future__ import annotations

import time

__all__ = ["steady_time"]


def steady_time() -> float:
    """Return seconds since some moment, where the system can tell with those of its sleep."""
    if hasattr(time, "CLOCK_BOOTTIME"):
        return time.clock_gettime(time.CLOCK_BOOTTIME)
    return time.monotonic()
