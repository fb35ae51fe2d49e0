"""Samples between the threads of a program that publish and the loop that sends them."""

from __future__ import annotations

from collections import deque

from zenlake.xrce.client import Client, Written


class Posted:
    """Samples that the loop has not sent yet, in the order in which the program published them."""

    def __init__(self, client: Client) -> None:
        """`client`: who sends them."""
        self._client = client
        self._waiting: deque[tuple[Written, bytes]] = deque()
        #: Taken off the queue for one publisher, and found no room.
        self._held: list[bytes] = []
        self._held_by: Written | None = None

    def __len__(self) -> int:
        """How many there are."""
        return len(self._waiting) + len(self._held)

    def add(self, publisher: Written, payload: bytes) -> int:
        """Add a sample, on any thread; gives how many wait."""
        self._waiting.append((publisher, payload))
        return len(self._waiting)

    def send(self) -> bool:
        """Send what there is room for, on the loop; False: there is room no more."""
        waiting = self._waiting
        while True:
            publisher, payloads = self._held_by, self._held
            if publisher is None:
                if not waiting:
                    return True
                publisher, payload = waiting.popleft()
                payloads = [payload]
                while waiting:
                    other = waiting[0]
                    if other[0] is not publisher:
                        break
                    payloads.append(other[1])
                    waiting.popleft()
            taken = self._client.put_all(publisher, payloads)
            if taken < len(payloads):
                self._held, self._held_by = payloads[taken:], publisher
                return False
            self._held, self._held_by = [], None
