"""What strangers do to every HTTP port before any login: each port answers them, or ends them."""

from __future__ import annotations

import logging
import select
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Self

import httpx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bench.macro.certificate import settings as certified
from tests.api.sessions import listening
from tests.rest.conftest import plugins, router, url_of
from tests.waiting import SECONDS, until
from zenlake.http.connections import Connections
from zenlake.http.few_lines import LINES
from zenlake.http.limits import HEAD_BYTES, HEADERS, TARGET_BYTES, HttpLimits
from zenlake.http.server import HttpServer
from zenlake.http.service import HttpService
from zenlake.http.sockets import open_socket
from zenlake.remote import RemoteApiService
from zenlake.supervise.requests import LIMITS, HttpPage
from zenlake.supervise.status_server import StatusServer

HOST = b"Host: localhost\r\n"
TWO_LENGTHS = b"Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n"
LARGE = 32 << 20
LOGS = ("asyncio", "uvicorn.error", "zenlake.http", "zenlake.rest", "zenlake.remote")
ENDLESS = 64 << 20
"""Bytes that nobody reads to the end."""


@dataclass
class Port:
    """A port, and what it says of who is connected."""

    port: int
    connections: Connections

    def connect(self, source: str = "127.0.0.1") -> socket.socket:
        return socket.create_connection(
            ("127.0.0.1", self.port), timeout=SECONDS, source_address=(source, 0)
        )

    def ask(self, data: bytes, source: str = "127.0.0.1") -> bytes:
        """Send, and read to the end."""
        with self.connect(source) as link:
            try:
                for start in range(0, len(data), 1 << 14):
                    link.sendall(data[start : start + (1 << 14)])
            except ConnectionError:
                pass  # it was refused before all was sent
            return heard(link)

    def is_well(self) -> bool:
        answer = self.ask(b"GET /health HTTP/1.1\r\n" + HOST + b"Connection: close\r\n\r\n")
        return answer.split(b" ")[1] in (b"200", b"426")


def heard(link: socket.socket) -> bytes:
    """All that comes until the connection ends."""
    parts: list[bytes] = []
    try:
        while data := link.recv(1 << 16):
            parts.append(data)
    except ConnectionError:
        pass
    return b"".join(parts)


async def application(scope: Any, receive: Any, send: Any) -> None:
    """Answer at once, `/large` with much; `/body` when a body has come."""
    while scope["path"] == "/body" and (await receive())["more_body"]:
        pass
    body = b"x" * LARGE if scope["path"] == "/large" else b"well\n"
    head = [(b"content-length", b"%d" % len(body))]
    await send({"type": "http.response.start", "status": 200, "headers": head})
    await send({"type": "http.response.body", "body": body})


PAGES = {"/health": lambda: HttpPage(200, "text/plain", "well\n")}


def serving(limits: HttpLimits, certificate: tuple[str, str] | None = None) -> HttpServer:
    connections = Connections(limits)
    return HttpServer(application, open_socket("127.0.0.1", 0), "test", connections, certificate)


@pytest.fixture(scope="module")
def ports() -> Iterator[dict[str, Port]]:
    """The ports as they are configured when nobody says anything."""
    status = StatusServer("127.0.0.1", 0, PAGES)
    with (
        router(plugins()) as rest,
        listening(plugins='{"remote_api": {"websocket_port": "127.0.0.1:0"}}') as remote,
    ):
        service = remote.runtime.services["zenlake.remote"]
        assert isinstance(service, RemoteApiService)
        found = {"status": Port(status.port, status.connections)}
        for name, url, services in (
            ("rest", url_of(rest), rest.runtime.services["zenlake.rest"]),
            ("remote", service.url, service),
        ):
            assert isinstance(services, HttpService)
            server = services._serving
            assert server is not None
            found[name] = Port(int(url.rpartition(":")[2]), server.connections)
        yield found
    status.close()


@pytest.fixture(params=["rest", "remote", "status"])
def port(request: pytest.FixtureRequest, ports: dict[str, Port]) -> Port:
    return ports[request.param]


@pytest.mark.parametrize(
    ("codes", "reason", "data"),
    [
        ((431,), "head", b"GET / HTTP/1.1\r\n" + HOST + b"X: " + b"a" * 300_000),
        ((431,), "head", b"GET / HTTP/1.1\r\n" + HOST + b"X: y\r\n" * 20_000),
        ((431,), "head", b"GET / HTTP/1.1\r\n" + HOST + b"X: y\r\n" * HEADERS + b"\r\n"),
        ((414,), "head", b"GET /" + b"a" * (HEAD_BYTES + TARGET_BYTES)),
        ((414, 431), "head", b"GET /" + b"a" * TARGET_BYTES + b" HTTP/1.1\r\n" + HOST + b"\r\n"),
        ((400,), "malformed", b"GET / HTTP/1.1\r\n" + HOST + b"Host: evil\r\n\r\n"),
        ((400,), "malformed", b"PUT / HTTP/1.1\r\n" + HOST + TWO_LENGTHS),
        ((400,), "malformed", b"GET / HTTP/1.1\n" + HOST + b"\n"),
        ((400,), "malformed", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"),
        ((400,), "malformed", b"GET http://x:999999/ HTTP/1.1\r\nHost: x:999999\r\n\r\n"),
        ((501,), "method", b"BREW / HTTP/1.1\r\n" + HOST + b"\r\n"),
    ],
    ids=[
        "one long header", "small headers", "too many headers", "endless path", "long path",
        "two hosts", "two lengths", "bare line feeds", "no http", "no port", "no method",
    ],
)  # fmt: skip
def test_a_head_that_is_too_much_or_ambiguous_is_refused_with_a_sentence(
    port: Port, codes: tuple[int, ...], reason: str, data: bytes
) -> None:
    before = port.connections.refused[reason]
    answer = port.ask(data)
    assert answer.split(b" ", 2)[1] in [b"%d" % code for code in codes]
    assert len(answer.rpartition(b"\r\n\r\n")[2].split()) > 4
    until(lambda: port.connections.refused[reason] == before + 1)
    assert port.is_well()


def test_a_whole_url_is_answered_as_its_path(port: Port) -> None:
    for url, path in (
        ("http://localhost", "/"),
        ("http://localhost?a", "/?a"),
        ("HTTP://localhost/health", "/health"),
    ):
        one, other = (
            port.ask(
                f"GET {target} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode()
            )
            for target in (url, path)
        )
        assert one.startswith(b"HTTP/1.1 ")
        assert one == other


class Written(logging.Handler):
    """What the server and its event loop write into the log."""

    def __init__(self) -> None:
        super().__init__()
        self.records: list[logging.LogRecord] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.records.append(record)

    def __enter__(self) -> Self:
        for name in LOGS:
            logging.getLogger(name).addHandler(self)
        return self

    def __exit__(self, *_: object) -> None:
        for name in LOGS:
            logging.getLogger(name).removeHandler(self)


METHODS = st.sampled_from(
    ["GET", "HEAD", "PUT", "OPTIONS", "TRACE", "BREW", "get", "X" * 32, "M-SEARCH"]
)
HOSTS = st.sampled_from(
    ["localhost", "localhost:8000", "[::1]", "[::1", "xn--\x80", "a..b", "\xff", ""]
)
PATHS = st.sampled_from(
    ["", "/", "?", "/health", "/a?b", "//", "*", "/%zz", "/\xff", ":1", ":99999"]
)
ODD = st.text(st.characters(max_codepoint=255), max_size=12)
NAMES = st.sampled_from(
    ["Host", "Origin", "Referer", "Authorization", "Connection", "Sec-WebSocket-Protocol",
     "Sec-WebSocket-Extensions", "Sec-WebSocket-Key", "Expect", "Content-Length", "Accept"]
)  # fmt: skip
HEADERS_OF_A_SOCKET = (
    "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
    "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n"
)


@settings(suppress_health_check=list(HealthCheck), deadline=None)
@given(
    st.lists(
        st.tuples(METHODS, st.sampled_from(["", "http://"]), HOSTS | ODD, PATHS | ODD,
                  st.booleans(), st.lists(st.tuples(NAMES, ODD), max_size=2)),
        min_size=1, max_size=4,
    )
)  # fmt: skip
def test_no_head_fails_in_the_server(port: Port, heads: list[Any]) -> None:
    data = b""
    for method, scheme, host, path, is_socket, more in heads:
        lines = [f"{method} {scheme and scheme + host}{path} HTTP/1.1", f"Host: {host}"]
        lines += [f"{name}: {value}" for name, value in more]
        end = HEADERS_OF_A_SOCKET if is_socket else ""
        data += ("\r\n".join(lines) + f"\r\n{end}\r\n").encode("latin-1")
    with Written() as written, port.connect() as link:
        link.sendall(data)
        link.shutdown(socket.SHUT_WR)
        answer = heard(link)
    assert b"HTTP/1.1 500" not in answer
    assert port.connections.refused["error"] == 0
    assert [one.getMessage() for one in written.records] == []


def test_a_header_that_no_websocket_can_have_is_refused(ports: dict[str, Port]) -> None:
    port = ports["remote"]
    before = port.connections.refused["malformed"]
    for host in (b"\xff", b"xn--\xff"):
        head = b"GET / HTTP/1.1\r\nHost: " + host + b"\r\n" + HEADERS_OF_A_SOCKET.encode()
        assert port.ask(head + b"\r\n").startswith(b"HTTP/1.1 400 ")
    assert port.connections.refused["malformed"] == before + 2
    until(lambda: port.connections.places.taken == 0)


def test_an_error_of_our_own_is_answered_counted_and_written_seldom() -> None:
    limits = replace(LIMITS, target_bytes="x")  # type: ignore[arg-type]
    status = StatusServer("127.0.0.1", 0, PAGES, Connections(limits))
    with Written() as written:
        for server in (serving(limits), status):
            port = Port(server.port, server.connections)
            try:
                for _ in range(LINES):
                    answer = port.ask(b"GET / HTTP/1.1\r\n" + HOST + b"\r\n")
                    assert answer.startswith(b"HTTP/1.1 500 ")
                assert port.connections.refused["error"] == LINES
            finally:
                server.close()
    assert 0 < len(written.records) <= LINES


def test_a_head_without_an_end_ends_soon(port: Port) -> None:
    with port.connect() as link:
        link.sendall(b"GET / HTTP/1.1\r\n" + HOST)
        header = b"X: " + b"y" * 10_000 + b"\r\n"
        with pytest.raises(ConnectionError):
            link.sendall(header * (ENDLESS // len(header)))
    until(lambda: port.connections.memory.taken == 0)
    assert port.is_well()


#: Times that no client of these tests exceeds, however busy the machine is.
SLOW = HttpLimits(
    first_byte_seconds=SECONDS,
    head_seconds=SECONDS,
    keep_alive_seconds=SECONDS,
    closing_seconds=SECONDS,
    stalled_seconds=SECONDS,
    connections=8,
    buffered_bytes=1 << 17,
)
QUICK = replace(
    SLOW,
    first_byte_seconds=0.3,
    head_seconds=0.3,
    keep_alive_seconds=0.3,
    closing_seconds=0.3,
    stalled_seconds=0.3,
)


@contextmanager
def one_of(kind: str, limits: HttpLimits) -> Iterator[Port]:
    """A server of a node or of a status, with limits."""
    found: HttpServer | StatusServer
    if kind == "node":
        found = serving(limits)
    else:
        mine = replace(
            LIMITS,
            head_seconds=limits.head_seconds,
            closing_seconds=limits.closing_seconds,
            connections=limits.connections,
        )
        found = StatusServer("127.0.0.1", 0, PAGES, Connections(mine))
    try:
        yield Port(found.port, found.connections)
    finally:
        found.close()


@pytest.fixture(params=["node", "status"])
def quick(request: pytest.FixtureRequest) -> Iterator[Port]:
    """A server whose times are short, and whose places are few."""
    with one_of(request.param, QUICK) as port:
        yield port


def first_answer(ask: Callable[[], bytes]) -> bytes:
    """Ask a server whose times are short until it answers.

    It ends a connection without an answer if this process gets no turn to say a word in time.
    """
    answers: list[bytes] = []

    def is_answered() -> bool:
        answers.append(ask())
        return bool(answers[-1])

    until(is_answered)
    return answers[-1]


def test_who_says_nothing_is_ended(quick: Port) -> None:
    with quick.connect() as link:
        assert heard(link) == b""
    until(lambda: quick.connections.places.taken == 0)


def test_who_stops_within_a_head_is_told_so(quick: Port) -> None:
    assert first_answer(lambda: quick.ask(b"GET / HTTP/1.1\r\n")).startswith(b"HTTP/1.1 408 ")
    until(lambda: quick.connections.refused["slow"] == 1)


def test_a_byte_now_and_then_wins_no_time(quick: Port) -> None:
    def drip(link: socket.socket, over: threading.Event) -> None:
        with suppress(OSError):
            link.sendall(b"GET / HTTP/1.1\r\nX: ")
            while not over.wait(0.02):
                link.sendall(b"a")

    def dripped() -> bytes:
        over = threading.Event()
        with quick.connect() as link:
            dripping = threading.Thread(target=drip, args=(link, over))
            dripping.start()
            try:
                return heard(link)
            finally:
                over.set()
                dripping.join()

    assert first_answer(dripped).startswith(b"HTTP/1.1 408 ")


@pytest.mark.parametrize("kind", ["node", "status"])
def test_connections_of_one_address_leave_room_for_another(kind: str) -> None:
    with one_of(kind, SLOW) as port:
        connections = port.connections
        mine = [port.connect() for _ in range(connections.limits.connections)]
        try:
            until(lambda: connections.refused["address"] > 0)
            asked = b"GET /health HTTP/1.1\r\n" + HOST + b"Connection: close\r\n\r\n"
            assert port.ask(asked, "127.0.0.2").startswith(b"HTTP/1.1 200 ")
        finally:
            for link in mine:
                link.close()
        until(lambda: connections.places.taken == 0)


@pytest.fixture
def node() -> Iterator[Port]:
    """A server that waits for a whole head, and for nothing else."""
    limits = replace(QUICK, first_byte_seconds=SECONDS, head_seconds=SECONDS)
    with one_of("node", limits) as port:
        yield port


def test_who_asks_nothing_more_is_ended(node: Port) -> None:
    answer = node.ask(b"GET / HTTP/1.1\r\n" + HOST + b"\r\n")
    assert answer.endswith(b"well\n")


def test_requests_that_come_at_once_are_answered_one_after_the_other() -> None:
    request = b"GET / HTTP/1.1\r\n" + HOST
    with one_of("node", SLOW) as port:
        answer = port.ask((request + b"\r\n") * 499 + request + b"Connection: close\r\n\r\n")
    assert answer.count(b"well\n") == 500


def test_who_does_not_take_an_answer_is_ended(node: Port) -> None:
    with node.connect() as link:
        link.sendall(b"GET /large HTTP/1.1\r\n" + HOST + b"\r\n")
        until(lambda: node.connections.refused["slow"] == 1)
        until(lambda: node.connections.places.taken == 0)


def test_what_waits_for_a_client_is_held_until_it_goes() -> None:
    server = serving(HttpLimits())
    answers = server.connections.answers
    try:
        with Port(server.port, server.connections).connect() as link:
            link.sendall(b"GET /large HTTP/1.1\r\n" + HOST + b"\r\n")
            until(lambda: LARGE // 2 < answers.taken <= LARGE + 1000)
        until(lambda: answers.taken == 0)
    finally:
        server.close()


def test_who_takes_a_long_answer_gets_all_of_it() -> None:
    # The other times are over meanwhile, or soon after.
    limits = replace(QUICK, first_byte_seconds=SECONDS, stalled_seconds=SECONDS)
    with one_of("node", limits) as port:
        answer = port.ask(b"GET /large HTTP/1.1\r\n" + HOST + b"Connection: close\r\n\r\n")
    assert answer.count(b"x") == LARGE


def test_a_body_that_nobody_reads_is_not_read_for_ever(node: Port) -> None:
    lengths: list[Callable[[], bytes]] = [
        partial(bytes, 16),
        partial(bytes, 1 << 20),
    ]
    for body in lengths:
        head = b"PUT / HTTP/1.1\r\n" + HOST + b"Content-Length: 100000000\r\n\r\n"
        assert node.ask(head + body()).startswith(b"HTTP/1.1 200 ")
    until(lambda: node.connections.places.taken == 0)


def test_a_damaged_body_is_refused_while_it_is_read(node: Port) -> None:
    head = b"PUT /body HTTP/1.1\r\n" + HOST + b"Transfer-Encoding: chunked\r\n\r\n"
    assert node.ask(head + b"3\r\nabc\r\nxyz\r\n").startswith(b"HTTP/1.1 400 ")
    assert node.connections.refused["malformed"] == 1


def test_heads_that_are_not_whole_are_bounded_together(node: Port) -> None:
    links = [node.connect() for _ in range(3)]
    try:
        for link in links:
            link.sendall(b"GET / HTTP/1.1\r\nX: " + b"a" * 50_000)
        ended, _, _ = select.select(links, [], [], SECONDS)
        assert heard(ended[0]).startswith(b"HTTP/1.1 503 ")
    finally:
        for link in links:
            link.close()
    until(lambda: node.connections.memory.taken == 0)


def test_a_tls_handshake_that_never_begins_is_ended(tmp_path: Path) -> None:
    certified(tmp_path)
    pair = (str(tmp_path / "listen_certificate"), str(tmp_path / "listen_private_key"))
    server = serving(QUICK, pair)
    try:
        port = Port(server.port, server.connections)
        with port.connect() as link:
            assert heard(link) == b""
        until(lambda: port.connections.refused["tls"] == 1)
        until(lambda: port.connections.places.taken == 0)
    finally:
        server.close()


def test_a_tls_client_that_does_not_end_is_ended(tmp_path: Path) -> None:
    certified(tmp_path)
    pair = (str(tmp_path / "listen_certificate"), str(tmp_path / "listen_private_key"))
    server = serving(replace(QUICK, first_byte_seconds=SECONDS), pair)
    context = ssl.create_default_context(cafile=str(tmp_path / "root_ca_certificate"))
    try:
        port = Port(server.port, server.connections)
        link = context.wrap_socket(port.connect(), server_hostname="localhost")
        with link:
            link.sendall(b"GET / HTTP/1.1\r\n" + HOST + b"\r\n")
            assert link.recv(1 << 16).startswith(b"HTTP/1.1 200 ")
            # It says nothing more, and does not answer that the server closes.
            until(lambda: port.connections.places.taken == 0, seconds=20.0)
    finally:
        server.close()


def test_bodies_that_never_come_keep_nobody_out() -> None:
    with router(plugins(max_requests=2)) as bus:
        url = url_of(bus)
        port = int(url.rpartition(":")[2])
        head = b"PUT /demo/a HTTP/1.1\r\n" + HOST + b"Content-Length: 9\r\n\r\nhalf"
        links = [socket.create_connection(("127.0.0.1", port)) for _ in range(4)]
        try:
            for link in links:
                link.sendall(head)
            server: Any = bus.runtime.services["zenlake.rest"]
            until(lambda: server._serving.connections.memory.taken >= 4 * len(b"half"))
            with httpx.Client(base_url=url, timeout=SECONDS, trust_env=False) as web:
                assert web.get("/demo/**").status_code == 200
                assert web.put("/demo/a", content="x").status_code == 200
                metrics = web.get("/metrics").text
                shown = web.get("/status").json()["services"]
        finally:
            for link in links:
                link.close()
        assert "zenoh_http_connections{" in metrics
        assert "zenoh_http_buffered_bytes{" in metrics
        assert shown["status/plugins/rest/connections"]["most"] <= 4096


def test_a_websocket_agrees_to_no_compression(ports: dict[str, Port]) -> None:
    # A few bytes of a compressed message can become any number.
    with ports["remote"].connect() as link:
        link.sendall(
            b"GET / HTTP/1.1\r\n" + HOST + b"Upgrade: websocket\r\nConnection: Upgrade\r\n"
            b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n"
            b"Sec-WebSocket-Extensions: permessage-deflate\r\n\r\n"
        )
        answer = link.recv(1 << 16).lower()
    assert answer.startswith(b"http/1.1 101 ")
    assert b"extensions" not in answer
