"""Bytes onto a link that may not take them at once."""

from __future__ import annotations

from collections import deque
from typing import Final

from zenlake.errors import LinkError
from zenlake.links.link import UnicastLink

#: Bytes that wait for a stream; a peer that reads no longer is let go of.
WAITING_MAX: Final = 1 << 24


class Wire:
    """The sending side of one link; everything happens on the thread of its loop."""

    def __init__(self, link: UnicastLink) -> None:
        """The link is open."""
        self.link = link
        self._waiting: deque[bytes] = deque()
        self._size = 0
        self._armed = False
        self.dropped = 0
        self._ending = False

    def send(self, packets: list[bytes]) -> bool:
        """Send packets in order; False: the link is broken, or too much waits."""
        if self.link.stream and len(packets) > 1:
            packets = [b"".join(packets)]
        for packet in packets:
            if self._waiting:
                self._keep(packet)
                continue
            try:
                taken = self.link.send(packet)
            except LinkError:
                # A datagram that found nobody says nothing about the next one.
                if self.link.stream:
                    return False
                continue
            if taken < len(packet):
                if self.link.stream:
                    self._keep(packet[taken:])
                elif taken == 0:
                    self.dropped += 1
        return self._size <= WAITING_MAX

    def end(self) -> None:
        """Close the link when all is sent."""
        self._ending = True
        if not self._waiting:
            self.link.close()

    def _keep(self, data: bytes) -> None:
        self._waiting.append(data)
        self._size += len(data)
        if not self._armed:
            self._armed = True
            self.link.when_writable(self._writable)

    def _writable(self) -> None:
        self._armed = False
        while self._waiting:
            data = self._waiting[0]
            try:
                taken = self.link.send(data)
            except LinkError:
                self._waiting.clear()
                break
            self._size -= taken
            if taken < len(data):
                self._waiting[0] = data[taken:]
                self._armed = True
                self.link.when_writable(self._writable)
                return
            self._waiting.popleft()
        if self._ending:
            self.link.close()
