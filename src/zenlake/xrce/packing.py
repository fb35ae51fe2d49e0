"""Messages into packets: as many as fit, in their order.

A marker decorates the next message only; but readers of the time kept the conduit until the end
of the packet. So a message of conduit 0 that follows one of another conduit says `13 00` first.
"""

from __future__ import annotations

from collections import deque

from zenlake.xrce.channel import Sent

#: Conduit 0, said aloud.
CONDUIT_ZERO = b"\x13\x00"


class Packing:
    """What waits to be sent, and how it is cut into packets."""

    def __init__(self, mtu: int, single: bool = False) -> None:
        """`single`: one message a packet, for readers that read no second one."""
        self.mtu = mtu
        self.single = single
        self.size = 0
        self._parts: list[bytes] = []
        self._place = 0
        self._waiting: deque[tuple[bytes, int, Sent | None]] = deque()

    def __len__(self) -> int:
        """How many messages wait."""
        return len(self._waiting)

    def add(self, data: bytes, conduit: int = 0, sent: Sent | None = None) -> None:
        """Append a message; `sent` if it is one that is acknowledged."""
        self._waiting.append((data, conduit, sent))
        self.size += len(data)

    def packet(self, now: float) -> tuple[bytes, Sent | None, int] | None:
        """The next packet, the last reliable message in it with its conduit; None: all is sent."""
        waiting = self._waiting
        if not waiting:
            return None
        parts: list[bytes] = []
        size = 0
        former = 0
        last: Sent | None = None
        last_conduit = 0
        place = 0
        while waiting:
            data, conduit, sent = waiting[0]
            more = len(data) + (2 if former and not conduit else 0)
            if parts and (self.single or size + more > self.mtu):
                break
            waiting.popleft()
            self.size -= len(data)
            if former and not conduit:
                parts.append(CONDUIT_ZERO)
            if sent is not None:
                sent.at = now
                if sent.reliable:
                    last, last_conduit, place = sent, conduit, len(parts)
            parts.append(data)
            former = conduit
            size += more
        self._parts = parts
        self._place = place
        return b"".join(parts), last, last_conduit

    def asking(self, last: Sent) -> bytes:
        """The packet that was just made, with its last reliable message asking to be acknowledged.

        Only the message itself changes: what is kept for another time does not ask.
        """
        self._parts[self._place] = last.with_synch()
        return b"".join(self._parts)

    def clear(self) -> None:
        """Forget what waits."""
        self._waiting.clear()
        self.size = 0
