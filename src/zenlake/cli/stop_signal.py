"""An event that a signal handler may set, whatever its thread was doing.

A handler runs in the main thread between any two steps of it. `threading.Event` has a lock that
the main thread may hold at that moment, in `wait` or in the handler of a signal that came just
before; setting it then waits for ever. Putting into a `SimpleQueue` never does.
"""

from __future__ import annotations

import queue
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import final

__all__ = ["StopSignal", "stopping"]


@final
class StopSignal:
    """Says that it is time to stop; has what is used of `threading.Event`."""

    def __init__(self) -> None:
        """Not set."""
        self._set = False
        self._woken: queue.SimpleQueue[None] = queue.SimpleQueue()

    def is_set(self) -> bool:
        """Whether it is time to stop."""
        return self._set

    def set(self) -> None:
        """Say so; from a signal handler too."""
        self._set = True
        self._woken.put(None)

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until it is set, so many seconds at most; whether it is."""
        if not self._set:
            with suppress(queue.Empty):
                self._woken.get(timeout=timeout)
                self._woken.put(None)  # for others who wait
        return self._set


@contextmanager
def stopping(stop: StopSignal) -> Iterator[None]:
    """An interruption lets the work at hand finish; a second one does not."""

    def asked(number: int, frame: object) -> None:
        if stop.is_set():
            raise KeyboardInterrupt
        stop.set()

    before = {number: signal.signal(number, asked) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
