"""The page where rules of access control keep keys from its user or from others."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import zenlake
from tests.api.sessions import connected
from tests.rest.conftest import plugins, router, url_of
from tests.web.browser import Browser, start
from zenlake.keys.readable import ReadableKeys
from zenlake.lake.query.visibility import shown_definition

pytestmark = [pytest.mark.interop, pytest.mark.slow, pytest.mark.timeout(300)]

TOKEN = "0123456789abcdef"
RULES = {
    "enabled": True,
    "default_permission": "allow",
    "rules": [
        {"id": "keep", "key_exprs": ["secret/**"], "permission": "deny", "messages": ["query"]},
        {"id": "hush", "key_exprs": ["hush/**"], "permission": "deny", "messages": ["put"]},
    ],
    "subjects": [{"id": "ada", "usernames": ["ada"]}, {"id": "links", "link_protocols": ["tcp"]}],
    "policies": [
        {"rules": ["keep"], "subjects": ["ada"]},
        {"rules": ["hush"], "subjects": ["links"]},
    ],
}  # fmt: skip


@pytest.fixture(scope="module")
def bus(tmp_path_factory: pytest.TempPathFactory) -> Iterator[zenlake.Session]:
    tokens = tmp_path_factory.mktemp("users") / "tokens"
    tokens.write_text(f"ada:{TOKEN}\n")
    tokens.chmod(0o600)
    with router(plugins(tokens_file=str(tokens)), access_control=json.dumps(RULES)) as session:
        yield session


@pytest.fixture
def driver(tmp_path: Path) -> Iterator[Browser]:
    made = start(tmp_path)
    try:
        yield Browser(made)
    finally:
        made.quit()


def view(name: str, **more: Any) -> dict[str, Any]:
    """A view as a lake tells of it: with its question, which may name any key."""
    return {
        "name": name, "kind": "view", "sql": "SELECT * FROM samples WHERE key = 'secret/plan'",
        "keys": f"view/{name}/**", "state": "running", "why": "", "rights": "", "rows": 7, **more,
    }  # fmt: skip


def test_a_user_sees_their_views_and_why_one_is_held(driver: Browser, bus: zenlake.Session) -> None:
    held = "the rights of user 'ada' changed"
    views = [view("busy"), view("idle", state="stopped", why=held, rights=held)]

    def tell(query: zenlake.Query) -> None:
        # As a lake does: who asks for a user is told what that user may read.
        readable = ReadableKeys.in_parameters(query.parameters)
        assert not readable.unrestricted
        with query:
            for one in views:
                query.reply(
                    f"@lake/views/{one['name']}", json.dumps(shown_definition(one, readable)),
                    encoding=zenlake.Encoding.APPLICATION_JSON,
                )  # fmt: skip

    with bus.declare_queryable("@lake/views/**", tell):
        driver.open(f"{url_of(bus)}/#/ask")
        driver.enter(TOKEN)
        driver.shows("busy")
        listed = driver.js("return document.querySelector('#continuous').innerText")
        assert "running" in listed
        assert f"stopped: {held}" in listed
        assert "hidden" in listed


def test_the_map_says_which_rule_denies_a_key(driver: Browser, bus: zenlake.Session) -> None:
    with connected(bus, mode='"client"') as robot:
        driver.open(f"{url_of(bus)}/#/map")
        driver.enter(TOKEN)
        driver.shows(f"client {str(robot.zid())[:8]}")
        driver.fill("input[name=key]", "hush/a")
        driver.click("Why")
        driver.shows(f"rule (ingress of {str(robot.zid())[:8]}, put): rule 'hush' denies it")
