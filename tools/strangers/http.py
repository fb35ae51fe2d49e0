"""Requests over HTTP that are right, nearly right or damaged, to a node that runs.

They are given to the server's own protocol (parser, keep-alive, pipelining) without a socket:
several connections at once, each of them for some requests. Counted is what was given to a
connection that was open. Whatever comes, no answer may be 500, which is what an error that nobody
foresaw becomes; an honest client beside them reads what it wrote; and when the connections are
gone, so is all that was begun for them.
"""

from __future__ import annotations

import asyncio
import json
import random
import re
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from uvicorn.server import ServerState

import zenlake
from tools import fuzz
from zenlake.http.connections import Connections
from zenlake.http.limits import HttpLimits
from zenlake.http.uvicorn_internals import HttpConnection
from zenlake.rest.service import RestService

PATHS = (
    "demo/a", "demo/**", "**", "@/local/router", "@/*/**", "@lake/sql", "", "health", "metrics",
    "openapi.json", "status", "demo/%2A%2A", "demo/%ff", "a//b", "%2e%2e/etc", "demo/" + "x/" * 300,
)  # fmt: skip
QUERIES = (
    "", "?", "?_time=[now(-1m)..]", "?_time=[", "?_filter=a<1", "?_filter=((", "?_ack_put=true",
    "?_download=csv", "?_download=parquet", "?_raw", "?_sql=SELECT 1", "?a=%00&b", "?" + "p;" * 500,
)  # fmt: skip
#: Before the path: the whole URL, or what is nearly one.
BEFORE = ("http://localhost", "HTTP://localhost", "http://", "http://x:999999", "http://[::1", "*")
METHODS = ("GET", "PUT", "POST", "PATCH", "DELETE", "OPTIONS", "HEAD")
HEADERS = (
    "", "Accept: text/csv", "Accept: application/vnd.apache.arrow.stream", "Accept: text/html",
    "Accept: text/event-stream", "Content-Type: application/json", "Authorization: Basic %%%",
    "Authorization: Bearer x", "Origin: https://evil.example", "Expect: 100-continue",
    "Range: bytes=0-1", "Last-Event-ID: 7",
)  # fmt: skip
#: What ends a connection, now or later: seldom, or no connection would live for long.
FATAL = (
    "Content-Type: \x01", "Transfer-Encoding: chunked", "Connection: close", "Content-Length: 7",
    "Upgrade: websocket\r\nConnection: Upgrade", "Transfer-Encoding: gzip", "Connection: Upgrade",
)  # fmt: skip
SELDOM = 0.02
#: Requests of a connection, at most, and connections at once.
LIFE = 100
CROWD = 16
#: Seconds that an answer may take, of an honest client and of all strangers.
PATIENCE = 10.0
_STATUS = re.compile(rb"HTTP/1\.1 (\d\d\d)")


class Wire(asyncio.Transport):
    """A connection of the server that ends in a list; whose other side may read slowly."""

    def __init__(
        self, loop: asyncio.AbstractEventLoop, made: Callable[[], asyncio.Protocol]
    ) -> None:
        """`made` makes the server's protocol for a connection."""
        super().__init__({"peername": ("127.0.0.1", 5), "sockname": ("127.0.0.1", 80)})
        self._loop = loop
        self._closing = False
        self.answered: list[bytes] = []
        self._protocol: Any = made()
        self._protocol.connection_made(self)

    @property
    def is_open(self) -> bool:
        """Whether the server still reads."""
        return not self._closing

    def give(self, data: bytes) -> None:
        """The other side says something."""
        self._protocol.data_received(data)

    def leave(self) -> None:
        """The other side has gone."""
        self.abort()

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """The server answers."""
        self.answered.append(bytes(data))

    def writelines(self, list_of_data: Iterable[bytes | bytearray | memoryview]) -> None:
        """The server answers in pieces."""
        self.answered.extend(bytes(piece) for piece in list_of_data)

    def close(self) -> None:
        """The server has had enough."""
        if not self._closing:
            self._closing = True
            self._loop.call_soon(self._lost)

    def _lost(self) -> None:
        self._protocol.connection_lost(None)  # which may be another one by now

    def abort(self) -> None:
        """At once."""
        self.close()

    def can_write_eof(self) -> bool:
        """A server that ends closes at once."""
        return False

    def get_write_buffer_size(self) -> int:
        """All that is answered is taken."""
        return 0

    def is_closing(self) -> bool:
        """Whether it is over."""
        return self._closing

    def pause_reading(self) -> None:
        """What comes is taken anyway."""

    def resume_reading(self) -> None:
        """As before."""

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        """It became a WebSocket."""
        self._protocol = protocol

    def get_protocol(self) -> asyncio.BaseProtocol:
        """Whom it is read by."""
        protocol: asyncio.BaseProtocol = self._protocol
        return protocol


class HttpRequests:
    """A router with HTTP, an honest client, and connections of strangers."""

    name = group = "HTTP"

    def __init__(self, chance: random.Random) -> None:
        """The node is a real one, and so is its server; only sockets are left out."""
        self.chance = chance
        self.messages = 0
        self.life = LIFE
        # The first table of a download loads a hundred MiB of libraries: before memory is judged.
        pq.write_table(pa.table({"key": ["demo/a"]}), pa.BufferOutputStream())
        config = zenlake.Config()
        latest = {"key_expr": "demo/**", "volume": "memory"}
        plugins = {
            "rest": {"http_port": "127.0.0.1:0", "timeout": 0.05},
            "storage_manager": {"storages": {"latest": latest}},
        }
        config.insert_json5("mode", '"router"')
        config.insert_json5("listen/endpoints", '["tcp/127.0.0.1:0"]')
        config.insert_json5("scouting/multicast/enabled", "false")
        config.insert_json5("adminspace/enabled", "true")
        config.insert_json5("plugins", json.dumps(plugins))
        self.session = zenlake.open(config)
        service = self.session.runtime.services["zenlake.rest"]
        assert isinstance(service, RestService)
        assert service._serving is not None
        assert service._keys is not None
        self._door, self._streams = service._door, service._keys.streams
        self._config = service._serving.config
        self._connections = Connections(HttpLimits())
        self._state = ServerState()
        self._loop = service._serving.loop

    def close(self) -> None:
        """End the node."""
        self.session.close()

    def request(self) -> bytes:
        """One request."""
        chance = self.chance
        body = chance.randbytes(chance.choice((0, 0, 1, 40, 3000)))
        method = "BREW" if chance.random() < SELDOM else chance.choice(METHODS)
        before = chance.choice(BEFORE) if chance.random() < SELDOM else ""
        lines = [
            f"{method} {before}/{chance.choice(PATHS)}{chance.choice(QUERIES)} HTTP/1.1",
            "Host: localhost",
            *{chance.choice(HEADERS) for _ in range(3)} - {""},
        ]
        if chance.random() < SELDOM:
            lines.append(chance.choice(FATAL))
        if chance.random() < 0.2:
            lines.append("Transfer-Encoding: chunked")
            body = b"%x\r\n%b\r\n0\r\n\r\n" % (len(body), body) if body else b"0\r\n\r\n"
        elif body or chance.random() < 0.5:
            wrong = chance.choice((-1, 5)) if chance.random() < SELDOM else 0
            lines.append(f"Content-Length: {len(body) + wrong}")
        data = bytearray("\r\n".join(lines).encode("latin-1") + b"\r\n\r\n" + body)
        if chance.random() < SELDOM:
            chance.choice(fuzz.DAMAGES)(data, chance, [bytes(data)])
        return bytes(data)

    def round(self) -> None:
        """A crowd of connections: their lives, and an honest client after them."""
        asyncio.run_coroutine_threadsafe(self._crowd(), self._loop).result(4 * PATIENCE)

    def _connect(self) -> Wire:
        seat = self._connections.admit("127.0.0.1")
        assert seat is not None
        made = partial(
            HttpConnection, self._config, self._state, {}, connections=self._connections, seat=seat
        )
        return Wire(self._loop, made)

    async def _crowd(self) -> None:
        lives = [self._life() for _ in range(CROWD)]
        await asyncio.wait_for(asyncio.gather(*lives), PATIENCE)
        await asyncio.wait_for(self._gone(), PATIENCE)
        await asyncio.wait_for(self._honest(), PATIENCE)

    async def _life(self) -> None:
        """One connection, until it is cut or has said enough."""
        chance = self.chance
        wire = self._connect()
        said: list[bytes] = []
        for _ in range(chance.randrange(1, self.life)):
            if not wire.is_open:
                break
            data = self.request()
            said.append(data)
            self.messages += 1
            if chance.random() < 0.1:
                cut = chance.randrange(len(data) + 1)
                wire.give(data[:cut])
                await asyncio.sleep(0)
                data = data[cut:]
            if wire.is_open:
                wire.give(data)
            if chance.random() < 0.5:
                # Half of them wait for the answer, the others pipeline.
                await self._answered(wire)
        if chance.random() < 0.8:
            await self._answered(wire)
        wire.leave()
        if b"500" in _STATUS.findall(b"".join(wire.answered)):
            raise AssertionError(f"an answer of 500 to {b''.join(said)[-4000:]!r}")

    async def _answered(self, wire: Wire) -> None:
        """Wait until what was begun is answered, or a few rounds of the loop."""
        before = len(wire.answered)
        for _ in range(20):
            if len(wire.answered) > before or not wire.is_open:
                return
            await asyncio.sleep(0)

    async def _gone(self) -> None:
        """Wait until nothing runs for those that have gone."""
        while self._state.connections or self._state.tasks or self._streams.open:
            await asyncio.sleep(0.0005)
        assert self._door is not None
        assert not self._door.places.taken, "a request is still counted as running"
        assert not self._connections.places.taken, "a connection is still counted as open"
        assert not self._connections.memory.taken, "bytes are still counted as held"
        assert not self._connections.answers.taken, "answers are still counted as held"

    async def _honest(self) -> None:
        """What is written is read, and `/health` answers."""
        value = str(self.messages).encode()
        wire = self._connect()
        await self._ask(wire, b"PUT /demo/honest", b"Content-Length: %d\r\n" % len(value), value)
        while not (await self._ask(wire, b"GET /demo/honest?_raw")).endswith(b"\r\n" + value):
            pass  # the storage writes on a thread of its own
        await self._ask(wire, b"GET /health")
        wire.leave()

    async def _ask(self, wire: Wire, line: bytes, head: bytes = b"", body: bytes = b"") -> bytes:
        """The answer to an honest request."""
        wire.answered.clear()
        wire.give(line + b" HTTP/1.1\r\nHost: localhost\r\n" + head + b"\r\n" + body)
        while self._state.tasks:
            await asyncio.sleep(0)
        answer = b"".join(wire.answered)
        if _STATUS.findall(answer) not in ([b"200"], [b"404"]):
            raise AssertionError(f"an honest client is answered {answer[:500]!r}")
        return answer
