"""A WebSocket client for tests: blocking, and as rude as a test needs it."""

from __future__ import annotations

import queue
import socket
import threading
from contextlib import suppress
from types import TracebackType
from typing import Any, Self

import wsproto
from wsproto.events import (
    AcceptConnection,
    BytesMessage,
    CloseConnection,
    Event,
    Ping,
    RejectConnection,
    Request,
    TextMessage,
)

from tests.waiting import SECONDS
from zenlake.remote.messages import FROM_CLIENT, FROM_SERVER, RemoteMessage, decode, encode


class Refused(Exception):
    """The connection was not accepted."""


class WebSocket:
    def __init__(self, url: str, headers: dict[str, str] | None = None, **names: Any) -> None:
        host, _, port = url.removeprefix("ws://").rpartition(":")
        self.socket = socket.create_connection((host, int(port)), timeout=SECONDS)
        self._ws = wsproto.WSConnection(wsproto.ConnectionType.CLIENT)
        named = names.get("host", f"{host}:{port}")
        extra = [(name.encode(), value.encode()) for name, value in (headers or {}).items()]
        protocols = names.get("protocols", [])
        target = names.get("target", "/")
        self._send(Request(host=named, target=target, extra_headers=extra, subprotocols=protocols))
        self._events: list[Event] = []
        event = self._next()
        if not isinstance(event, AcceptConnection):
            self.socket.close()
            raise Refused(event.status_code if isinstance(event, RejectConnection) else event)
        self.subprotocol = event.subprotocol

    def _send(self, event: Event) -> None:
        self.socket.sendall(self._ws.send(event))

    def _next(self) -> Event:
        while not self._events:
            data = self.socket.recv(1 << 16)
            self._ws.receive_data(data or None)
            self._events.extend(self._ws.events())
        return self._events.pop(0)

    def say(self, data: bytes | str) -> None:
        self._send(BytesMessage(data) if isinstance(data, bytes) else TextMessage(data))

    def hear(self) -> bytes:
        """The next binary message; `CloseConnection` ends it."""
        parts = bytearray()
        while True:
            event = self._next()
            if isinstance(event, BytesMessage):
                parts += event.data
                if event.message_finished:
                    return bytes(parts)
            elif isinstance(event, CloseConnection):
                raise Refused(event.code, event.reason)

    def ask(self, name: str, sequence: int = 1, **body: Any) -> RemoteMessage:
        """Send a message that wants an answer, and give the answer."""
        self.say(encode(name, sequence, FROM_CLIENT, **body))
        while True:
            found = decode(self.hear(), FROM_SERVER)
            if found.sequence == sequence:
                return found

    def tell(self, name: str, **body: Any) -> None:
        self.say(encode(name, None, FROM_CLIENT, **body))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        self.socket.close()


class AttentiveWebSocket(WebSocket):
    """A client that answers pings, as browsers do, while its test is busy elsewhere."""

    def __init__(self, url: str, headers: dict[str, str] | None = None, **names: Any) -> None:
        self._lock = threading.Lock()
        self._reader: threading.Thread | None = None
        self._received: queue.SimpleQueue[Event] = queue.SimpleQueue()
        super().__init__(url, headers, **names)
        for event in self._events:
            self._received.put(event)
        self.socket.settimeout(None)
        self._reader = threading.Thread(target=self._read, name="test client", daemon=True)
        self._reader.start()

    def _send(self, event: Event) -> None:
        with self._lock:
            super()._send(event)

    def _next(self) -> Event:
        return super()._next() if self._reader is None else self._received.get(timeout=SECONDS)

    def _read(self) -> None:
        while True:
            try:
                data = self.socket.recv(1 << 16)
            except OSError:
                data = b""
            with self._lock:
                self._ws.receive_data(data or None)
                events = list(self._ws.events())
                pongs = [self._ws.send(one.response()) for one in events if isinstance(one, Ping)]
            with suppress(OSError):
                self.socket.sendall(b"".join(pongs))
            for event in events:
                self._received.put(event)
            if not data or any(isinstance(one, CloseConnection) for one in events):
                return

    def close(self) -> None:
        with suppress(OSError):  # the server may have closed it before
            self.socket.shutdown(socket.SHUT_RDWR)
        if self._reader is not None:
            self._reader.join()
        super().close()
