"""Samples between the loop that reads a link and the threads of a program that take them."""

from __future__ import annotations

import time
from collections import deque
from threading import Condition
from typing import Final

#: Samples that wait for the program; what comes while so many do pushes out the oldest.
WAITING: Final = 65536


class SampleInbox:
    """A bounded queue of samples; many of them are put in at the price of one."""

    def __init__(self, limit: int = WAITING) -> None:
        """`limit`: how many samples wait at most."""
        self._samples: deque[tuple[str, bytes]] = deque(maxlen=limit)
        self._limit = limit
        self._changed = Condition()
        self._takers = 0
        #: How many samples were pushed out by later ones.
        self.dropped = 0

    def put(self, name: str, payload: bytes) -> None:
        """Add a sample."""
        samples = self._samples
        if len(samples) >= self._limit:
            self.dropped += 1
        samples.append((name, payload))
        if self._takers:
            self._wake()

    def put_all(self, name: str, payloads: list[bytes]) -> None:
        """Add samples of one resource."""
        samples = self._samples
        self.dropped += max(0, len(samples) + len(payloads) - self._limit)
        for payload in payloads:
            samples.append((name, payload))
        if self._takers:
            self._wake()

    def _wake(self) -> None:
        with self._changed:
            self._changed.notify_all()

    def take_now(self) -> tuple[str, bytes] | None:
        """The oldest sample, if there is one."""
        try:
            return self._samples.popleft()
        except IndexError:
            return None

    def take(self, timeout: float | None) -> tuple[str, bytes] | None:
        """The oldest sample; None: none came within so many seconds."""
        try:
            return self._samples.popleft()
        except IndexError:
            return self._wait(timeout)

    def _wait(self, timeout: float | None) -> tuple[str, bytes] | None:
        end = 0.0 if timeout is None else time.monotonic() + timeout
        with self._changed:
            # Who puts looks at this number afterwards: so one of the two sees the other.
            self._takers += 1
            try:
                while True:
                    item = self.take_now()
                    if item is not None:
                        return item
                    left = None if timeout is None else end - time.monotonic()
                    if left is not None and left <= 0:
                        return None
                    self._changed.wait(left)
            finally:
                self._takers -= 1
