"""A page of another site in a real browser: none of its ways reaches a key of a router."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

import zenlake
from tests.rest.conftest import plugins, router, url_of
from tests.web.browser import Browser, start

pytestmark = [pytest.mark.interop, pytest.mark.slow, pytest.mark.timeout(600)]

WAYS = {
    "iframe": "<iframe src='{url}' onload=done() onerror=done()></iframe>",
    "object": "<object data='{url}' onload=done() onerror=done()></object>",
    "embed": "<embed src='{url}' onload=done() onerror=done()>",
    "image": "<img src='{url}' onload=done() onerror=done()>",
    "script": "<script src='{url}' onload=done() onerror=done()></script>",
    "style": "<link rel=stylesheet href='{url}' onload=done() onerror=done()>",
    "video": "<video src='{url}' onloadeddata=done() onerror=done()></video>",
    "fetch": "<script>fetch('{url}').then(done, done)</script>",
    "blind": "<script>fetch('{url}', {{mode: 'no-cors'}}).then(done, done)</script>",
    "beacon": "<script>navigator.sendBeacon('{url}', 'x'); done()</script>",
    "events": "<script>new EventSource('{url}').onerror = done</script>",
    "form": (
        "<iframe name=f></iframe><form id=form target=f action='{url}'></form>"
        "<script>form.submit(); done()</script>"
    ),
    "post": (
        "<iframe name=p></iframe><form id=post target=p method=post action='{url}'></form>"
        "<script>post.submit(); done()</script>"
    ),
}


class Evil(ThreadingHTTPServer):
    """A site that serves one page."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Page)
        self.page = ""
        threading.Thread(target=self.serve_forever, daemon=True).start()


class _Page(BaseHTTPRequestHandler):
    server: Evil

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("content-type", "text/html")
        self.end_headers()
        self.wfile.write(self.server.page.encode())

    def log_message(self, *_: object) -> None:
        """Nothing is logged."""


@pytest.fixture(scope="module")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    found = start(tmp_path_factory.mktemp("browser"))
    yield Browser(found)
    found.quit()


@pytest.fixture
def evil() -> Iterator[Evil]:
    found = Evil()
    yield found
    found.shutdown()
    found.server_close()


@pytest.mark.parametrize("name", ["localhost", "127.0.0.1"])
def test_a_page_of_another_site_or_port_asks_no_queryable(
    driver: Browser, evil: Evil, name: str
) -> None:
    asked: list[str] = []

    def answer(query: zenlake.Query) -> None:
        asked.append(str(query.key_expr).removeprefix("asked/"))
        query.reply(query.key_expr, "x")

    with router(plugins()) as bus, bus.declare_queryable("asked/**", answer):
        url = url_of(bus)
        evil.page = "<script>n = 0; function done() { n++ }</script>" + "".join(
            way.format(url=f"{url}/asked/{how}") for how, way in WAYS.items()
        )
        driver.open(f"http://{name}:{evil.server_port}/")
        driver.until(lambda: driver.js("return n") >= len(WAYS), "all ways were tried")
        assert asked == []
        # A link may lead to the page of the node, but not to a key.
        evil.page = f"<a id=key href='{url}/asked/link'>a</a><a id=page href='{url}/'>b</a>"
        for link, shown in (("key", "leads to a key"), ("page", "zenlake")):
            driver.open(f"http://{name}:{evil.server_port}/")
            driver.js(f"document.querySelector('#{link}').click()")
            driver.until(lambda: shown in driver.driver.page_source, f"it says {shown}")  # noqa: B023
        assert asked == []
        # Who types the address is no site.
        driver.open(f"{url}/asked/typed")
        driver.until(lambda: asked, "it was asked")
        assert set(asked) == {"typed"}
