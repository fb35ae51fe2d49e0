"""Requests over HTTP that are right, nearly right or damaged, to a node that runs.

A connection lives for some requests; whatever comes, no answer
may be 500, which is what an error that nobody foresaw becomes, and `/health` answers afterwards.
"""

from __future__ import annotations

import json
import random
import re
import socket

import pyarrow as pa
import pyarrow.parquet as pq

import zenlake
from tools import fuzz
from zenlake.rest.service import RestService

PATHS = (
    "demo/a", "demo/**", "**", "@/local/router", "@/*/**", "@lake/sql", "", "health", "metrics",
    "openapi.json", "status", "demo/%2A%2A", "demo/%ff", "a//b", "%2e%2e/etc", "demo/" + "x/" * 300,
)  # fmt: skip
QUERIES = (
    "", "?", "?_time=[now(-1m)..]", "?_time=[", "?_filter=a<1", "?_filter=((", "?_ack_put=true",
    "?_download=csv", "?_download=parquet", "?_raw", "?_sql=SELECT 1", "?a=%00&b", "?" + "p;" * 500,
)  # fmt: skip
METHODS = ("GET", "PUT", "POST", "PATCH", "DELETE", "OPTIONS", "HEAD", "BREW")
HEADERS = (
    "", "Accept: text/csv", "Accept: application/vnd.apache.arrow.stream", "Accept: text/html",
    "Content-Type: application/json", "Content-Type: \x01", "Authorization: Basic %%%",
    "Authorization: Bearer x", "Origin: https://evil.example", "Expect: 100-continue",
    "Range: bytes=0-1", "Last-Event-ID: 7", "Transfer-Encoding: chunked", "Connection: close",
)  # fmt: skip
LIFE = 25
_STATUS = re.compile(rb"HTTP/1\.1 (\d\d\d)")


class HttpRequests:
    """A router with HTTP, and connections of strangers."""

    name = group = "HTTP"

    def __init__(self, chance: random.Random) -> None:
        """Listens on a free port of loopback."""
        self.chance = chance
        self.messages = 0
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
        service = self.session._runtime.services["zenlake.rest"]
        assert isinstance(service, RestService)
        host, _, port = service.url.removeprefix("http://").rpartition(":")
        self.place = (host, int(port))

    def request(self) -> bytes:
        """One request."""
        chance = self.chance
        body = chance.randbytes(chance.choice((0, 0, 1, 40, 3000)))
        lines = [
            f"{chance.choice(METHODS)} /{chance.choice(PATHS)}{chance.choice(QUERIES)} HTTP/1.1",
            "Host: localhost",
            *{chance.choice(HEADERS) for _ in range(3)} - {""},
        ]
        if body or chance.random() < 0.5:
            lines.append(f"Content-Length: {len(body) + chance.choice((0, 0, 0, 0, -1, 5))}")
        data = bytearray("\r\n".join(lines).encode("latin-1") + b"\r\n\r\n" + body)
        if chance.random() < 0.3:
            chance.choice(fuzz.DAMAGES)(data, chance, [bytes(data)])
        return bytes(data)

    def round(self) -> None:
        """One connection's life."""
        count = self.chance.randrange(1, LIFE)
        sent = b"".join(self.request() for _ in range(count))
        self.messages += count
        answered = self._say(sent)
        if b"500" in _STATUS.findall(answered):
            raise AssertionError(f"an answer of 500 to {sent[:2000]!r}")
        if b"200" not in _STATUS.findall(
            self._say(b"GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        ):
            raise AssertionError("/health does not answer")

    def _say(self, data: bytes) -> bytes:
        with socket.create_connection(self.place, timeout=10) as link:
            answered = b""
            try:
                link.sendall(data)
                link.shutdown(socket.SHUT_WR)
                while piece := link.recv(1 << 16):
                    answered += piece
            except (ConnectionError, BrokenPipeError):
                pass  # it was cut: that is an answer, too
            return answered
