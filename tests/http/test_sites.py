"""What a browser says of the page that sent a request: every combination of its headers."""

from __future__ import annotations

import itertools

import pytest

from zenlake.http.names import may_connect, site_refusal

SITES = (None, "none", "same-origin", "same-site", "cross-site", "something-new")
MODES = (None, "navigate", "no-cors", "cors", "nested-navigate", "websocket")
DESTINATIONS = (None, "document", "iframe", "frame", "object", "embed", "image", "script", "empty")
METHODS = ("GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS")


def heads(site: str | None, mode: str | None, destination: str | None) -> dict[str, str]:
    named = {"site": site, "mode": mode, "dest": destination}
    return {f"sec-fetch-{name}": value for name, value in named.items() if value is not None}


def test_another_site_reaches_pages_by_following_a_link_and_nothing_else() -> None:
    let_in = set()
    for site, mode, destination, method, is_page in itertools.product(
        SITES, MODES, DESTINATIONS, METHODS, (True, False)
    ):
        if site in (None, "none", "same-origin"):
            continue
        if not site_refusal(method, heads(site, mode, destination), is_page=is_page):
            let_in.add((mode, destination, method, is_page))
    assert let_in == {("navigate", "document", "GET", True)}


@pytest.mark.parametrize("site", [None, "none", "same-origin"])
def test_programs_and_what_a_person_opens_are_let_in(site: str | None) -> None:
    for mode, destination, method in itertools.product(MODES, DESTINATIONS, METHODS):
        if destination not in ("iframe", "frame", "object", "embed", "script"):
            assert not site_refusal(method, heads(site, mode, destination), is_page=False)


@pytest.mark.parametrize("destination", ["iframe", "frame", "object", "embed", "script", "worker"])
@pytest.mark.parametrize("site", [None, "none", "same-origin"])
def test_no_page_runs_or_embeds_the_value_of_a_key(site: str | None, destination: str) -> None:
    asked = heads(site, "no-cors", destination)
    assert "run or embed" in site_refusal("GET", asked, is_page=False)
    assert not site_refusal("GET", asked, is_page=True)


def test_where_a_browser_says_nothing_else_the_page_that_it_names_decides() -> None:
    asked = {"host": "192.0.2.1:8000"}
    assert not site_refusal("GET", asked, is_page=False)
    assert not site_refusal("GET", asked | {"referer": "http://192.0.2.1:8000/"}, is_page=False)
    assert site_refusal("GET", asked | {"referer": "https://evil.example/a"}, is_page=False)
    assert site_refusal("GET", asked | {"referer": "http://192.0.2.1:9000/"}, is_page=False)
    assert not site_refusal("GET", asked | {"referer": "https://evil.example/a"}, is_page=True)


def test_who_names_an_origin_is_judged_by_that() -> None:
    asked = heads("cross-site", "cors", "empty") | {"origin": "https://a.example"}
    assert not site_refusal("GET", asked, is_page=False)
    for allowed, refused in ((("https://a.example",), False), ((), True)):
        why = may_connect("https://a.example", "localhost", {"localhost"}, allowed)
        assert bool(why) is refused
