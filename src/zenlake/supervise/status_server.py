"""The HTTP server of the service: few connections, small requests, a deadline for each.

It needs no extra `web`: metrics and health of a service are there in any install, and answer while
a node in another process hangs. How connections are counted, and how requests are read, it shares
with the HTTP ports of a node (`zenlake.http`).
"""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections.abc import Callable, Mapping
from typing import Final

from zenlake.http.connections import Connections, Seat
from zenlake.http.faults import FAILED, count_fault
from zenlake.http.request_head import BadRequest, RequestHead
from zenlake.http.request_parser import RequestParser
from zenlake.http.sockets import hosts_of, open_socket, url_of
from zenlake.supervise.requests import LIMITS, REQUEST_SECONDS, TEXT, HttpPage, answer, reply

__all__ = ["StatusServer", "fetch"]

READ_BYTES: Final = 4096
MOST_ANSWER: Final = 64 << 20


class StatusServer:
    """Answers a few pages over HTTP on a thread of its own, until it is closed."""

    def __init__(
        self,
        host: str,
        port: int,
        pages: Mapping[str, Callable[[], HttpPage]],
        connections: Connections | None = None,
    ) -> None:
        """Listen; raises `OSError` where that is not possible. Port 0 means any that is free."""
        self._pages = pages
        self._socket = open_socket(host, port)
        self.port: int = self._socket.getsockname()[1]
        #: Where it is, for programs on this machine.
        self.url: str = url_of("http", host, self.port)
        self._hosts = hosts_of(host)
        self._lock = threading.Lock()
        #: Who is connected, and how many were refused; read under no lock.
        self.connections = Connections(LIMITS) if connections is None else connections
        self._thread = threading.Thread(target=self._serve, name="zenlake http", daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        while True:
            try:
                link, address = self._socket.accept()
            except OSError:
                if self._socket.fileno() < 0:
                    return
                time.sleep(0.1)  # no descriptors left, for one: not a reason to spin or to end
                continue
            with self._lock:
                seat = self.connections.admit(str(address[0]))
            if seat is None:
                page = HttpPage(503, TEXT, "too many connections; try again later\n")
                with link, contextlib.suppress(OSError):
                    link.setblocking(False)
                    link.send(reply(page))
                continue
            thread = threading.Thread(target=self._answer, args=(link, seat), daemon=True)
            try:
                thread.start()
            except RuntimeError as error:  # the process may have no more threads
                self._count("no thread for a request", error)
                link.close()
                self._leave(seat)

    def _answer(self, link: socket.socket, seat: Seat) -> None:
        try:
            with link, contextlib.suppress(OSError):
                self._talk(link, time.monotonic() + self.connections.limits.head_seconds)
        finally:
            self._leave(seat)

    def _leave(self, seat: Seat) -> None:
        with self._lock:
            seat.leave()

    def _count(self, what: str, error: Exception) -> None:
        with self._lock:
            count_fault(self.connections, what, error)

    def _talk(self, link: socket.socket, deadline: float) -> None:
        body = True
        try:
            request = self._request(link, deadline)
            if request is None:
                return
            body = request.method != b"HEAD"
            page = answer(request, self._pages, self._hosts)
        except BadRequest as bad:
            with self._lock:
                self.connections.refused[bad.reason] += 1
            page = HttpPage(bad.code, TEXT, f"{bad}\n")
            deadline = time.monotonic() + self.connections.limits.closing_seconds
        except OSError:
            raise
        except Exception as error:
            self._count("a request for the status failed", error)
            page = HttpPage(500, TEXT, f"{FAILED}\n")
            deadline = time.monotonic() + self.connections.limits.closing_seconds
        link.settimeout(max(0.001, deadline - time.monotonic()))
        link.sendall(reply(page, body=body))
        link.shutdown(socket.SHUT_WR)
        self._wait_for_end(link, deadline)

    def _request(self, link: socket.socket, deadline: float) -> RequestHead | None:
        """Read the head of a request; None where the client ends. Raises `BadRequest`."""
        requests = RequestParser(self.connections.limits)
        seconds = self.connections.limits.head_seconds
        while True:
            event = requests.next_event()
            if isinstance(event, RequestHead):
                return event
            left = deadline - time.monotonic()
            link.settimeout(max(0.001, left))
            try:
                more = link.recv(READ_BYTES)
            except TimeoutError:
                if not requests.buffered:
                    return None
                left = 0.0
                more = b"."
            if not more:
                return None
            if left <= 0.0:
                raise BadRequest(408, f"the head did not come within {seconds:g} seconds")
            requests.feed(more)

    def _wait_for_end(self, link: socket.socket, deadline: float) -> None:
        """Read what a client sends still, so that it sees the answer: closing would reset it."""
        closing = time.monotonic() + self.connections.limits.closing_seconds
        left = 1 << 18
        while left > 0:
            link.settimeout(max(0.001, min(deadline, closing) - time.monotonic()))
            more = link.recv(min(left, 1 << 16))
            if not more:
                return
            left -= len(more)

    def close(self) -> None:
        """Listen no more."""
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        self._thread.join(1.0)


def fetch(host: str, port: int, path: str, seconds: float = REQUEST_SECONDS) -> tuple[int, str]:
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
