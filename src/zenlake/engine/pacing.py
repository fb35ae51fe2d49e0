"""How much an outbox gives to its link at once, and when a publishing thread writes the socket.

Pure decisions: time is an argument. Three rules:

* *idle*: nothing was written by a caller for `IDLE` seconds: the next one writes at once (latency).
* *burst*: full batches are written together when there are `stride` bytes of them, or when none
  went for `LINGER` seconds: a write wakes the other side, which costs both more than copying.
* *stride*: doubles while the link takes everything, up to `burst`; zero (batch by batch) as soon as
  it takes only a part. So what is urgent never waits behind much, and threads that wait for room
  get some soon. The lanes hold as many batches as one stride (`depth`).
"""

from __future__ import annotations

from typing import Final, final

#: Full batches wait this many seconds for more of them.
LINGER: Final = 200e-6

#: A caller that comes this many seconds after the last caller's write writes the socket itself.
IDLE: Final = 50e-6

#: The size of one batch: what a lane holds is counted in them.
BATCH: Final = 65535


@final
class Pacing:
    """The sizes and times of the writes to one link; guarded by the outbox's lock."""

    __slots__ = ("burst", "depth", "last_burst", "last_direct", "shallow", "stride", "weighed")

    def __init__(self, depth: int) -> None:
        """`depth`: how many batches a lane holds while the link is slow."""
        self.shallow: int = depth
        #: How many batches a lane holds now.
        self.depth: int = depth
        #: How many bytes the link is given at once, now and at most; 0: batch by batch.
        self.stride: int = 0
        self.burst: int = 0
        #: When a caller last wrote the socket because it was idle.
        self.last_direct: float = 0.0
        #: When full batches were last written.
        self.last_burst: float = 0.0
        #: How many bytes were queued when `is_burst_due` was last asked.
        self.weighed: int = 0

    def is_idle(self, now: float) -> bool:
        """Whether a caller that comes now writes the socket itself."""
        return now - self.last_direct > IDLE

    def is_burst_due(self, held: int, now: float) -> bool:
        """Whether `held` bytes of full batches are to be written now."""
        if held >= self.stride - (self.stride >> 3) or now - self.last_burst > LINGER:
            self.last_burst = now
            return True
        return False

    def took_all(self, size: int) -> None:
        """The link took a write of `size` bytes completely."""
        if self.stride < self.burst and size > self.stride >> 1:
            self._set(2 * size)

    def took_part(self) -> None:
        """The link took only a part of a write."""
        self._set(0)

    def _set(self, stride: int) -> None:
        self.stride = min(stride, self.burst)
        self.depth = max(self.shallow, self.stride // BATCH)
