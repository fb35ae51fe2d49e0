"""Where heartbeats wait until the recorder looks at them."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Final

from zenlake.journal.ledger.heartbeats import SIZE, Heartbeat

if TYPE_CHECKING:
    from zenlake.node.sample import Sample

__all__ = ["Inbox"]

MOST_HELD: Final = 10_000
"""How many publishers' heartbeats may wait to be looked at."""


class Inbox:
    """The last heartbeat of each publisher, until the recorder takes it.

    Nobody is held up here, and no stranger can fill more than there is room for.
    """

    def __init__(self, most: int = MOST_HELD) -> None:
        """Empty."""
        self._most = most
        self._state = threading.Condition()
        self._held: dict[str, Heartbeat] = {}
        self._closed = False
        self.heard = 0
        #: Heartbeats that could not be read, or found no room.
        self.refused = 0

    def push(self, sample: Sample) -> None:
        """Hear a sample under the key of a publisher; any thread."""
        payload = sample.payload.to_bytes()
        beat = None
        if len(payload) == SIZE:
            beat = Heartbeat.read(str(sample.key_expr), int.from_bytes(payload, "little"))
        with self._state:
            self.heard += 1
            if beat is None or (beat.place not in self._held and len(self._held) >= self._most):
                self.refused += 1
                return
            self._held[beat.place] = beat
            self._state.notify()

    def take(self) -> list[Heartbeat]:
        """Wait for what was said, and take it; nothing means that there will be no more."""
        with self._state:
            self._state.wait_for(lambda: self._held or self._closed)
            taken = list(self._held.values())
            self._held.clear()
            return taken

    def rest(self, seconds: float) -> None:
        """Wait a while, but not beyond the end."""
        with self._state:
            self._state.wait_for(lambda: self._closed, seconds)

    def close(self) -> None:
        """Hear no more; what was heard can still be taken."""
        with self._state:
            self._closed = True
            self._state.notify_all()
