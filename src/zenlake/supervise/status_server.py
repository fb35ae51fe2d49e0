"""The HTTP server of the service: few connections, small requests, a deadline for each.

It stays beside `zenlake.http`, whose server needs the extra `web`: metrics and health of a service
are there in any install, and answer while a node in another process hangs.
"""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections.abc import Callable, Mapping
from typing import Final

from zenlake.http.sockets import hosts_of, open_socket, url_of
from zenlake.supervise.requests import MOST, TEXT, HttpPage, Refusal, answer, parse, reply

__all__ = ["StatusServer", "fetch"]

CONNECTIONS: Final = 16
"""Requests that are answered at a time; others are closed at once."""

SECONDS: Final = 5.0
"""How long one request may take from its connection to its last byte."""

MOST_ANSWER: Final = 64 << 20


class StatusServer:
    """Answers a few pages over HTTP on a thread of its own, until it is closed."""

    def __init__(self, host: str, port: int, pages: Mapping[str, Callable[[], HttpPage]]) -> None:
        """Listen; raises `OSError` where that is not possible. Port 0 means any that is free."""
        self._pages = pages
        self._socket = open_socket(host, port)
        self.port: int = self._socket.getsockname()[1]
        #: Where it is, for programs on this machine.
        self.url: str = url_of("http", host, self.port)
        self._hosts = hosts_of(host)
        self._room = threading.BoundedSemaphore(CONNECTIONS)
        #: How many connections found no room.
        self.refused = 0
        self._thread = threading.Thread(target=self._serve, name="zenlake http", daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        while True:
            try:
                link, _ = self._socket.accept()
            except OSError:
                if self._socket.fileno() < 0:
                    return
                time.sleep(0.1)  # no descriptors left, for one: not a reason to spin or to end
                continue
            if not self._room.acquire(blocking=False):
                self.refused += 1
                link.close()
                continue
            threading.Thread(target=self._answer, args=(link,), daemon=True).start()

    def _answer(self, link: socket.socket) -> None:
        try:
            with link, contextlib.suppress(OSError):
                deadline = time.monotonic() + SECONDS
                self._talk(link, deadline)
        finally:
            self._room.release()

    def _talk(self, link: socket.socket, deadline: float) -> None:
        data = b""
        body = True
        try:
            while (request := parse(data)) is None:
                link.settimeout(max(0.001, deadline - time.monotonic()))
                more = link.recv(MOST + 1 - len(data))
                if not more or time.monotonic() >= deadline:
                    return
                data += more
            body = request.method != "HEAD"
            page = answer(request, self._pages, self._hosts)
        except Refusal as refusal:
            page = HttpPage(refusal.code, TEXT, f"{refusal}\n")
        link.settimeout(max(0.001, deadline - time.monotonic()))
        link.sendall(reply(page, body=body))
        with contextlib.suppress(OSError):
            link.shutdown(socket.SHUT_WR)

    def close(self) -> None:
        """Listen no more."""
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        self._thread.join(1.0)


def fetch(host: str, port: int, path: str, seconds: float = SECONDS) -> tuple[int, str]:
    """The code and the text of a page; raises `OSError`, or `ValueError` if it is no HTTP."""
    deadline = time.monotonic() + seconds
    name = f"[{host}]" if ":" in host else host
    with socket.create_connection((host, port), timeout=seconds) as link:
        link.sendall(f"GET {path} HTTP/1.1\r\nHost: {name}:{port}\r\n\r\n".encode("ascii"))
        parts: list[bytes] = []
        size = 0
        while size < MOST_ANSWER:
            link.settimeout(max(0.001, deadline - time.monotonic()))
            more = link.recv(1 << 16)
            if not more:
                break
            parts.append(more)
            size += len(more)
    head, separator, body = b"".join(parts).partition(b"\r\n\r\n")
    words = head.split(b"\r\n")[0].split()
    if not separator or len(words) < 2 or not words[0].startswith(b"HTTP/1."):
        raise ValueError(f"what answers at {name}:{port} is no `zenlake up`")
    return int(words[1]), body.decode("utf-8", "replace")
