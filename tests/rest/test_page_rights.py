"""Every page asks for the right of what it shows; a page whose right nobody named is not served."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from tests.rest.conftest import plugins, router, url_of
from tests.waiting import SECONDS
from zenlake.rest.openapi import document
from zenlake.rest.page_rights import ASSETS, PAGES
from zenlake.rest.pages import Page

USERS = ("operator", "scraper", "robot")


@pytest.fixture(scope="module")
def web(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    """A router whose operator sees its admin space, its scraper the metrics, its robot neither."""
    users = tmp_path_factory.mktemp("users") / "users"
    users.write_text("".join(f"{name}:secret\n" for name in USERS))
    users.chmod(0o600)
    zid = "ab12"
    rules = {
        "enabled": True,
        "default_permission": "deny",
        "rules": [
            {
                "id": name, "key_exprs": keys, "permission": "allow",
                "messages": ["put", "query", "reply", "declare_subscriber"],
            }
            for name, keys in (
                ("operator", ["**", f"@/{zid}/router/**"]),
                ("scraper", [f"@/{zid}/router/metrics"]),
                ("robot", ["**"]),
            )
        ],
        "subjects": [{"id": name, "usernames": [name]} for name in USERS],
        "policies": [{"rules": [name], "subjects": [name]} for name in USERS],
    }  # fmt: skip
    keys = {
        "id": json.dumps(zid),
        "transport__auth__usrpwd__dictionary_file": json.dumps(str(users)),
        "access_control": json.dumps(rules),
    }
    with (
        router(plugins(), **keys) as bus,
        httpx.Client(base_url=url_of(bus), timeout=SECONDS, trust_env=False) as client,
    ):
        yield client


@pytest.mark.parametrize(
    ("path", "codes"),
    [
        # Nobody, robot, scraper, operator.
        ("/status", (401, 403, 403, 200)),
        ("/metrics", (401, 403, 200, 200)),
        ("/@ws", (401, 426, 426, 426)),
        ("/@/local/router/metrics", (401, 403, 200, 200)),
        ("/demo/a", (401, 200, 403, 200)),
        ("/@lake/sql?_sql=SELECT", (401, 403, 403, 403)),
        ("/health", (200, 200, 200, 200)),
        ("/ready", (200, 200, 200, 200)),
        ("/openapi.json", (200, 200, 200, 200)),
        ("/", (200, 200, 200, 200)),
        ("/@web/app.js", (200, 200, 200, 200)),
    ],
)
def test_a_page_is_for_those_who_may_read_what_it_shows(
    web: httpx.Client, path: str, codes: tuple[int, ...]
) -> None:
    known = [None, *((name, "secret") for name in ("robot", "scraper", "operator"))]
    for method in ("GET", "HEAD"):
        answers = [web.request(method, path, auth=who) for who in known]
        assert tuple(answer.status_code for answer in answers) == codes
        if method == "GET" and codes[1] == 403:
            assert "robot" in answers[1].text


def test_health_says_nothing_but_well_or_not(web: httpx.Client) -> None:
    assert web.get("/health").text == "ok\n"


def test_every_route_has_a_right_and_a_page_without_one_is_refused() -> None:
    async def give(request: Any, user: Any) -> Any:
        raise AssertionError

    described = {path for path in document()["paths"] if "{" not in path}
    assert described <= set(PAGES)
    with pytest.raises(KeyError):
        Page("/new", "@/ab12/router", give)


def test_the_pages_of_a_router_are_those_of_the_table(web: httpx.Client) -> None:
    # What is not in the table is a key, which a robot may ask for.
    for path in ("/pages", "/statuses", "/metrics/more"):
        assert path not in PAGES
        assert web.get(path, auth=("robot", "secret")).json() == []
    assert ASSETS in PAGES
