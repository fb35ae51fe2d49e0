"""The internal parts of uvicorn that the HTTP server uses.

uvicorn reads a request of any size for any time, and queues further requests of a connection
without a bound. Here a connection reads its bytes with `RequestParser`, one request at a time, and
ends when its time is over.

uvicorn documents neither its protocol classes nor a way to serve on a thread without taking over
the signals of the process. Only this module touches them (`tests/build/test_private_names.py`), and
the extra `web` bounds uvicorn to the versions that the suite runs on. To support a new version,
begin here.
"""

from __future__ import annotations

import asyncio
import socket
from functools import partial
from http import HTTPStatus
from typing import Any, Final
from urllib.parse import unquote

import uvicorn
from uvicorn.protocols.http.flow_control import HIGH_WATER_LIMIT
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle
from uvicorn.protocols.websockets.wsproto_impl import WSProtocol
from wsproto.events import Ping

from zenlake.http.accepting import accept_connections
from zenlake.http.answer_pace import AnswerPace, ClosingTime
from zenlake.http.connections import SEAT, Connections, Seat
from zenlake.http.faults import FAILED, caught, count_fault
from zenlake.http.limits import DRAINED_BYTES, PIPELINED_BYTES
from zenlake.http.request_head import BadRequest, RequestHead
from zenlake.http.request_parser import RequestEnd, RequestParser

__all__ = ["HttpConnection", "HttpListener", "serve_without_signals"]

PONGS_BYTES: Final = 1 << 16
"""Bytes of pongs that wait for a client, which is cut if it takes none."""
SLICE: Final = 1 << 13
"""Bytes of a WebSocket that are read at once: a message of them takes as little memory."""


async def serve_without_signals(server: uvicorn.Server, sock: socket.socket) -> None:
    """Serve until `server.should_exit` is set; the signals of the process stay as they are."""
    await server._serve(sockets=[sock])


class HttpListener(uvicorn.Server):
    """A server that accepts connections one by one, each if there is a seat for it."""

    def __init__(self, config: uvicorn.Config, connections: Connections) -> None:
        """`connections` decides who gets a seat."""
        super().__init__(config)
        self._connections = connections
        self._accepting: asyncio.Task[None] | None = None
        self._checking: asyncio.Task[None] | None = None

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to accept."""
        assert sockets is not None
        await self.lifespan.startup()
        self.servers = []
        self._checking = asyncio.create_task(_check_times(self._connections))
        self._accepting = asyncio.create_task(
            accept_connections(sockets[0], self._connections, self._protocol, self.config.ssl)
        )
        self.started = True

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Accept no more, and end what is open."""
        tasks = [task for task in (self._accepting, self._checking) if task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await super().shutdown(sockets)

    def _protocol(self, seat: Seat) -> asyncio.Protocol:
        state = self.server_state
        return HttpConnection(self.config, state, self.lifespan.state, self._connections, seat)


async def _check_times(connections: Connections) -> None:
    loop = asyncio.get_running_loop()
    while True:
        await asyncio.sleep(connections.check_seconds)
        connections.check_times(loop.time())


class HttpConnection(HttpToolsProtocol):
    """One connection, which has one request at a time.

    States, by what is awaited, each with a deadline:

    - the first byte of a request (`first_byte_seconds`, later `keep_alive_seconds`);
    - the rest of its head (`head_seconds`);
    - its body and its answer: no deadline here, since who reads a body gives it one
      (`rest.bodies`); a client that does not take its answer is too slow;
    - the rest of a body that was answered already, or the end of a client that was refused
      (`closing_seconds`).
    """

    def __init__(
        self,
        config: uvicorn.Config,
        server_state: Any,
        app_state: dict[str, Any],
        connections: Connections,
        seat: Seat,
    ) -> None:
        """`seat` is left when the connection is lost."""
        super().__init__(config, server_state, {**app_state, SEAT: seat})
        self._connections = connections
        self._limits = connections.limits
        self._seat = seat
        self._requests = RequestParser(self._limits)
        self._pace = AnswerPace(self._limits)
        self._closing = ClosingTime(self._limits)
        self._deadline: float | None = self.loop.time() + self._limits.first_byte_seconds
        self._has_body = False
        self._has_head = False
        self._drained = 0
        #: Bytes of the answer that was sent last, until all of it was taken.
        self._whole = 0
        self._is_ending = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """A client has connected."""
        super().connection_made(transport)
        self._seat.connection = self

    @caught
    def connection_lost(self, exc: Exception | None) -> None:
        """Who asked has gone."""
        self._seat.leave()
        super().connection_lost(exc)

    # -------------------------------------------------------------------------------- reading

    @caught
    def data_received(self, data: bytes) -> None:
        """Read what came, as far as it is the turn of it."""
        if self._is_ending:
            self._drain(len(data))
            return
        self._requests.feed(data)
        self._read()

    def _read(self) -> None:
        """Read requests until one is complete that is not answered yet."""
        try:
            while not self._is_answering and not self.transport.is_closing():
                event = self._requests.next_event()
                if event is None:
                    break
                if isinstance(event, RequestHead):
                    self._begin(event)
                    if event.wants_websocket:
                        return
                elif isinstance(event, RequestEnd):
                    self._has_body = False
                    self._note_body()
                    if self.cycle.response_complete:
                        self._await_request()
                else:
                    self._body(event)
        except BadRequest as bad:
            self._refuse(bad)
            return
        self._note_progress()

    @property
    def _is_answering(self) -> bool:
        """Whether a request has come whole and its answer has not gone out."""
        cycle: RequestResponseCycle | None = self.cycle
        return cycle is not None and not self._has_body and not cycle.response_complete

    def _begin(self, head: RequestHead) -> None:
        path, _, query = head.target.partition(b"?")
        text = path.decode("ascii")
        self.scope = {
            "type": "http",
            "asgi": {"version": self.asgi_version, "spec_version": "2.3"},
            "http_version": head.version,
            "method": head.method.decode("ascii"),
            "scheme": self.scheme or "http",
            "server": self.server,
            "client": self.client,
            "root_path": "",
            "path": unquote(text) if "%" in text else text,
            "raw_path": path,
            "query_string": query,
            "headers": head.headers,
            "state": self.app_state.copy(),
        }
        self._has_body = True
        self._drained = 0
        self._deadline = None
        if self._seat.waiting.amount:
            self._count_waiting()
        if head.wants_websocket:
            if self._requests.buffered:
                raise BadRequest(400, "a WebSocket client waits for the answer before it sends")
            self.url = head.target
            self.handle_websocket_upgrade()
            return
        self.cycle = RequestResponseCycle(
            scope=self.scope,
            transport=self.transport,
            flow=self.flow,
            logger=self.logger,
            access_logger=self.access_logger,
            access_log=self.access_log,
            default_headers=self.server_state.default_headers,
            message_event=asyncio.Event(),
            expect_100_continue=head.expects_continue,
            keep_alive=head.keep_alive,
            on_response=self.on_response_complete,
        )
        task = self.loop.create_task(self.cycle.run_asgi(self.app))
        task.add_done_callback(self.tasks.discard)
        self.tasks.add(task)

    def _body(self, part: bytes) -> None:
        cycle = self.cycle
        if cycle.response_complete:
            self._drain(len(part))
            return
        cycle.body += part
        if len(cycle.body) > HIGH_WATER_LIMIT:
            self.flow.pause_reading()
        cycle.message_event.set()

    def _note_body(self) -> None:
        """Tell the application that the body of its request has come whole."""
        self.cycle.more_body = False
        self.cycle.message_event.set()

    def _drain(self, size: int) -> None:
        """Read on for a client that sends although it was answered, so that it sees the answer."""
        self._drained += size
        if self._drained <= DRAINED_BYTES:
            return
        if self._is_ending:
            self.transport.abort()
        else:
            self._wait_for_end()

    def _note_progress(self) -> None:
        """Count what is kept of the request, and give a head that has begun its time."""
        waiting = self._requests.buffered
        if not waiting and not self._has_body:
            # The usual end: a request came whole, with nothing behind it.
            self._has_head = False
            self._seat.reading.hold(0)
            return
        if self.transport.is_closing():
            return
        if waiting and self._is_answering and waiting > PIPELINED_BYTES:
            self.flow.pause_reading()
        begun = bool(waiting) and self._requests.in_head and not self._is_answering
        if begun and not self._has_head:
            self._deadline = self.loop.time() + self._limits.head_seconds
        self._has_head = begun
        held = waiting + (len(self.cycle.body) if self._has_body else 0)
        if not self._seat.reading.hold(held):
            self._connections.refused["memory"] += 1
            self._end(503, "requests that are being read hold all the memory for them; try again")

    # ------------------------------------------------------------------------------ answering

    def handle_websocket_upgrade(self) -> None:
        """A request wants a WebSocket."""
        made = partial(WebSocketConnection, connections=self._connections, seat=self._seat)
        self.ws_protocol_class = made  # type: ignore[assignment]
        super().handle_websocket_upgrade()

    @caught
    def on_response_complete(self) -> None:
        """Go on with the next request."""
        self.server_state.total_requests += 1
        making = self._seat.making
        if making.amount:
            # Of a small answer what waits is counted once in a while, and when it becomes much.
            if self.scope["method"] != "HEAD":
                self._whole = making.amount
            self._count_waiting()
            making.force(0)
        if self.transport.is_closing():
            return
        self.flow.resume_reading()
        if self._has_body:
            self._deadline = self.loop.time() + self._limits.closing_seconds
            return
        self._await_request()
        if self._requests.buffered:
            self._read()

    def _await_request(self) -> None:
        self._has_head = False
        self._deadline = self.loop.time() + self._limits.keep_alive_seconds
        self._seat.reading.hold(0)

    def _count_waiting(self) -> int:
        """Hold what waits for the client, and return how much of it has not been taken.

        An answer is freed as a whole, when its last byte was taken.
        """
        left = self.transport.get_write_buffer_size()
        if not left:
            self._whole = 0
        self._seat.waiting.force(max(left, self._whole))
        return left

    @caught
    def pause_writing(self) -> None:
        """Much waits for the client."""
        self._count_waiting()
        super().pause_writing()

    @caught
    def resume_writing(self) -> None:
        """A client has taken what waited for it."""
        self._count_waiting()
        self._pace.restart()
        super().resume_writing()

    def shutdown(self) -> None:
        """End after what is being answered."""
        if self._is_answering or self._has_body:
            self.cycle.keep_alive = False
        else:
            self.transport.close()

    # --------------------------------------------------------------------------------- ending

    @caught
    def check_time(self, now: float) -> None:
        """End the connection if its time is over."""
        transport = self.transport
        is_over = self._deadline is not None and now >= self._deadline
        if self._is_ending:
            if is_over:
                transport.abort()
            return
        waiting = self._count_waiting()
        if waiting and (transport.is_closing() or not self._may_write):
            if self._deadline is not None and not self._has_body and not self._has_head:
                self._await_request()  # the time until the next one begins when all was taken
            if self._pace.is_too_slow(now, waiting):
                self._connections.refused["slow"] += 1
                transport.abort()
            return
        self._pace.restart()
        if transport.is_closing():
            if self._closing.is_over(now):
                transport.abort()
            return
        if not is_over:
            return
        if self._has_body:
            self._wait_for_end()
        elif self._has_head:
            self._connections.refused["slow"] += 1
            seconds = self._limits.head_seconds
            self._end(408, f"the head of the request did not come within {seconds:g} seconds")
        else:
            transport.close()

    @property
    def _may_write(self) -> bool:
        """Whether more of an answer may be added to what waits for the client."""
        cycle: RequestResponseCycle | None = self.cycle
        return not self.flow.write_paused and cycle is not None and not cycle.response_complete

    def on_fault(self, error: Exception) -> None:
        """Count an error of our own, and end the connection with an answer."""
        count_fault(self._connections, "a connection of the HTTP server failed", error)
        if not self.transport.is_closing():
            self._end(500, FAILED)

    def _refuse(self, bad: BadRequest) -> None:
        self._connections.refused[bad.reason] += 1
        self._end(bad.code, str(bad))

    def _end(self, code: int, why: str) -> None:
        """Answer with a code and a reason, and end the connection once the client has seen it."""
        cycle: RequestResponseCycle | None = self.cycle
        if self._is_answering:
            self.transport.close()
            return
        if self._has_body and cycle is not None and not cycle.response_complete:
            cycle.disconnected = True
            cycle.message_event.set()
            if cycle.response_started:
                self.transport.close()
                return
        self.transport.write(refusal(code, why))
        self._wait_for_end()

    def _wait_for_end(self) -> None:
        """Send no more, and give the client some time to read what it was sent, and to end."""
        self._is_ending = True
        self._drained = 0
        self._seat.reading.hold(0)
        self._requests = RequestParser(self._limits)
        self._deadline = self.loop.time() + self._limits.closing_seconds
        self.flow.resume_reading()
        if self.transport.can_write_eof():
            self.transport.write_eof()
        else:
            self.transport.close()


class WebSocketConnection(WSProtocol):
    """A WebSocket, which holds the seat of the request that asked for it."""

    def __init__(
        self,
        config: uvicorn.Config,
        server_state: Any,
        app_state: dict[str, Any],
        *,
        connections: Connections,
        seat: Seat,
    ) -> None:
        """`seat` is left when the connection is lost."""
        super().__init__(config, server_state, {**app_state, SEAT: seat})
        self._connections = connections
        self._seat = seat
        self._pace = AnswerPace(connections.limits)
        self._closing = ClosingTime(connections.limits)
        self._has_head = False
        self._held = bytearray()
        self._ping: Ping | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """A request asked for it."""
        super().connection_made(transport)
        self._seat.connection = self

    @caught
    def connection_lost(self, exc: Exception | None) -> None:
        """The client has gone."""
        self._held.clear()
        self._seat.leave()
        super().connection_lost(exc)

    @caught
    def data_received(self, data: bytes) -> None:
        """Read the head of the request, later frames while no message waits to be taken."""
        if not self._has_head:
            self._has_head = True
            try:
                super().data_received(data)
            except UnicodeError:
                # wsproto decodes names and values of headers, `Host` as an international name.
                self._connections.refused["malformed"] += 1
                self._end(400, "a header of the WebSocket has letters that it cannot have")
            return
        self._held += data
        self._read()

    def _read(self) -> None:
        held = self._held
        while held and self.handshake_complete and not self.read_paused:
            piece = bytes(held[:SLICE])
            del held[:SLICE]
            super().data_received(piece)
            if self.transport.is_closing():
                held.clear()
                return
        if held and not self.read_paused:
            self.read_paused = True
            self.transport.pause_reading()
        if not self._seat.reading.hold(len(held) + self.buffer.length):
            self._connections.refused["memory"] += 1
            self.transport.abort()

    async def receive(self) -> Any:
        """Return the next message, and read on for the one after."""
        if self.queue.empty() and self._held:
            self.read_paused = False
            self.transport.resume_reading()
            self._read()
        return await super().receive()

    def handle_ping(self, event: Ping) -> None:
        """Answer a ping; while much waits for the client, only the last one."""
        if self.transport.get_write_buffer_size() > PONGS_BYTES:
            self._ping = event
        else:
            super().handle_ping(event)

    @caught
    def pause_writing(self) -> None:
        """Much waits for the client."""
        self._seat.waiting.force(self.transport.get_write_buffer_size())
        super().pause_writing()

    @caught
    def resume_writing(self) -> None:
        """The client has taken what waited for it."""
        self._seat.waiting.force(self.transport.get_write_buffer_size())
        self._pace.restart()
        super().resume_writing()
        ping, self._ping = self._ping, None
        if ping is not None and not self.transport.is_closing():
            super().handle_ping(ping)

    @caught
    def check_time(self, now: float) -> None:
        """Cut a client that takes too little of what waits for it."""
        waiting = self.transport.get_write_buffer_size()
        self._seat.waiting.force(waiting)
        if not waiting and self.transport.is_closing():
            if self._closing.is_over(now):
                self.transport.abort()
        elif not waiting or (self.writable.is_set() and not self.transport.is_closing()):
            self._pace.restart()
        elif self._pace.is_too_slow(now, waiting):
            self._connections.refused["slow"] += 1
            self.transport.abort()

    def on_fault(self, error: Exception) -> None:
        """Count an error of our own, and end the connection."""
        count_fault(self._connections, "a WebSocket of the HTTP server failed", error)
        self._end(500, FAILED)

    def _end(self, code: int, why: str) -> None:
        """End the connection, with an answer if it has had none."""
        if not self.handshake_complete and not self.transport.is_closing():
            self.transport.write(refusal(code, why))
        self.transport.close()


def refusal(code: int, why: str) -> bytes:
    """Return the whole answer to a request that is not answered otherwise."""
    text = f"{why}\n".encode()
    return (
        f"HTTP/1.1 {code} {HTTPStatus(code).phrase}\r\n"
        "content-type: text/plain; charset=utf-8\r\n"
        f"content-length: {len(text)}\r\n"
        "cache-control: no-store\r\n"
        "x-content-type-options: nosniff\r\n"
        "connection: close\r\n\r\n"
    ).encode() + text
