"""Counting the work of a call instead of timing it: a busy machine changes no count."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any, ParamSpec

P = ParamSpec("P")


def steps(function: Callable[P, object], *args: P.args, **kwargs: P.kwargs) -> int:
    """Return how many lines and calls of Python a call of `function` runs in this thread.

    Lines of compiled modules are not seen, so on the compiled build only those of interpreted ones
    count. What C does inside a line counts as one: what takes for ever there is ended by the
    time-out of the test.
    """
    count = 0

    def trace(frame: FrameType, event: str, argument: object) -> Any:
        nonlocal count
        count += 1
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        function(*args, **kwargs)
    finally:
        sys.settrace(before)
    return count - 1  # the trace sees the return to this function, too
