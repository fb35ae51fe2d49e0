"""A line for datagrams that loses some of them when it is told to."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Self


class LossyLine:
    """Carries datagrams between those who connect and a place, and loses some on the way there.

    Small ones always pass: they are what keeps the session alive.
    """

    SMALL = 64
    TICK = 0.05

    def __init__(self, place: str) -> None:
        """`place`: where it leads, such as `udp/127.0.0.1:7447`."""
        host, _, port = place.removeprefix("udp/").rpartition(":")
        self._target = (host, int(port))
        #: Of how many datagrams one is lost; 0 loses none.
        self.one_in = 0
        self.lost = 0
        #: The datagrams that were lost.
        self.swallowed: list[bytes] = []
        self._count = 0
        self._near = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._near.bind(("127.0.0.1", 0))
        self._near.settimeout(self.TICK)
        self._far: dict[tuple[str, int], socket.socket] = {}
        self._closed = False
        self._threads: list[threading.Thread] = []
        self.place = f"udp/127.0.0.1:{self._near.getsockname()[1]}"
        self._run(self._there)

    def _run(self, carry: Callable[[], None]) -> None:
        def run() -> None:
            while not self._closed:
                with suppress(OSError):
                    carry()

        self._threads.append(threading.Thread(target=run, daemon=True))
        self._threads[-1].start()

    def _there(self) -> None:
        data, sender = self._near.recvfrom(65536)
        far = self._far.get(sender)
        if far is None:
            far = self._far[sender] = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            far.settimeout(self.TICK)
            far.connect(self._target)
            self._run(lambda: self._back(far, sender))
        if self.one_in and len(data) > self.SMALL:
            self._count += 1
            if self._count % self.one_in == 0:
                self.lost += 1
                self.swallowed.append(data)
                return
        far.send(data)

    def _back(self, far: socket.socket, sender: tuple[str, int]) -> None:
        self._near.sendto(far.recv(65536), sender)

    def has_lost(self, words: str) -> bool:
        """Whether a datagram with these words was lost."""
        return any(words.encode() in data for data in self.swallowed)

    def close(self) -> None:
        """Carry no more."""
        self._closed = True
        for thread in self._threads:
            thread.join()
        for end in (self._near, *self._far.values()):
            end.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
