"""The remote API on a real router: who may connect, what a slow client loses, how it ends."""

from __future__ import annotations

import json
import ssl
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import httpx
import pytest

import zenlake
from bench.macro.certificate import settings
from tests.api.sessions import connected, listening
from tests.remote.wsclient import Refused, WebSocket
from tests.waiting import SECONDS, until
from zenlake.admin.reload import change
from zenlake.errors import LocalError
from zenlake.remote import RemoteApiService
from zenlake.remote.fields import RemoteEncoding
from zenlake.remote.messages import FROM_SERVER, decode

PLAIN = RemoteEncoding(0, "")
BARE: dict[str, Any] = {"attachment": None, "timestamp": None}


def router(keys: dict[str, str] | None = None, **remote: object) -> zenlake.Session:
    remote.setdefault("websocket_port", "127.0.0.1:0")
    plugins = json.dumps({"remote_api": remote})
    return listening(mode='"router"', adminspace__enabled="true", plugins=plugins, **(keys or {}))


def service(session: zenlake.Session) -> RemoteApiService:
    found = session.runtime.services["zenlake.remote"]
    assert isinstance(found, RemoteApiService)
    return found


@pytest.fixture(scope="module")
def bus() -> Iterator[zenlake.Session]:
    with router() as session:
        yield session


def subscribe(client: WebSocket, key: str, id: int = 0) -> None:
    answer = client.ask("DeclareSubscriber", id=id, key=key, origin=2)
    assert answer.kind.name == "Ok", answer


def test_a_client_is_shown_in_the_admin_space_until_it_leaves(bus: zenlake.Session) -> None:
    with WebSocket(service(bus).url) as client:
        uuid = client.ask("Ping").body["uuid"]
        subscribe(client, "shown/**")
        key = f"@/{bus.zid()}/router/status/plugins/remote_api/clients/*"
        (reply,) = bus.get(key)
        assert reply.ok is not None
        shown = json.loads(reply.ok.payload.to_bytes())
        assert (shown["uuid"], shown["subscribers"]) == (uuid, {"0": "shown/**"})
    until(lambda: not service(bus).clients)
    assert list(bus.get(f"@/{bus.zid()}/router/subscriber/shown/**")) == []


def test_what_is_wrong_is_answered_and_the_client_stays(bus: zenlake.Session) -> None:
    with WebSocket(service(bus).url) as client:
        client.say(bytes.fromhex("e307000000"))
        assert decode(client.hear(), FROM_SERVER).body["why"] == "there is no message 99"
        for name, body in (
            ("DeclareSubscriber", {"id": 0, "key": "a//b", "origin": 2}),
            ("DeclareSubscriber", {"id": 0, "key": "a", "origin": 9}),
            ("UndeclareSubscriber", {"id": 77}),
            ("PublisherGetMatchingStatus", {"id": 77}),
        ):
            assert client.ask(name, **body).kind.name == "Error"
        subscribe(client, "a", 1)
        assert "already" in client.ask("DeclareSubscriber", id=1, key="a", origin=2).body["why"]
        client.say("text is ignored")
        client.say(b"\x0e\xff")
        assert client.ask("Ping").kind.name == "PingAck"
        (shown,) = service(bus).clients
        assert shown["refused"] == 7


def test_a_get_that_cannot_be_asked_still_ends(bus: zenlake.Session) -> None:
    with WebSocket(service(bus).url) as client:
        client.tell(
            "Get", id=5, key="a//b", parameters="", payload=None, encoding=None, attachment=None,
            qos=0xAD, settings=0x10, timeout=1000,
        )  # fmt: skip
        ended = decode(client.hear(), FROM_SERVER)
        assert (ended.kind.name, ended.body) == ("QueryResponseFinal", {"id": 5})


def test_a_client_of_the_old_protocol_is_told_so(bus: zenlake.Session) -> None:
    with WebSocket(service(bus).url) as client:
        client.say('{"Control":"OpenSession"}')
        with pytest.raises(Refused, match=r"zenoh-ts 1\.5"):
            client.hear()


def test_a_slow_client_loses_samples_and_nobody_else_does() -> None:
    with (
        router(queue_bytes=100_000) as bus,
        WebSocket(service(bus).url) as slow,
        WebSocket(service(bus).url) as quick,
    ):
        subscribe(slow, "big/**")
        subscribe(quick, "small")

        def dropped() -> int:
            shown = [one["dropped"] for one in service(bus).clients]
            return sum(one.get("sample", 0) for one in shown if isinstance(one, dict))

        def published() -> bool:
            for _ in range(50):
                bus.put("big/a", bytes(50_000))
            return dropped() > 0

        until(published, "nothing was dropped")
        bus.put("small", b"x")
        sample = decode(quick.hear(), FROM_SERVER).body["sample"]
        assert sample.payload == b"x"
        assert all(int(str(one["waiting_bytes"])) < 200_000 for one in service(bus).clients)


def test_what_waits_for_all_clients_together_is_bounded() -> None:
    with router(queue_bytes=1 << 20, max_unsent=1) as bus, ExitStack() as held:
        serving = service(bus)._serving
        assert serving is not None
        answers = serving.connections.answers
        slow = [held.enter_context(WebSocket(service(bus).url)) for _ in range(8)]
        for client in slow:
            subscribe(client, "big/**")
        value = lambda query: query.reply("ask", bytes(900_000))  # noqa: E731
        held.enter_context(bus.declare_queryable("ask", value))
        asking = held.enter_context(WebSocket(service(bus).url))
        bound = answers.most_of_one + (len(slow) + 1) * 1_000_000  # each was given one more

        def is_refused() -> bool:
            for _ in range(20):
                bus.put("big/a", bytes(100_000))
            assert answers.taken < bound
            asking.tell(
                "Get", id=5, key="ask", parameters="", payload=None, encoding=None,
                attachment=None, qos=0xAD, settings=0x10, timeout=int(1000 * SECONDS),
            )  # fmt: skip
            is_value, said = decode(asking.hear(), FROM_SERVER).body["reply"]
            assert is_value or b"hold all the memory" in said[0]
            assert decode(asking.hear(), FROM_SERVER).kind.name == "QueryResponseFinal"
            return not is_value

        until(is_refused)
    until(lambda: answers.taken == 0)


@pytest.mark.parametrize(
    ("headers", "host"),
    [
        ({}, "evil.example"),
        ({"origin": "https://evil.example"}, "127.0.0.1"),
        ({"origin": "null"}, "127.0.0.1"),
    ],
)
def test_pages_of_others_cannot_connect(
    bus: zenlake.Session, headers: dict[str, str], host: str
) -> None:
    with pytest.raises(Refused, match="403"):
        WebSocket(service(bus).url, headers, host=host)


def test_pages_of_this_machine_and_those_configured_can() -> None:
    with router(origins=["https://a.example"]) as bus:
        for origin in ("http://localhost:5173", "https://a.example"):
            with WebSocket(service(bus).url, {"origin": origin}) as client:
                assert client.ask("Ping").kind.name == "PingAck"


def test_users_show_tokens_and_rules_hold(tmp_path: Path) -> None:
    tokens = tmp_path / "tokens"
    token = "0123456789abcdef"
    tokens.write_text(f"ada:{token}\n")
    tokens.chmod(0o600)
    rules = {
        "enabled": True,
        "default_permission": "deny",
        "rules": [
            {
                "id": "r", "key_exprs": ["ok/**"], "permission": "allow",
                "messages": ["put", "declare_subscriber"],
            }
        ],
        "subjects": [{"id": "s", "usernames": ["ada"]}],
        "policies": [{"rules": ["r"], "subjects": ["s"]}],
    }  # fmt: skip
    with router({"access_control": json.dumps(rules)}, tokens_file=str(tokens)) as bus:
        url = service(bus).url
        with pytest.raises(Refused, match="403"):
            WebSocket(url)
        with WebSocket(url, protocols=[f"zenlake.bearer.{token}", "zenlake"]) as client:
            assert client.subprotocol == "zenlake"
        with WebSocket(url, {"authorization": f"Bearer {token}"}) as client:
            subscribe(client, "ok/**")
            denied = client.ask("DeclareSubscriber", id=1, key="no/**", origin=2)
            assert "for user 'ada'" in denied.body["why"]
            client.tell("Put", key="no/a", payload=b"x", encoding=PLAIN, **BARE, qos=0xA5)
            client.tell("Put", key="ok/a", payload=b"y", encoding=PLAIN, **BARE, qos=0xA5)
            assert decode(client.hear(), FROM_SERVER).body["sample"].payload == b"y"
            # Rules that change are obeyed by those who are connected.
            rules["default_permission"] = "allow"
            change(bus.runtime, "access_control", json.dumps(rules))
            assert client.ask("DeclareSubscriber", id=1, key="no/**", origin=2).kind.name == "Ok"
            rules["default_permission"] = "deny"
            change(bus.runtime, "access_control", json.dumps(rules))
            again = client.ask("DeclareSubscriber", id=2, key="no/**", origin=2)
            assert "for user 'ada'" in again.body["why"]


def test_who_may_not_read_the_node_is_not_told_of_its_neighbours() -> None:
    rules = {
        "enabled": True,
        "default_permission": "allow",
        "rules": [
            {"id": "hide", "key_exprs": ["@/**"], "permission": "deny", "messages": ["query"]}
        ],
        "subjects": [{"id": "browsers"}],
        "policies": [{"rules": ["hide"], "subjects": ["browsers"]}],
    }
    with (
        router() as bus,
        connected(bus, mode='"peer"') as peer,
        WebSocket(service(bus).url) as client,
    ):
        until(lambda: client.ask("GetSessionInfo").body["peers"] == [bytes(peer.zid())])
        assert client.ask("GetTransports").kind.name == "ResponseTransports"
        change(bus.runtime, "access_control", json.dumps(rules))
        assert "is denied" in client.ask("GetTransports").body["why"]
        # Its own id everybody is told: it is in the timestamps that it gives.
        told = client.ask("GetSessionInfo").body
        assert told == {"zid": bytes(bus.zid()), "routers": [], "peers": []}


def test_too_many_are_refused() -> None:
    with router(max_clients=1, max_declarations=2) as bus, WebSocket(service(bus).url) as client:
        subscribe(client, "a", 0)
        subscribe(client, "b", 1)
        assert "no more" in client.ask("DeclareSubscriber", id=2, key="c", origin=2).body["why"]
        with WebSocket(service(bus).url) as second, pytest.raises(Refused, match="too many"):
            second.hear()


def test_clients_of_one_address_leave_room_for_others() -> None:
    with router(max_clients=4) as bus, ExitStack() as open_ones:
        url = service(bus).url
        for _ in range(3):
            open_ones.enter_context(WebSocket(url)).ask("Ping")
        with WebSocket(url) as fourth, pytest.raises(Refused, match="too many clients"):
            fourth.hear()


def test_an_open_address_without_users_is_refused() -> None:
    with pytest.raises(LocalError, match="there are no users"):
        router(websocket_port="0.0.0.0:0", __required__=True)


def test_it_speaks_wss_with_a_certificate(tmp_path: Path) -> None:
    settings(tmp_path)
    secure = {
        "certificate_path": str(tmp_path / "listen_certificate"),
        "private_key_path": str(tmp_path / "listen_private_key"),
    }
    with router(secure_websocket=secure) as bus:
        url = service(bus).url
        assert url.startswith("wss://")
        context = ssl.create_default_context(cafile=str(tmp_path / "root_ca_certificate"))
        answer = httpx.get(
            url.replace("wss", "https"), verify=context, timeout=SECONDS, trust_env=False
        )
        assert answer.status_code == 426


def test_clients_are_closed_with_the_node() -> None:
    with router() as bus:
        client = WebSocket(service(bus).url)
        assert client.ask("Ping").kind.name == "PingAck"
        bus.close()
        with client, pytest.raises(Refused, match="the node ends"):
            client.hear()
