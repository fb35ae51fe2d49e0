"""Views and alerts over HTTP: to the socket of a lake, with the rights of who asks."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.rest.conftest import plugins, router, url_of
from tests.waiting import until
from zenlake.errors import LocalError
from zenlake.lake.service.local_server import LocalCaller, LocalServer
from zenlake.rest.continuous import AT_ONCE, definition_of, is_continuous

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
    held = threading.Event()

    def continuous(request: dict[str, Any], visitor: LocalCaller) -> None:
        heard.append(request)
        if request["name"] == "slow":
            held.wait(20)
        if request["name"] == "bad":
            raise LocalError("there is 'bad' already")
        visitor.fact({"name": request["name"], "state": "running"})

    with (
        router(plugins(lake=str(tmp_path))) as bus,
        httpx.Client(base_url=url_of(bus), timeout=20, trust_env=False) as web,
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
            foreign = {"origin": "https://evil.example"}
            assert web.delete("/@lake/views/busy", headers=foreign).status_code == 403
            waiting = [
                threading.Thread(target=web.delete, args=("/@lake/views/slow",))
                for _ in range(AT_ONCE)
            ]
            for one in waiting:
                one.start()
            until(lambda: len(heard) == 3 + AT_ONCE, "the lake hears of all")
            busy = web.delete("/@lake/views/slow")
            assert (busy.status_code, busy.headers["retry-after"]) == (503, "1")
            held.set()
            for one in waiting:
                one.join()
        finally:
            held.set()
            door.close()


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
            httpx.Client(base_url=url_of(bus), timeout=20, trust_env=False) as web,
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
