"""What a neighbour may send in a second: who sends more is read later, and loses nothing."""

from __future__ import annotations

from typing import Final

#: So many seconds' worth may come at once after a silence.
BURST: Final = 1.0


class RateLimit:
    """Counts messages and bytes against what may come in a second."""

    def __init__(self, messages: int, size: int, now: float) -> None:
        """`messages` and bytes (`size`) a second; 0: as many as there are."""
        self.messages = messages
        self.size = size
        #: When all that came would have come, had it kept to the rate.
        self._messages_until = now - BURST
        self._size_until = now - BURST

    def wait(self, messages: int, size: int, now: float) -> float:
        """So much has come: how many seconds to read nothing; 0: go on."""
        longest = 0.0
        if self.messages:
            start = max(self._messages_until, now - BURST)
            self._messages_until = start + messages / self.messages
            longest = self._messages_until - now
        if self.size:
            start = max(self._size_until, now - BURST)
            self._size_until = start + size / self.size
            longest = max(longest, self._size_until - now)
        return max(0.0, longest)
