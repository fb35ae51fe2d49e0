"""Batches of one link that were received and not handled: its turn was over before."""

from __future__ import annotations

from zenlake.transport.receive_lanes import DATA
from zenlake.wire.cursor import Reader


class Backlog:
    """What one link brought and its next turns handle, in the order in which it came.

    At its head may be a batch that was begun, with a frame of which messages are left.
    """

    __slots__ = ("_batches", "_next", "begun", "priority", "reliable")

    def __init__(self) -> None:
        """Nothing waits."""
        self._batches: list[tuple[bytes, int, int]] = []
        self._next: int = 0
        #: The batch that was begun; None: none was. Its open frame's lane.
        self.begun: Reader | None = None
        self.priority: int = DATA
        self.reliable: bool = True

    def add(self, data: bytes, start: int, end: int) -> None:
        """Keep a batch, which lies between `start` and `end` in a read."""
        self._batches.append((data, start, end))

    def has_batch(self) -> bool:
        """Whether a batch waits that was not begun."""
        if self._next < len(self._batches):
            return True
        self._batches = []
        self._next = 0
        return False

    def next_batch(self) -> tuple[bytes, int, int]:
        """The batch that waits longest; it does not wait any more."""
        batch = self._batches[self._next]
        self._next += 1
        return batch

    def interrupt(self, priority: int, reliable: bool) -> None:
        """A turn ended within a frame of this lane."""
        self.priority = priority
        self.reliable = reliable

    def take_begun(self) -> Reader | None:
        """The batch that was begun, once."""
        begun = self.begun
        self.begun = None
        return begun

    def clear(self) -> None:
        """Let go of everything."""
        self._batches = []
        self._next = 0
        self.begun = None
