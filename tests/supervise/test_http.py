"""Metrics and health over HTTP: what is answered, and what strangers cannot do."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from tests.supervise.test_status_messages import status
from tests.waiting import SECONDS, until
from zenlake.http.connections import Connections
from zenlake.http.request_head import RequestHead
from zenlake.http.request_parser import RequestParser
from zenlake.supervise import openmetrics
from zenlake.supervise.requests import CONNECTIONS, LIMITS, HttpPage, answer, reply
from zenlake.supervise.status_server import StatusServer, fetch

PAGES = {"/health": lambda: HttpPage(200, "text/plain", "well\n")}
HOSTS = {"localhost", "127.0.0.1", "[::1]"}
ROOT = Path(__file__).resolve().parents[2]


def read(text: str) -> RequestHead | None:
    requests = RequestParser(LIMITS)
    requests.feed(text.encode())
    found = requests.next_event()
    assert found is None or isinstance(found, RequestHead)
    return found


def asked(text: str) -> int:
    request = read(text)
    assert request is not None
    return answer(request, PAGES, HOSTS).code


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("GET /health HTTP/1.1\r\nHost: localhost:7780\r\n\r\n", 200),
        ("GET /health?a=b HTTP/1.0\r\nhost: [::1]:7780\r\n\r\n", 200),
        ("HEAD /health HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", 200),
        ("GET /other HTTP/1.1\r\nHost: localhost\r\n\r\n", 404),
        ("POST /health HTTP/1.1\r\nHost: localhost\r\n\r\n", 405),
        ("GET /health HTTP/1.1\r\nHost: evil.example:7780\r\n\r\n", 403),
        ("GET /health HTTP/1.1\r\nHost: localhost\r\nOrigin: null\r\n\r\n", 403),
        ("GET /health HTTP/1.1\r\nHost: localhost\r\nSec-Fetch-Site: cross-site\r\n\r\n", 403),
    ],
)
def test_a_request_gets_its_page_or_a_reason(text: str, code: int) -> None:
    assert asked(text) == code


def test_an_answer_is_whole_and_a_head_has_no_body() -> None:
    page = HttpPage(503, "text/plain", "the lake is resting\n")
    whole = reply(page)
    assert whole.startswith(b"HTTP/1.1 503 Service Unavailable\r\n")
    assert b"Content-Length: 20\r\n" in whole
    assert whole.endswith(b"\r\n\r\nthe lake is resting\n")
    assert reply(page, body=False) == whole.removesuffix(b"the lake is resting\n")


@pytest.fixture
def server() -> Iterator[StatusServer]:
    found = StatusServer("127.0.0.1", 0, PAGES)
    yield found
    found.close()


def test_a_page_is_fetched(server: StatusServer) -> None:
    assert fetch("127.0.0.1", server.port, "/health") == (200, "well\n")
    assert fetch("127.0.0.1", server.port, "/nothing")[0] == 404


def is_well(server: StatusServer) -> bool:
    try:
        return fetch("127.0.0.1", server.port, "/health", SECONDS)[0] == 200
    except (OSError, ValueError):
        return False


@contextmanager
def silent(count: int, head_seconds: float) -> Iterator[tuple[StatusServer, list[socket.socket]]]:
    """A server, and clients that connect to it and say nothing."""
    limits = replace(LIMITS, head_seconds=head_seconds)
    server = StatusServer("127.0.0.1", 0, PAGES, Connections(limits))
    with ExitStack() as held:
        held.callback(server.close)
        place = ("127.0.0.1", server.port)
        links = [
            held.enter_context(socket.create_connection(place, timeout=SECONDS))
            for _ in range(count)
        ]
        yield server, links


def told(link: socket.socket) -> bytes:
    return b"".join(iter(partial(link.recv, 1 << 16), b""))


def test_connections_that_say_nothing_are_few() -> None:
    more = CONNECTIONS + 5
    with silent(more, SECONDS) as (server, links):
        connections = server.connections
        until(lambda: connections.places.taken + connections.refused["address"] == more)
        assert connections.places.taken == connections.places.most_of_one < CONNECTIONS
        for link in links[connections.places.taken :]:
            assert told(link).startswith(b"HTTP/1.1 503 ")
        for link in links:
            link.close()
        until(lambda: is_well(server))


def test_connections_that_say_nothing_end() -> None:
    with silent(3, 0.5) as (server, links):
        assert [told(link) for link in links] == [b""] * 3
        until(lambda: is_well(server))


def test_a_taken_port_is_an_error(server: StatusServer) -> None:
    with pytest.raises(OSError, match="in use"):
        StatusServer("127.0.0.1", server.port, PAGES)


def test_metrics_are_openmetrics_text_with_one_end() -> None:
    text = openmetrics.openmetrics(status(), {"slow": 3})
    assert 'zenlake_http_refused_total{reason="slow"} 3\n' in text
    assert 'zenlake_part_restarts_total{part="lake"} 1\n' in text
    assert "zenlake_disk_full_in_seconds 259200\n" in text
    both = openmetrics.joined(text, "# TYPE zenoh_uptime_seconds gauge\n# EOF\n")
    assert both.count("# EOF") == 1
    assert both.endswith("gauge\n# EOF\n")
    described = [row.split()[2] for row in text.splitlines() if row.startswith("# TYPE")]
    assert len(described) == len(set(described))


def test_every_series_is_on_the_reference_page() -> None:
    page = ROOT / "docs" / "reference" / "service-metrics.md"
    assert page.read_text("utf-8") == openmetrics.render()
