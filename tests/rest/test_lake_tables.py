"""Typed tables over HTTP: to the socket of a lake, for those who may read all keys."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import httpx

from tests.rest.conftest import plugins, router, url_of
from zenlake.errors import LocalError
from zenlake.lake.service.local_server import LocalCaller, LocalServer

ROBOT = {"format": "robot/${id}/pose"}
RULES = {
    "enabled": True,
    "default_permission": "allow",
    "rules": [
        {"id": "secret", "key_exprs": ["secret/**"], "permission": "deny",
         "messages": ["query", "reply"]},
        {"id": "tables", "key_exprs": ["@lake/tables/**"], "permission": "deny",
         "messages": ["put", "delete"]},
        {"id": "keep", "key_exprs": ["@lake/tables/temp"], "permission": "deny",
         "messages": ["delete"]},
    ],
    "subjects": [{"id": "bob", "usernames": ["bob"]}, {"id": "eve", "usernames": ["eve"]},
                 {"id": "ann", "usernames": ["ann"]}],
    "policies": [
        {"rules": ["secret"], "subjects": ["bob"]},
        {"rules": ["tables"], "subjects": ["eve"]},
        {"rules": ["keep"], "subjects": ["ann"]},
    ],
}  # fmt: skip


def test_a_put_makes_or_changes_a_table_and_a_delete_removes_it(tmp_path: Path) -> None:
    heard: list[dict[str, Any]] = []

    def table(request: dict[str, Any], caller: LocalCaller) -> None:
        heard.append(request)
        if request["name"] == "bad":
            raise LocalError("there is a table 'bad' already")
        caller.fact({"name": request["name"], "rows": 3})

    with (
        router(plugins(lake=str(tmp_path))) as bus,
        httpx.Client(base_url=url_of(bus), timeout=20, trust_env=False) as web,
    ):
        assert web.put("/@lake/tables/pose", json=ROBOT).status_code == 503
        door = LocalServer(tmp_path)
        door.handle("table", table)
        try:
            made = web.put("/@lake/tables/pose", json=ROBOT)
            assert (made.status_code, made.json()) == (200, {"name": "pose", "rows": 3})
            assert web.delete("/@lake/tables/pose").status_code == 200
            refused = web.put("/@lake/tables/bad", json=ROBOT)
            assert (refused.status_code, "already" in refused.text) == (400, True)
            for body, why in (
                (b"{", "send JSON"),
                (b"[]", "send an object"),
                (b" " * 70_000, "at most"),
                (b'{"from": 7}', "the name of a table"),
                (b'{"from": "temp", "format": "a/${b}"}', "the name of a table"),
                (b'{"merge": "**"}', "the name of a table"),
                (b'{"merge": "a//b"}', "a chunk is empty"),
                (b"[" * 60_000, "send JSON"),
                (
                    b'{"format": "robot/${id}/pose", "decoder": "os:abort"}',
                    "a decoder is a program",
                ),
            ):
                odd = web.put("/@lake/tables/pose", content=body)
                assert (odd.status_code, why in odd.text) == (400, True)
            assert web.put("/@lake/tables/at", json={"from": "pose"}).status_code == 200
            both = {"merge": "temp", "format": "home/${room}/${what}"}
            for joined in ({"merge": "temp"}, both):
                assert web.put("/@lake/tables/at", json=joined).status_code == 200
        finally:
            door.close()
    assert heard == [
        {"do": "table", "action": "put", "name": "pose", "table": ROBOT},
        {"do": "table", "action": "rm", "name": "pose"},
        {"do": "table", "action": "put", "name": "bad", "table": ROBOT},
        {"do": "table", "action": "rename", "name": "pose", "to": "at"},
        {"do": "table", "action": "merge", "name": "at", "other": "temp", "format": None},
        {"do": "table", "action": "merge", "name": "at", "other": "temp",
         "format": "home/${room}/${what}"},
    ]  # fmt: skip


def test_a_user_from_whom_keys_are_kept_makes_no_table(tmp_path: Path) -> None:
    tokens = tmp_path / "tokens"
    tokens.write_text(
        "ada:0123456789abcdef\nbob:fedcba9876543210\neve:00000000ffffffff\nann:1111111100000000\n"
    )
    tokens.chmod(0o600)
    door = LocalServer(tmp_path)
    door.handle("table", lambda request, caller: caller.fact({"name": request["name"]}))
    try:
        with (
            router(
                plugins(lake=str(tmp_path), tokens_file=str(tokens)),
                access_control=json.dumps(RULES),
            ) as bus,
            httpx.Client(base_url=url_of(bus), timeout=20, trust_env=False) as web,
        ):
            for token, status in (
                ("0123456789abcdef", 200),
                ("fedcba9876543210", 403),
                ("00000000ffffffff", 403),
            ):
                who = {"authorization": f"Bearer {token}"}
                put = web.put("/@lake/tables/pose", json=ROBOT, headers=who)
                gone = web.delete("/@lake/tables/pose", headers=who)
                assert (put.status_code, gone.status_code) == (status, status)
                for body in ({"from": "temp"}, {"merge": "temp"}):
                    joined = web.put("/@lake/tables/pose", json=body, headers=who)
                    assert joined.status_code == status
            # Whoever may put a table and not delete another one takes nothing from that.
            who = {"authorization": "Bearer 1111111100000000"}
            assert web.put("/@lake/tables/pose", json=ROBOT, headers=who).status_code == 200
            for body, status in (
                ({"from": "temp"}, 403), ({"merge": "temp"}, 403), ({"merge": "pose"}, 200),
            ):  # fmt: skip
                joined = web.put("/@lake/tables/at", json=body, headers=who)
                assert joined.status_code == status
            assert web.put("/@lake/tables/pose", json=ROBOT).status_code == 401
    finally:
        door.close()
