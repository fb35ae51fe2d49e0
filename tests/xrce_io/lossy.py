"""A relay between UDP clients and a broker that loses datagrams each way."""

from __future__ import annotations

import selectors
import socket
import threading
from random import Random
from types import TracebackType
from typing import Self


class Relay:
    """Forwards datagrams to one address and back, and loses a part of them."""

    def __init__(self, target: str, loss: float, seed: int = 1) -> None:
        host, port = target.removeprefix("udp/").rsplit(":", 1)
        self._target = (host, int(port))
        self._loss = loss
        self._random = Random(seed)
        self._front = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._front.bind(("127.0.0.1", 0))
        self.place = f"udp/127.0.0.1:{self._front.getsockname()[1]}"
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._front, selectors.EVENT_READ)
        self._stop, self._wake = socket.socketpair()
        self._selector.register(self._stop, selectors.EVENT_READ)
        self._back: dict[tuple[str, int], socket.socket] = {}
        self._clients: dict[socket.socket, tuple[str, int]] = {}
        self.lost = self.passed = 0
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        self._wake.send(b"x")
        self._thread.join(5)
        for sock in (self._front, self._stop, self._wake, *self._clients):
            sock.close()
        self._selector.close()

    def _run(self) -> None:
        while True:
            for key, _ in self._selector.select():
                sock = key.fileobj
                assert isinstance(sock, socket.socket)
                if sock is self._stop:
                    return
                try:
                    data, address = sock.recvfrom(65536)
                except OSError:
                    continue
                if self._random.random() < self._loss:
                    self.lost += 1
                    continue
                self.passed += 1
                if sock is self._front:
                    self._forward(address).sendto(data, self._target)
                else:
                    self._front.sendto(data, self._clients[sock])

    def _forward(self, address: tuple[str, int]) -> socket.socket:
        found = self._back.get(address)
        if found is None:
            found = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            self._back[address] = found
            self._clients[found] = address
            self._selector.register(found, selectors.EVENT_READ)
        return found
