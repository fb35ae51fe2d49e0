"""The HTTP server of a node: a thread with a loop of its own, and the socket it listens on."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
import threading
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any, Final

from zenlake.engine.loop import new_loop
from zenlake.http.connections import Connections
from zenlake.http.faults import count_fault
from zenlake.http.few_lines import bounded_log
from zenlake.http.sockets import url_of

if TYPE_CHECKING:
    import uvicorn
    from starlette.types import ASGIApp

__all__ = ["HttpServer", "reason"]

log = logging.getLogger("zenlake.http")

SECONDS: Final = 5.0
"""How long the end of the server may take."""


def reason(error: Exception) -> str:
    """Why it is not served, in words."""
    if isinstance(error, ImportError):
        return f"it needs {error.name}: pip install 'zenlake[web]'"
    return str(error)


class HttpServer:
    """An ASGI application on a socket, served by a thread of its own until it is closed."""

    def __init__(
        self,
        app: ASGIApp,
        sock: socket.socket,
        name: str,
        connections: Connections,
        certificate: tuple[str, str] | None = None,
        max_message: int = 1 << 20,
    ) -> None:
        """`certificate`: the files of it and of its key, for TLS."""
        import uvicorn

        from zenlake.http.uvicorn_internals import HttpListener

        bounded_log("uvicorn.error")
        self._socket = sock
        self.host, self.port = sock.getsockname()[:2]
        self._secure = certificate is not None
        self.config = uvicorn.Config(
            app,
            loop="none",
            http="httptools",
            lifespan="off",
            ws="wsproto",
            ws_max_size=max_message,
            # A few bytes of a compressed message could become any number before they are counted.
            ws_per_message_deflate=False,
            log_config=None,
            access_log=False,
            server_header=False,
            date_header=False,
            proxy_headers=False,
            timeout_graceful_shutdown=1,
            ssl_certfile=None if certificate is None else certificate[0],
            ssl_keyfile=None if certificate is None else certificate[1],
        )
        self.config.load()
        self.connections = connections
        self._server: uvicorn.Server = HttpListener(self.config, connections)
        self.loop = new_loop()
        self.loop.set_exception_handler(self._on_fault)
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"zenlake {name}", daemon=True)
        self._thread.start()

    def url(self, scheme: str) -> str:
        """Where it is, for programs on this machine."""
        return url_of(f"{scheme}{'s' if self._secure else ''}", self.host, self.port)

    def _on_fault(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """Count what a task or a callback of the loop raised."""
        what = str(context.get("message", "a callback of the HTTP server failed"))
        count_fault(self.connections, what, context.get("exception"))

    def _run(self) -> None:
        from zenlake.http.uvicorn_internals import serve_without_signals

        asyncio.set_event_loop(self.loop)
        try:
            self.loop.run_until_complete(serve_without_signals(self._server, self._socket))
        except Exception:
            log.exception("the HTTP server ended")
        finally:
            with contextlib.suppress(RuntimeError):
                self.loop.run_until_complete(self.loop.shutdown_asyncgens())
            self.loop.close()
            self._ended.set()

    def call(self, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Run a coroutine on its loop, and wait for it."""
        if not self.loop.is_closed():
            asyncio.run_coroutine_threadsafe(work(), self.loop).result(SECONDS)

    def close(self) -> None:
        """Listen no more, and end what is open."""
        server = self._server
        server.should_exit = True
        if not self._ended.wait(SECONDS):
            server.force_exit = True
            self._ended.wait(SECONDS)
        self._socket.close()
