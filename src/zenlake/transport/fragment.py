"""Large messages in pieces: collecting what came in fragments.

A lane collects one message at a time. Whatever is wrong with a train of fragments costs that
message and nothing else: the link stays up.
"""

from __future__ import annotations

from typing import Final

#: Below this many bytes a piece costs more to keep than it carries: so many pieces are kept on
#: the average, and a stranger who sends a message byte by byte loses it.
SMALLEST_PIECE: Final = 32


class Reassembly:
    """The message that one lane is collecting."""

    __slots__ = ("collecting", "dropped", "limit", "next_sn", "parts", "size")

    def __init__(self, limit: int) -> None:
        """Collect nothing yet; `limit` bounds what a message may grow to."""
        self.limit: int = limit
        self.parts: list[bytes] = []
        self.size: int = 0
        self.next_sn: int = 0
        self.collecting: bool = False
        #: How many messages were given up, by a gap, an abandoned train or the limit.
        self.dropped: int = 0

    def clear(self) -> None:
        """Forget what was collected."""
        if self.collecting:
            self.dropped += 1
        self.parts = []
        self.size = 0
        self.collecting = False

    def add(
        self, sn: int, mask: int, payload: bytes, first: bool, more: bool, marked: bool
    ) -> bytes | None:
        """Take a fragment in; gives the whole message when it was the last piece.

        `marked`: both sides speak of first fragments, so that a train without one is dropped.
        """
        if first or (not self.collecting and not marked):
            self.clear()
            self.collecting = True
        elif not self.collecting:
            return None
        elif sn != self.next_sn:
            self.clear()
            return None
        self.next_sn = (sn + 1) & mask
        self.size += len(payload)
        if self.size > self.limit or len(self.parts) > self.limit // SMALLEST_PIECE:
            self.clear()
            return None
        self.parts.append(payload)
        if more:
            return None
        whole = b"".join(self.parts)
        self.parts = []
        self.size = 0
        self.collecting = False
        return whole
