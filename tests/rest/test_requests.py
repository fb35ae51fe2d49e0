"""The web page's WebSocket on the port of HTTP: the same names, users, bounds and counters."""

from __future__ import annotations

import base64
import json
import re
from pathlib import Path
from typing import Any

import httpx
import pytest

import zenlake
from tests.remote.wsclient import Refused, WebSocket
from tests.rest.conftest import plugins, router, url_of
from tests.waiting import SECONDS, until
from zenlake.remote.messages import FROM_SERVER, decode


def socket(bus: zenlake.Session, headers: dict[str, str] | None = None, **more: Any) -> WebSocket:
    place = url_of(bus).replace("http://", "ws://")
    return WebSocket(place, headers, **{"target": "/@ws", **more})


def watch(client: WebSocket, key: str, cut: int = 100) -> None:
    answer = client.ask("DeclareCutSubscriber", id=1, key=key, origin=2, cut=cut)
    assert answer.kind.name == "Ok", answer


def shown(bus: zenlake.Session, key: str) -> Any:
    (reply,) = bus.get(f"@/{bus.zid()}/router{key}")
    assert reply.ok is not None
    return json.loads(reply.ok.payload.to_bytes())


def test_samples_come_many_at_a_time_and_without_what_is_long(bus: zenlake.Session) -> None:
    with socket(bus, protocols=["zenlake"]) as client:
        assert client.subprotocol == "zenlake"
        watch(client, "seen/**")
        bus.put("seen/long", bytes(101))
        bus.put("seen/short", b"x")
        found: list[Any] = []
        while len(found) < 2:
            found += decode(client.hear(), FROM_SERVER).body["samples"]
        assert [(one.sample.key, one.sample.payload, one.left_out) for one in found] == [
            ("seen/long", b"", 101),
            ("seen/short", b"x", 0),
        ]
        assert shown(bus, "/status/plugins/rest/clients/*")["subscribers"] == {"1": "seen/**"}
        told = httpx.get(f"{url_of(bus)}/metrics", timeout=SECONDS, trust_env=False).text
        assert re.search(r'zenoh_remote_clients{.*at="rest".*} 1\n', told)
        assert client.ask("UndeclareSubscriber", id=1).kind.name == "Ok"
    key = f"@/{bus.zid()}/router/status/plugins/rest/clients/*"
    until(lambda: not list(bus.get(key)), "the client is forgotten")


def test_a_page_that_is_slow_is_told_how_many_it_missed(bus: zenlake.Session) -> None:
    with socket(bus) as client:
        watch(client, "flood/**", 20_000)
        for _ in range(3000):  # more than sockets, the queue and the ring hold
            bus.put("flood/a", bytes(20_000))
        missed = 0
        while not missed:
            missed = decode(client.hear(), FROM_SERVER).body["missed"]


@pytest.mark.parametrize(
    ("headers", "more"),
    [
        ({}, {"host": "evil.example"}),
        ({"origin": "https://evil.example"}, {}),
        ({"origin": "http://127.0.0.1:1"}, {}),
        ({"origin": "null"}, {}),
        ({}, {"target": "/"}),
    ],
)
def test_others_pages_and_other_paths_get_no_socket(
    bus: zenlake.Session, headers: dict[str, str], more: dict[str, str]
) -> None:
    with pytest.raises(Refused, match="403"):
        socket(bus, headers, **more)


def test_a_node_without_a_page_has_no_socket_for_one() -> None:
    with router(plugins(page=False)) as bus, pytest.raises(Refused, match="403"):
        socket(bus)


def test_a_socket_wants_a_token_where_http_does(tmp_path: Path) -> None:
    tokens = tmp_path / "tokens"
    tokens.write_text("ada:0123456789abcd/=\n")
    tokens.chmod(0o600)
    written = base64.urlsafe_b64encode(b"0123456789abcd/=").decode().rstrip("=")
    with router(plugins(tokens_file=str(tokens), max_streams=1)) as bus:
        for wrong in ([], ["zenlake.bearer64.!"], ["zenlake.bearer64.AAAA", "zenlake"]):
            with pytest.raises(Refused, match="403"):
                socket(bus, protocols=wrong)
        assert httpx.get(f"{url_of(bus)}/@ws", timeout=SECONDS, trust_env=False).status_code == 401
        with socket(bus, protocols=[f"zenlake.bearer64.{written}", "zenlake"]) as client:
            assert client.ask("Ping").kind.name == "PingAck"
            with (
                socket(bus, {"authorization": "Bearer 0123456789abcd/="}) as second,
                pytest.raises(Refused, match="too many"),
            ):
                second.hear()


def test_what_runs_beside_the_bus_is_shown(bus: zenlake.Session) -> None:
    assert shown(bus, "")["plugins"] == {
        "rest": {"name": "rest", "path": "zenlake.rest"},
        "storage_manager": {"name": "storage_manager", "path": "zenlake.storage_manager"},
    }
