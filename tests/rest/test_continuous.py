"""Views and alerts over HTTP: to the socket of a lake, with the rights of who asks."""

from __future__ import annotations

import json
import threading
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.remote.wsclient import WebSocket
from tests.rest.conftest import plugins, router, url_of
from tests.waiting import SECONDS, until
from zenlake.admin.reload import change
from zenlake.agents.asking import Agent
from zenlake.errors import LocalError
from zenlake.keys.rights import ALL_RIGHTS, Rights
from zenlake.lake.model.owner import router_of
from zenlake.lake.service.local_server import LocalCaller, LocalServer
from zenlake.remote.fields import RemoteEncoding
from zenlake.rest.continuous import definition_of, is_continuous
from zenlake.rest.lake_requests import AT_ONCE

SQL = "SELECT key, count(*) AS n FROM samples GROUP BY key"


def test_a_put_is_sql_or_json_that_says_more() -> None:
    asked = definition_of("@lake/views/busy", SQL.encode(), "text/plain")
    assert asked == {"action": "create", "kind": "view", "name": "busy", "sql": SQL}
    more = json.dumps({"sql": SQL, "for": "10s", "history": True}).encode()
    asked = definition_of("@lake/alerts/low", more, "application/json")
    assert asked == {
        "action": "create", "kind": "alert", "name": "low", "sql": SQL, "for": "10s",
        "history": True,
    }  # fmt: skip
    assert not is_continuous("@lake/sql")
    assert not is_continuous("lake/views/a")


@pytest.mark.parametrize(
    ("body", "encoding", "why"),
    [
        (b"{", "application/json", "JSON with the member sql"),
        (b"[" * 60_000, "application/json", "JSON with the member sql"),
        (b"[]", "application/json", "JSON like"),
        (b'{"sql": 1}', "application/json", "JSON like"),
        (b'{"sql": "SELECT 1", "action": "drop"}', "application/json", "'action' is no member"),
        (b"\xff", None, "send SQL"),
        (b"x" * 70_000, None, "at most"),
    ],
)
def test_what_is_no_definition_is_told_so(body: bytes, encoding: str | None, why: str) -> None:
    with pytest.raises(LocalError, match=why):
        definition_of("@lake/views/busy", body, encoding)


def test_they_reach_the_lake_of_the_folder_and_what_it_says_comes_back(tmp_path: Path) -> None:
    heard: list[dict[str, Any]] = []

    def continuous(request: dict[str, Any], visitor: LocalCaller) -> None:
        heard.append(request)
        if request["name"] == "bad":
            raise LocalError("there is 'bad' already")
        visitor.fact({"name": request["name"], "state": "running"})

    with (
        router(plugins(lake=str(tmp_path))) as bus,
        httpx.Client(base_url=url_of(bus), timeout=SECONDS, trust_env=False) as web,
    ):
        refused = web.put("/@lake/views/busy", content=SQL)
        assert refused.status_code == 503
        assert "zenlake up" in refused.text
        door = LocalServer(tmp_path)
        door.handle("continuous", continuous)
        try:
            made = web.put("/@lake/views/busy", content=SQL)
            assert (made.status_code, made.json()) == (200, {"name": "busy", "state": "running"})
            assert web.delete("/@lake/views/busy").status_code == 200
            bad = web.put("/@lake/alerts/bad", content=SQL)
            assert (bad.status_code, bad.text) == (400, "there is 'bad' already\n")
            assert [(one["action"], one["kind"], one["name"]) for one in heard] == [
                ("create", "view", "busy"), ("drop", "view", "busy"), ("create", "alert", "bad"),
            ]  # fmt: skip
            # Never as the operator: for whoever asks without credentials, who may do everything.
            assert [one["as"] for one in heard] == [{"user": None, **ALL_RIGHTS.plain()}] * 3
            # The rights are those that this router tells of, every second and with each request.
            assert {router_of(one) for one in heard} == {str(bus.zid())}
            foreign = {"origin": "https://evil.example"}
            assert web.delete("/@lake/views/busy", headers=foreign).status_code == 403
        finally:
            door.close()


@pytest.mark.parametrize("with_users", [True, False])
def test_one_whose_requests_are_slow_leaves_a_place_for_another(
    tmp_path: Path, with_users: bool
) -> None:
    tokens = tmp_path / "tokens"
    words = {"ada": "0123456789abcdef", "bob": "fedcba9876543210"}
    tokens.write_text("".join(f"{user}:{word}\n" for user, word in words.items()))
    tokens.chmod(0o600)
    heard: list[str] = []
    go = threading.Event()

    def continuous(request: dict[str, Any], visitor: LocalCaller) -> None:
        heard.append(request["name"])
        if request["name"] == "slow":
            assert go.wait(60)
        visitor.fact({})

    door = LocalServer(tmp_path)
    door.handle("continuous", continuous)
    asked = {"tokens_file": str(tokens)} if with_users else {}
    with ExitStack() as closing:
        closing.callback(door.close)
        closing.callback(go.set)
        bus = closing.enter_context(router(plugins(lake=str(tmp_path), **asked)))

        def client(address: str, user: str) -> httpx.Client:
            made = httpx.Client(
                base_url=url_of(bus),
                timeout=60,
                transport=httpx.HTTPTransport(local_address=address),
            )
            if with_users:
                made.headers["authorization"] = f"Bearer {words[user]}"
            return closing.enter_context(made)

        greedy = client("127.0.0.1", "ada")
        # Users are told apart wherever they come from, and addresses where there are no users.
        again = client("127.0.0.2" if with_users else "127.0.0.1", "ada")
        other = client("127.0.0.1" if with_users else "127.0.0.2", "bob")
        waiting: list[threading.Thread] = []

        def begin(web: httpx.Client) -> None:
            before = len(heard)
            put = partial(web.put, "/@lake/views/slow", content=SQL)
            waiting.append(threading.Thread(target=put))
            waiting[-1].start()
            until(lambda: len(heard) > before, "the lake hears of it")

        share = AT_ONCE - AT_ONCE // 4
        for _ in range(share):
            begin(greedy)
        for web in (greedy, again):
            busy = web.put("/@lake/views/busy", content=SQL)
            assert (busy.status_code, busy.headers["retry-after"]) == (503, "1")
            assert busy.text == f"the lake works on {share} requests of yours; try again\n"
        assert other.put("/@lake/views/quick", content=SQL).status_code == 200
        assert other.delete("/@lake/views/quick").status_code == 200
        assert heard[share:] == ["quick", "quick"]
        begin(other)
        full = other.put("/@lake/views/busy", content=SQL)
        assert (full.status_code, full.text) == (
            503, f"the lake works on {AT_ONCE} requests; try again\n"
        )  # fmt: skip
        go.set()
        for thread in waiting:
            thread.join()


def test_a_user_needs_the_right_to_put_that_key(tmp_path: Path) -> None:
    tokens = tmp_path / "tokens"
    tokens.write_text("ada:0123456789abcdef\nbob:fedcba9876543210\n")
    tokens.chmod(0o600)
    rules = {
        "enabled": True,
        "default_permission": "deny",
        "rules": [
            {"id": "all", "key_exprs": ["@lake/**"], "permission": "allow",
             "messages": ["put", "delete", "query", "reply"]},
            {"id": "look", "key_exprs": ["@lake/**"], "permission": "allow",
             "messages": ["query", "reply"]},
        ],
        "subjects": [{"id": "ada", "usernames": ["ada"]}, {"id": "bob", "usernames": ["bob"]}],
        "policies": [
            {"rules": ["all"], "subjects": ["ada"]},
            {"rules": ["look"], "subjects": ["bob"]},
        ],
    }  # fmt: skip
    door = LocalServer(tmp_path)
    door.handle("continuous", lambda request, visitor: visitor.fact({"dropped": request["name"]}))
    try:
        with (
            router(
                plugins(lake=str(tmp_path), tokens_file=str(tokens)),
                access_control=json.dumps(rules),
            ) as bus,
            httpx.Client(base_url=url_of(bus), timeout=SECONDS, trust_env=False) as web,
        ):
            ada = {"authorization": "Bearer 0123456789abcdef"}
            bob = {"authorization": "Bearer fedcba9876543210"}
            assert web.delete("/@lake/views/busy").status_code == 401
            assert web.delete("/@lake/views/busy", headers=bob).status_code == 403
            assert web.put("/@lake/views/busy", content=SQL, headers=bob).status_code == 403
            assert web.get("/@lake/views/**", headers=bob).status_code == 200
            assert web.delete("/@lake/views/busy", headers=ada).json() == {"dropped": "busy"}
    finally:
        door.close()


def test_no_other_way_in_reaches_the_lake(tmp_path: Path) -> None:
    heard: list[dict[str, Any]] = []
    lake = LocalServer(tmp_path)
    lake.handle("continuous", lambda request, visitor: heard.append(request))
    try:
        with router(plugins(lake=str(tmp_path))) as bus:
            place = url_of(bus).replace("http://", "ws://")
            seen = []
            with (
                bus.declare_subscriber("@lake/**", lambda sample: seen.append(sample.kind)),
                WebSocket(place, target="/@ws", protocols=["zenlake"]) as page,
            ):
                page.tell(
                    "Put", key="@lake/views/page", payload=SQL.encode(), qos=0xA5,
                    encoding=RemoteEncoding(0, ""), attachment=None, timestamp=None,
                )  # fmt: skip
                bus.put("@lake/views/bus", SQL)
                bus.delete("@lake/views/bus")
                Agent(bus).put("@lake/alerts/agent", json.dumps({"sql": SQL}))
                Agent(bus).delete("@lake/alerts/agent")
                assert page.ask("Ping").kind.name == "PingAck"
                until(lambda: len(seen) == 5, "all were published")
            assert heard == []
    finally:
        lake.close()


def test_rules_that_change_while_it_runs_are_obeyed_and_told_to_the_lake(tmp_path: Path) -> None:
    tokens = tmp_path / "tokens"
    tokens.write_text("ada:0123456789abcdef\n")
    tokens.chmod(0o600)
    told: list[dict[str, Any]] = []
    made: list[dict[str, Any]] = []
    tellers: set[str] = set()

    def rights(request: dict[str, Any], visitor: LocalCaller) -> None:
        tellers.add(router_of(request))
        told.extend(request["users"])
        visitor.fact({"owners": ["ada", "gone", None]})

    def continuous(request: dict[str, Any], visitor: LocalCaller) -> None:
        tellers.add(router_of(request))
        made.append(request["as"])
        visitor.fact({})

    def without(*denied: str) -> str:
        rule = {"id": "no", "key_exprs": denied, "permission": "deny", "messages": ["put", "query"]}
        return json.dumps(
            {
                "enabled": True, "default_permission": "allow", "rules": [rule],
                "subjects": [{"id": "ada", "usernames": ["ada"]}],
                "policies": [{"rules": ["no"], "subjects": ["ada"]}],
            }
        )  # fmt: skip

    def last(user: str | None) -> dict[str, Any]:
        return next((one for one in reversed(told) if one["user"] == user), {})

    def is_told(denied: str) -> bool:
        return not Rights.of(last("ada")).writable.lets(denied)

    lake = LocalServer(tmp_path)
    lake.handle("rights", rights)
    lake.handle("continuous", continuous)
    try:
        with (
            router(
                plugins(lake=str(tmp_path), tokens_file=str(tokens)),
                access_control=without("secret/**"),
            ) as bus,
            httpx.Client(base_url=url_of(bus), timeout=SECONDS, trust_env=False) as web,
        ):
            web.headers["authorization"] = "Bearer 0123456789abcdef"
            until(lambda: "readable" in last("ada"), "the lake is told of its owners")
            kept = Rights.of(last("ada"))
            assert not kept.readable.lets("secret/a")
            assert not kept.writable.lets("secret/a")
            assert kept.readable.lets("robot/a")
            # Who can log in no more has no rights at all, whatever the rules allow.
            assert last("gone") == {"user": "gone"}
            assert last(None) == {"user": None}
            assert web.put("/@lake/views/busy", content=SQL).status_code == 200
            assert made == [last("ada")]
            assert tellers == {str(bus.zid())}
            for denied in ("view/**", "view/busy/**", "@lake/views/*"):
                change(bus.runtime, "access_control", without("secret/**", denied))
                refused = web.put("/@lake/views/busy", content=SQL)
                assert (refused.status_code, "for user 'ada'" in refused.text) == (403, True)
                until(partial(is_told, denied), "the lake is told of the change")
            assert len(made) == 1
    finally:
        lake.close()
