"""Requests that nobody would write, made from our own description and from nothing at all."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from typing import Any

import httpx
import hypothesis
import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import zenlake
from tests.remote.wsclient import WebSocket
from tests.rest.conftest import plugins, router, url_of
from tests.waiting import SECONDS
from zenlake.http.few_lines import LINES
from zenlake.rest.openapi import document

SEARCHED = settings(
    max_examples=min(hypothesis.settings().max_examples, 2000) // 4,
    suppress_health_check=list(HealthCheck),
    deadline=None,
)


SCHEMA = schemathesis.openapi.from_dict(document())
OPERATIONS: list[Any] = [found.ok() for found in SCHEMA.get_all_operations()]  # type: ignore[union-attr]
CASES = st.one_of([operation.as_strategy() for operation in OPERATIONS])


@pytest.fixture(scope="module")
def quick() -> Iterator[str]:
    with router(plugins(timeout=0.2)) as bus:
        yield url_of(bus)


@SEARCHED
@given(CASES)
def test_what_the_description_allows_is_answered_as_it_says(quick: str, case: Any) -> None:
    answer = case.call(base_url=quick)
    known = case.operation.definition.raw["responses"]
    assert str(answer.status_code) in known, (answer.status_code, answer.text)
    if answer.status_code == 200 and "application/json" in answer.headers.get("content-type", [""]):
        assert answer.json() is not None
    assert answer.status_code != 500, answer.text


@SEARCHED
@given(st.binary(max_size=200))
def test_whatever_bytes_come_the_node_goes_on(bus: zenlake.Session, data: bytes) -> None:
    host, _, port = url_of(bus).removeprefix("http://").rpartition(":")
    with socket.create_connection((host, int(port)), timeout=SECONDS) as link:
        link.sendall(b"GET /" + data + b" HTTP/1.1\r\nHost: localhost\r\nX: " + data + b"\r\n\r\n")
        link.shutdown(socket.SHUT_WR)
        while link.recv(1 << 16):
            pass
    with httpx.Client(timeout=SECONDS, trust_env=False) as web:
        assert web.get(f"{url_of(bus)}/health").status_code == 200


@SEARCHED
@given(st.binary(max_size=100), st.booleans())
def test_whatever_frames_and_messages_come_the_node_goes_on(
    bus: zenlake.Session, data: bytes, framed: bool
) -> None:
    place = url_of(bus).replace("http://", "ws://")
    with WebSocket(place, target="/@ws") as client:
        if framed:
            client.say(data)
            assert client.ask("Ping", 0xFFFFFFFF).kind.name == "PingAck"
        else:
            client.socket.sendall(data)
    with WebSocket(place, target="/@ws") as client:
        assert client.ask("Ping").kind.name == "PingAck"


def test_who_hangs_up_before_the_answers_leaves_no_traceback(
    bus: zenlake.Session, caplog: pytest.LogCaptureFixture
) -> None:
    host, _, port = url_of(bus).removeprefix("http://").rpartition(":")
    good = b"GET /demo/** HTTP/1.1\r\nHost: localhost\r\n\r\n"
    for _ in range(20):
        with socket.create_connection((host, int(port)), timeout=SECONDS) as link:
            link.sendall(good * 5 + b"\x00 this is no HTTP\r\n\r\n")
            link.recv(1)
    with httpx.Client(timeout=SECONDS, trust_env=False) as web:
        assert web.get(f"{url_of(bus)}/health").status_code == 200
    lines = [one for one in caplog.records if one.name == "uvicorn.error"]
    assert not [one for one in lines if one.exc_info]
    assert len(lines) <= LINES
