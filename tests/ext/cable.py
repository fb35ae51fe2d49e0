"""A cable between two nodes that a test can cut and join again."""

from __future__ import annotations

import socket
import threading
from contextlib import suppress
from typing import Self


class Cable:
    """Carries the bytes of everybody who connects to a place, as long as it is joined."""

    def __init__(self, place: str, joined: bool = True, port: int = 0) -> None:
        """`place`: where it leads, such as `tcp/127.0.0.1:7447`; `port`: where it begins."""
        host, _, target = place.removeprefix("tcp/").rpartition(":")
        self._target = (host, int(target))
        self._joined = joined
        self._ends: list[socket.socket] = []
        self._lock = threading.Lock()
        self._socket = socket.create_server(("127.0.0.1", port))
        self.place = f"tcp/127.0.0.1:{self._socket.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                near, _ = self._socket.accept()
                with self._lock:
                    joined = self._joined
                    self._ends.append(near)
                if not joined:
                    near.close()
                    continue
                far = socket.create_connection(self._target)
                with self._lock:
                    self._ends.append(far)
                for one, other in ((near, far), (far, near)):
                    threading.Thread(target=self._carry, args=(one, other), daemon=True).start()

    def _carry(self, one: socket.socket, other: socket.socket) -> None:
        with suppress(OSError):
            while data := one.recv(65536):
                other.sendall(data)
        for end in (one, other):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def cut(self) -> None:
        """Let nothing through, and nobody connect."""
        with self._lock:
            self._joined = False
            ends, self._ends = self._ends, []
        for end in ends:
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()

    def join(self) -> None:
        """Let whoever connects through again."""
        with self._lock:
            self._joined = True

    def close(self) -> None:
        """Carry no more."""
        self.cut()
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
