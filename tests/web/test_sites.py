"""A page of another site in a real browser: none of its ways reaches a key of a router."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

import zenlake
from tests.api.sessions import listening
from tests.rest.conftest import plugins, router, url_of
from tests.web.browser import Browser, start
from zenlake.remote import RemoteApiService

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
    "put": "<script>fetch('{url}', {{method: 'PUT', body: 'x'}}).then(done, done)</script>",
    "delete": "<script>fetch('{url}', {{method: 'DELETE'}}).then(done, done)</script>",
    "blind post": (
        "<script>fetch('{url}', {{method: 'POST', mode: 'no-cors', body: 'SELECT 1'}})"
        ".then(done, done)</script>"
    ),
    "socket": (
        "<script>s = new WebSocket('{socket}', ['zenlake']); s.onopen = () => {{ opened++ }};"
        "s.onclose = done</script>"
    ),
}
COUNT = "<script>n = 0; opened = 0; function done() { n++ }</script>"

#: What a name does that was made to point here: the statuses of all answers, and `socket`.
REBOUND = """<script>
async function reach() {
  const body = "x", method = "DELETE";
  const ways = [{}, { method }, { method: "PUT", body }, { method: "POST", body }];
  told = [];
  for (const path of ["/asked/rebound", "/@lake/sql?_sql=SELECT%201"])
    for (const way of ways) told.push((await fetch(path, way)).status);
  const socket = new WebSocket("ws://" + location.host + "/@ws", ["zenlake"]);
  socket.onopen = () => told.push("opened");
  socket.onclose = () => { told.push("closed"); over = true; };
}
over = false;
</script>"""

#: Links to the page, what a person presses there, and what is asked by that.
LINKS = {
    "ask?kind=get&q=asked/get%3Fforce%3D9": ("Run it", ["asked/get?force=9"]),
    "ask?kind=get&q=asked/again&every=5": ("Run it", ["asked/again"]),
    "ask?kind=sql&q=SELECT+1": ("Run it", ["@lake/sql SELECT 1"]),
    "live?key=asked/live": ("Get it", ["asked/live"]),
}


#: A name that leads to this machine, as one on a network does: to browsers it is not this machine.
NAME = "node.example"


class Evil(ThreadingHTTPServer):
    """A site that serves one page."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Page)
        self.page = ""
        self._taken: list[socket.socket] = []
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def get_request(self) -> tuple[socket.socket, Any]:
        """Take a connection; browsers open some before they need them."""
        taken, where = super().get_request()
        self._taken.append(taken)
        return taken, where

    def end(self) -> None:
        """Answer nobody more, on connections that are there either."""
        self.shutdown()
        self.server_close()
        for one in self._taken:
            with suppress(OSError):  # most have ended
                one.shutdown(socket.SHUT_RDWR)


class _Page(BaseHTTPRequestHandler):
    server: Evil

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("content-type", "text/html")
        self.end_headers()
        self.wfile.write(self.server.page.encode())

    def log_message(self, *_: object) -> None:
        """Nothing is logged."""


class Asked:
    """What queryables and a subscriber of a router are asked and told."""

    def __init__(self, bus: zenlake.Session) -> None:
        self.keys: list[str] = []
        self.heard: list[str] = []
        self._queryables = [
            bus.declare_queryable(one, self._ask) for one in ("asked/**", "@lake/sql")
        ]
        self._subscriber = bus.declare_subscriber(
            "asked/**", lambda sample: self.heard.append(str(sample.key_expr))
        )

    def _ask(self, query: zenlake.Query) -> None:
        sql = "" if query.payload is None else f" {query.payload.to_string()}"
        # The page asks a lake for marks of the past by itself; a link does not say what.
        if "explode(gaps)" not in sql:
            self.keys.append(f"{query.key_expr if sql else query.selector}{sql}")
        with query:
            answer = json.dumps([{"a": "answered"}])
            query.reply(query.key_expr, answer, encoding=zenlake.Encoding.APPLICATION_JSON)


@pytest.fixture(scope="module")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    found = start(tmp_path_factory.mktemp("browser"), f"--host-resolver-rules=MAP {NAME} 127.0.0.1")
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
    with router(plugins()) as bus:
        asked, url = Asked(bus), url_of(bus)
        socket = f"{url.replace('http', 'ws', 1)}/@ws"
        for key in ("asked/{how}", "@lake/sql?_sql=SELECT%201"):
            evil.page = COUNT + "".join(
                way.format(url=f"{url}/{key.format(how=how)}", socket=socket)
                for how, way in WAYS.items()
            )
            driver.open(f"http://{name}:{evil.server_port}/")
            driver.until(lambda: driver.js("return n") >= len(WAYS), "all ways were tried")
            assert driver.js("return opened") == 0
            assert (asked.keys, asked.heard) == ([], [])
        # A link may lead to the page of the node, but not to a key.
        evil.page = f"<a id=key href='{url}/asked/link'>a</a><a id=page href='{url}/'>b</a>"
        for link, shown in (("key", "leads to a key"), ("page", "zenlake")):
            driver.open(f"http://{name}:{evil.server_port}/")
            driver.js(f"document.querySelector('#{link}').click()")
            driver.until(lambda: shown in driver.driver.page_source, f"it says {shown}")  # noqa: B023
        assert asked.keys == []
        # Who types the address is no site.
        driver.open(f"{url}/asked/typed")
        driver.until(lambda: asked.keys, "it was asked")
        assert set(asked.keys) == {"asked/typed"}
        assert asked.heard == []


REMOTE = """<script>
told = "";
socket = new WebSocket("{url}");
socket.onopen = () => {{ told = "opened"; }};
socket.onclose = () => {{ told = told || "refused"; }};
</script>"""


def test_pages_of_this_machine_alone_reach_the_port_for_browsers(
    driver: Browser, evil: Evil
) -> None:
    remote = json.dumps({"remote_api": {"websocket_port": "127.0.0.1:0"}})
    with listening(mode='"router"', plugins=remote) as bus:
        service = bus.runtime.services["zenlake.remote"]
        assert isinstance(service, RemoteApiService)
        evil.page = REMOTE.format(url=service.url)
        # A page for this port is always served at another one; a name elsewhere is another site.
        for name, told in (("localhost", "opened"), ("127.0.0.1", "opened"), (NAME, "refused")):
            driver.open(f"http://{name}:{evil.server_port}/")
            driver.until(lambda: driver.js("return told"), "it is told")
            assert driver.js("return told") == told, name


def test_a_name_that_is_made_to_point_here_reaches_no_key(driver: Browser) -> None:
    evil = Evil()
    evil.page = REBOUND
    port = evil.server_port
    driver.open(f"http://{NAME}:{port}/")
    # The same name and port are the router's from now on.
    evil.end()
    with router(plugins(http_port=f"127.0.0.1:{port}")) as bus:
        asked = Asked(bus)
        driver.js("reach()")
        driver.until(lambda: driver.js("return over"), "all ways were tried")
        assert driver.js("return told") == [*[403] * 8, "closed"]
        assert (asked.keys, asked.heard) == ([], [])


HELD = "came from a link"


@pytest.mark.parametrize("link", LINKS)
def test_a_link_to_a_question_asks_nobody_until_a_person_runs_it(
    driver: Browser, evil: Evil, link: str
) -> None:
    press, wanted = LINKS[link]
    with router(plugins()) as bus:
        asked = Asked(bus)
        evil.page = f"<script>location = '{url_of(bus)}/#/{link}'</script>"
        driver.open(f"http://localhost:{evil.server_port}/")
        driver.shows(HELD)
        driver.connects()
        assert asked.keys == []
        driver.click(press)
        driver.shows("answered")
        assert asked.keys == wanted
        assert HELD not in driver.text()


def test_a_link_to_the_past_asks_nobody_until_a_person_looks(driver: Browser, evil: Evil) -> None:
    with router(plugins()) as bus:
        asked = Asked(bus)
        evil.page = f"<script>location = '{url_of(bus)}/#/time?key=asked/time'</script>"
        driver.open(f"http://localhost:{evil.server_port}/")
        driver.shows(HELD)
        driver.connects()
        assert asked.keys == []
        driver.click("Run it")
        driver.until(lambda: asked.keys, "it was asked")
        assert {one.partition("?")[0] for one in asked.keys} == {"asked/time"}


def test_a_site_that_holds_the_window_makes_the_page_ask_nothing(
    driver: Browser, evil: Evil
) -> None:
    with router(plugins(hosts=[NAME])) as bus:
        asked, url = Asked(bus), url_of(bus).replace("127.0.0.1", NAME)
        evil.page = f"<script>held = open('{url}/#/ask')</script>"
        driver.open(f"http://{NAME}:{evil.server_port}/")
        driver.until(lambda: len(driver.driver.window_handles) == 2, "the page in its window")
        first, second = driver.driver.window_handles
        driver.driver.switch_to.window(second)
        driver.connects()
        driver.fill("input[name=q]", "asked/mine")
        driver.click("Get")
        driver.shows("answered")
        mine = driver.driver.current_url
        for address in (f"{url}/#/ask?kind=get&q=asked/stolen", mine, f"{url}/#/time?key=asked/a"):
            driver.driver.switch_to.window(first)
            driver.js("held.location = arguments[0]", address)
            driver.driver.switch_to.window(second)
            driver.until(lambda: driver.driver.current_url == address, "it is there")  # noqa: B023
            driver.shows(HELD)
            assert asked.keys == ["asked/mine"]
        # Going back to a question that was asked here asks it again, unless the page was reloaded.
        for _ in range(3):
            driver.driver.back()
        driver.shows("answered")
        assert asked.keys == ["asked/mine"] * 2
        driver.driver.refresh()
        driver.shows(HELD)
        assert asked.keys == ["asked/mine"] * 2
        driver.driver.close()
        driver.driver.switch_to.window(first)
