"""The internal parts of uvicorn that the HTTP server uses.

A connection tells every request on it when it is lost. uvicorn tells only the newest request, and
none if that became a WebSocket: a second request that was sent behind a stream of events hid the
end from the stream, which went on for ever and took the place of another.

uvicorn documents neither its protocol classes nor a way to serve on a thread without taking over
the signals of the process. Only this module touches them (`tests/build/test_private_names.py`), and
the extra `web` bounds uvicorn to the versions that the suite runs on. To support a new version,
begin here.
"""

from __future__ import annotations

import socket
from collections import deque
from typing import Any

import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

__all__ = ["HttpConnection", "serve_without_signals"]


async def serve_without_signals(server: uvicorn.Server, sock: socket.socket) -> None:
    """Serve until `server.should_exit` is set; the signals of the process stay as they are."""
    await server._serve(sockets=[sock])


class HttpConnection(HttpToolsProtocol):
    """One connection, and the requests on it that others were sent behind."""

    def __init__(self, *arguments: Any, **named: Any) -> None:
        """Nothing has been asked."""
        super().__init__(*arguments, **named)
        #: Answers are complete in the order of the requests.
        self._earlier: deque[RequestResponseCycle] = deque()

    def on_headers_complete(self) -> None:
        """A request begins, perhaps behind one that is being answered."""
        before: RequestResponseCycle | None = self.cycle
        super().on_headers_complete()
        if before is not None and before is not self.cycle and not before.response_complete:
            while self._earlier and self._earlier[0].response_complete:
                self._earlier.popleft()
            self._earlier.append(before)

    def handle_websocket_upgrade(self) -> None:
        """A request wants a WebSocket, which it gets where nothing is being answered."""
        running: RequestResponseCycle | None = self.cycle
        if running is not None and not running.response_complete:
            self.transport.close()
        else:
            super().handle_websocket_upgrade()

    def connection_lost(self, exc: Exception | None) -> None:
        """Who asked has gone."""
        super().connection_lost(exc)
        for cycle in self._earlier:
            if not cycle.response_complete:
                cycle.disconnected = True
            cycle.message_event.set()
        self._earlier.clear()
