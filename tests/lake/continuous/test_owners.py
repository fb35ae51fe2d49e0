"""Views and alerts of users: they see, publish and keep what their owners may, and no more."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from tests.api.sessions import connected
from tests.lake.continuous.test_views_and_alerts import World, awake
from tests.lake.journals import write
from tests.lake.rowsof import Row
from tests.rest.conftest import plugins, router, url_of
from tests.waiting import until
from zenlake.admin.reload import change
from zenlake.agents.asking import Agent
from zenlake.lake.continuous.definitions import create_definition
from zenlake.lake.maintain.definition_store import new_definition

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.timeout(300)]

EVERYTHING = "SELECT key, cast(value AS string) AS v FROM samples"
ANYTHING = f"{EVERYTHING} WHERE length(value) > 0"
NEWEST = (
    "SELECT s.key, cast(l.value AS string) AS v FROM samples s CROSS JOIN latest l "
    "WHERE length(s.value) > 0"
)
READING = ["query", "reply", "declare_subscriber", "declare_queryable", "put", "delete"]
EVE = {"authorization": "Bearer eve-0123456789abcdef"}
ANN = {"authorization": "Bearer ann-0123456789abcdef"}


def rules(*hidden: str, eve_silent: bool = False) -> str:
    """Eve may not have what is hidden; ann, and eve if she is silent, may publish no results."""
    both = ["view/**", "alert/**"]
    return json.dumps(
        {
            "enabled": True,
            "default_permission": "allow",
            "rules": [
                {"id": "hide", "key_exprs": list(hidden), "permission": "deny",
                 "messages": READING},
                {"id": "silence", "key_exprs": both, "permission": "deny", "messages": ["put"],
                 "flows": ["ingress"]},
            ],
            "subjects": [{"id": "eve", "usernames": ["eve"]}, {"id": "ann", "usernames": ["ann"]}],
            "policies": [
                {"rules": ["hide"], "subjects": ["eve"]},
                {"rules": ["silence"], "subjects": ["ann", *(["eve"] if eve_silent else [])]},
            ],
        }
    )  # fmt: skip


def text(key: str, value: str, at: float = 0.0) -> Row:
    return Row(key, value.encode(), at=at)


def facts(world: World, name: str) -> dict[str, Any]:
    kinds: tuple[Any, ...] = ("view", "alert")
    every = [one for kind in kinds for one in world.continuous.listed(kind)]
    return next(one for one in every if one["name"] == name)


def keys(world: World, name: str) -> set[str]:
    return {row["key"] for row in world.rows(name)}


def holds(world: World, name: str, key: str) -> Callable[[], bool]:
    return lambda: key in keys(world, name)


def stopped(world: World, name: str) -> Callable[[], bool]:
    return lambda: facts(world, name)["state"] == "stopped"


def runs(world: World, name: str) -> Callable[[], bool]:
    return lambda: facts(world, name)["state"] == "running"


@pytest.mark.parametrize(
    "to_the_end",
    [
        pytest.param(False, id="by day"),
        pytest.param(
            True,
            id="and goes on",
            marks=pytest.mark.nightly(
                day="lake/continuous/test_owners.py, lake/continuous/test_owner_rights.py"
            ),
        ),
    ],
)
def test_a_view_sees_and_publishes_what_its_owner_may_and_stops_when_that_changes(
    tmp_path: Path, spark: SparkSession, to_the_end: bool
) -> None:
    tokens = tmp_path / "tokens"
    tokens.write_text("eve:eve-0123456789abcdef\nann:ann-0123456789abcdef\n")
    tokens.chmod(0o600)
    write(tmp_path / "journal", [text("secret/a", "S3CRET"), text("robot/9", "hello")])
    web_of = plugins(lake=str(tmp_path / "lake"), tokens_file=str(tokens))
    with ExitStack() as held:
        node = held.enter_context(router(web_of, access_control=rules("secret/**")))
        bus = held.enter_context(connected(node, mode='"client"'))
        web = held.enter_context(httpx.Client(base_url=url_of(node), timeout=60, trust_env=False))
        heard: list[str] = []
        for expr in ("view/**", "alert/**"):
            note = lambda sample: heard.append(f"{sample.key_expr} {sample.payload.to_bytes()!r}")  # noqa: E731
            held.enter_context(node.declare_subscriber(expr, note))
        world = held.enter_context(awake(tmp_path, spark, bus))

        def make(path: str, sql: str, user: dict[str, str]) -> httpx.Response:
            return web.put(f"/@lake/{path}", json={"sql": sql, "history": True}, headers=user)

        # Who may not put what a view publishes makes none for everybody.
        refused = make("views/mute", EVERYTHING, ANN)
        assert refused.status_code == 403
        assert "put on 'view/mute/**' is denied for user 'ann'" in refused.text
        # A user from whom secrets are kept: by a join with newest values, and by an alert.
        for path, sql in (("views/leak", NEWEST), ("alerts/tell", ANYTHING)):
            made = make(path, sql, EVE)
            assert made.status_code == 200, made.text
            assert made.json()["owner"] == "user 'eve'"
        world.continuous.create(new_definition("all", "view", EVERYTHING, history=True))
        for name in ("leak", "tell", "all"):
            until(holds(world, name, "robot/9"), f"{name} has what everybody may see", 120.0)
        world.heard(text("secret/b", "S3CRET"), text("robot/8", "hello", 1.0))
        for name in ("leak", "tell", "all"):
            until(holds(world, name, "robot/8"), f"{name} goes on", 120.0)
        assert {"secret/a", "secret/b"} <= keys(world, "all")  # the operator's
        for name in ("leak", "tell"):
            assert "S3CRET" not in str(world.rows(name))
            assert "secret" not in str(world.rows(name))

        def told() -> list[str]:
            return [one for one in heard if not one.startswith("view/all/")]

        # What is in the table is published a moment later.
        until(lambda: any("robot/8" in one for one in told()), "it is published", 120.0)
        assert not any("secret" in one.lower() for one in told())

        # What others made is not theirs to drop, and is not told of.
        no = web.delete("/@lake/views/all", headers=EVE)
        assert (no.status_code, "has made no view 'all'" in no.text) == (400, True)
        assert web.delete("/@lake/views/leak", headers=ANN).status_code == 400

        # The bus makes none and drops none, whoever asks there.
        Agent(node).put("@lake/views/agent", json.dumps({"sql": EVERYTHING}))
        node.delete("@lake/views/leak")

        # A back-test has the owner's eyes, and is for who may see as much.
        span = "?_time=[2020-01-01T00:00:00Z..]"
        mine = web.get(f"/@lake/alerts/tell{span}", headers=EVE)
        assert "robot/9" in mine.text
        assert "secret" not in mine.text
        create_definition(world.service.lake, new_definition("wide", "alert", ANYTHING))
        theirs = web.get(f"/@lake/alerts/wide{span}", headers=EVE)
        assert "robot/9" not in theirs.text
        assert "access control denies some of them to you" in theirs.text

        # Its rights change while it runs: it stops, says so, and finds nothing with the old ones.
        change(node.runtime, "access_control", rules("secret/**", "robot/2/**"))
        for name in ("leak", "tell"):
            until(stopped(world, name), f"{name} stops", 60.0)
            assert "the rights of user 'eve' changed" in facts(world, name)["rights"]
        shown = {row["key"]: row["value"] for row in web.get("/@lake/views/*", headers=EVE).json()}
        assert "drop the view and create it again" in shown["@lake/views/leak"]["rights"]
        world.heard(text("robot/2/x", "hello", 2.0), text("robot/7", "hello", 2.0))
        until(holds(world, "all", "robot/2/x"), "the operator's goes on", 120.0)
        assert not {"robot/2/x", "robot/7"} & (keys(world, "leak") | keys(world, "tell"))
        if not to_the_end:
            return

        # HTTP obeys the new rules too, and a new view is planned with them.
        assert web.put("/robot/2/x", content="1", headers=EVE).status_code == 403
        assert make("views/again", EVERYTHING, EVE).status_code == 200
        until(holds(world, "again", "robot/7"), "it sees what may be seen now", 120.0)
        assert not {"robot/2/x", "secret/a"} & keys(world, "again")

        # The right to publish is withdrawn and given back.
        change(node.runtime, "access_control", rules("secret/**", "robot/2/**", eve_silent=True))
        until(stopped(world, "again"), "it stops", 60.0)
        assert "may not put 'view/again/**' any more" in facts(world, "again")["rights"]
        change(node.runtime, "access_control", rules("secret/**", "robot/2/**"))
        until(runs(world, "again"), "it goes on", 60.0)
        known = {row["key"] for row in web.get("/@lake/views/*", headers=EVE).json()}
        assert known == {"@lake/views/leak", "@lake/views/all", "@lake/views/again"}

        # With the rights that it was made with, a view goes on where it was.
        change(node.runtime, "access_control", rules("secret/**"))
        until(holds(world, "leak", "robot/7"), "it goes on", 120.0)
        assert "robot/2/x" in keys(world, "leak")
        assert "secret" not in str(world.rows("leak"))

        world.end()

    # The lake is started again, and no router says what eve may see.
    world.session = None
    world.start()
    try:
        until(runs(world, "all"), "the operator's runs", 120.0)
        until(stopped(world, "leak"), "that of a user does not", 60.0)
        assert "no router has said" in facts(world, "leak")["rights"]
        world.heard(text("robot/6", "hello", 3.0))
        until(holds(world, "all", "robot/6"), "the operator's goes on", 120.0)
        assert "robot/6" not in keys(world, "leak") | keys(world, "tell")
    finally:
        world.service.close()
