"""The page among strangers: anybody may answer anything, and publish anything under any key.

One odd value spoils one tile. Nothing that was published or answered runs, and nothing asks the
browser for what the policy of the page forbids.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from selenium.common.exceptions import NoAlertPresentException

import zenlake
from tests.api.sessions import connected
from tests.web.browser import Browser, start
from tests.web.test_page import router, url_of

pytestmark = [pytest.mark.interop, pytest.mark.slow, pytest.mark.timeout(300)]

DEEP = 100_000
WATCH = """
window.ran = []; window.violated = [];
for (const name of ["alert", "confirm", "prompt"]) window[name] = () => window.ran.push(name);
document.addEventListener("securitypolicyviolation",
  (event) => window.violated.push(`${event.violatedDirective}: ${event.blockedURI}`));
"""
SCRIPTS = (
    "<img src=x onerror=alert(1)>",
    "</script><script>alert(1)</script>",
    "javascript:alert(1)",
    "\"'><svg onload=alert(1)>",
    "${alert(1)}",
)
#: A virtual node, as the page's own library has them: in an object without a prototype it is one.
NODE = {
    "type": "img",
    "props": {"src": "x", "onerror": "alert(1)", "dangerouslySetInnerHTML": {"__html": SCRIPTS[0]}},
    "key": None,
    "ref": None,
}
VNODE = {**NODE, "__proto__": None, "constructor": None}
#: One that claims to have been drawn before, and has no type: it is an element at its first sight.
BARE = {"__b": 5, "props": {"dangerouslySetInnerHTML": {"__html": "<h1>your token?</h1><mark>"}}}


def placed(node: dict[str, Any]) -> dict[str, object]:
    """An answer with a virtual node in each place that the page draws."""
    return {
        "zid": "aa11", "sessions": [], "metadata": {"name": node}, "keys": [node, {"key": node}],
        "sources": [node, {"source": node, "missing": node}], "columns": [node, {"name": node}],
        "sql": SCRIPTS[0], "name": node, "state": node, "rows": [node, {"a": node}], "proof": 5,
        "changes": [node], "neighbours": [5, {"zid": 5, "ingress": 5, "goes_to": 5}],
        "publishers": [None], "totals": {"healed": node, "unprovable_rows": node},
        "kind": node, "count": node, "user": node, "peer": node, "key": node, "reason": node,
        "last_seconds_ago": node, "whatami": node, "rights": node, "why": node, "waiting": node,
        "without_table": [node, {"reason": node, "count": node, "examples": [node, SCRIPTS[0]]}],
    }  # fmt: skip


PLACED = placed(VNODE)
ODD: dict[str, object] = {
    "a number": 5,
    "null": None,
    "a text": SCRIPTS[0],
    "a list": [None, 5, "x", [], {}],
    "numbers for lists": {
        "zid": "aa12", "sessions": 5, "keys": 5, "sources": 5, "columns": 5, "rows": 5, "sql": 5,
        "changes": 5, "neighbours": 5,
    },
    "lists of odd things": {
        "zid": "aa13", "sessions": [None, 5, {"peer": 5}], "keys": [None, 5], "sources": [None, 5],
        "columns": [None, 5], "rows": [None, 5, "x"], "sql": "SELECT", "name": 5, "changes": [None],
    },
    "objects for texts": PLACED,
    "nodes without a type": placed(BARE),
    "nodes in a view": {**placed(BARE), "name": "odd", "state": "running"},
    "a huge text": {"zid": "z" * 300_000, "sql": "s" * 300_000, "rows": [{"a": "r" * 300_000}]},
    "__proto__": {"__proto__": {"zid": "aa14"}, "zid": "aa15", "rows": [{"__proto__": 5}]},
}  # fmt: skip


def nested(open: bytes, inner: bytes, close: bytes) -> bytes:
    return open * DEEP + inner + close * DEEP


class Stranger:
    """A client that answers every question about nodes, journals and lakes in the same odd way."""

    def __init__(self, bus: zenlake.Session) -> None:
        self.session = connected(bus, mode='"client"')
        self.answer = b""
        self.encoding = zenlake.Encoding.APPLICATION_JSON
        zid = bus.zid()
        exprs = [
            "@journal/*/ledger", "@lake/**", "@/*/z18/**", "@/*/*/why/**",
            *(f"@/{zid}/router/{name}" for name in ("drops", "events", "config")),
            *(f"@/odd{number}/router" for number in range(3)),
        ]  # fmt: skip
        self._queryables = [self.session.declare_queryable(one, self._asked) for one in exprs]

    def says(self, answer: bytes, encoding: zenlake.Encoding | None = None) -> None:
        self.answer = answer
        self.encoding = encoding or zenlake.Encoding.APPLICATION_JSON

    def _asked(self, query: zenlake.Query) -> None:
        # An answer has a key of its own; a name for what is asked for with wildcards.
        key = str(query.key_expr).replace("**", SCRIPTS[0].replace(" ", "_")).replace("*", "odd")
        with query:
            query.reply(key, self.answer, encoding=self.encoding)

    def close(self) -> None:
        self.session.close()


@pytest.fixture(scope="module")
def bus() -> Iterator[zenlake.Session]:
    with router() as session:
        yield session


@pytest.fixture(scope="module")
def stranger(bus: zenlake.Session) -> Iterator[Stranger]:
    made = Stranger(bus)
    try:
        yield made
    finally:
        made.close()


@pytest.fixture(scope="module")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    made = start(tmp_path_factory.mktemp("profile"))
    made.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": WATCH})
    try:
        yield Browser(made)
    finally:
        made.quit()


@pytest.fixture(autouse=True)
def nothing_ran(driver: Browser) -> Iterator[None]:
    """After each test: no dialog, no script, no violation, and no markup of others in the page."""
    yield
    with pytest.raises(NoAlertPresentException):
        _ = driver.driver.switch_to.alert.text
    assert driver.js("return window.ran") == []
    assert driver.js("return window.violated") == []
    assert driver.js("return Object.prototype.zid") is None
    driver.driver.get("about:blank")
    driver.errors()


#: Names of elements that the page draws itself.
DRAWN = """
a b button canvas circle code datalist details div form g h1 h2 h3 header input label li line main
nav option output p pre section select span summary svg table tbody td text textarea th thead tr ul
"""
ELEMENTS = "return [...document.querySelectorAll('#app *')].map((one) => one.localName)"
LINKS = "return [...document.querySelectorAll('a')].map((one) => one.protocol)"


def clean(driver: Browser) -> None:
    names = driver.js(ELEMENTS)
    assert set(names) <= set(DRAWN.split())
    assert names.count("h1") == 1
    assert set(driver.js(LINKS)) <= {"http:"}


def asked(driver: Browser, name: str, **route: str) -> None:
    """Open a link to a question, and run it."""
    view(driver, name, **route)
    driver.click("Get it" if name == "live" else "Run it")


def view(driver: Browser, name: str, **route: str) -> None:
    driver.js(
        "location.hash = `#/${arguments[0]}?${new URLSearchParams(arguments[1])}`", name, route
    )


NIGHTLY = pytest.mark.nightly(day="web/test_odd_answers.py")


def some(names: dict[str, Any], day: set[str]) -> list[Any]:
    """The names of all cases; those of the day, one for each mechanism, run by day."""
    return [pytest.param(name, marks=() if name in day else NIGHTLY) for name in names]


@pytest.mark.parametrize(
    "name", some(ODD, {"numbers for lists", "objects for texts", "nodes without a type"})
)
def test_an_odd_answer_spoils_no_view(
    driver: Browser, bus: zenlake.Session, stranger: Stranger, name: str
) -> None:
    answer = ODD[name]
    stranger.says(json.dumps(answer).encode())
    driver.open(f"{url_of(bus)}/#/map")
    # The honest node is on the map, whatever others say they are.
    driver.shows(f"router {str(bus.zid())[:8]}")
    clean(driver)
    driver.fill("input[name=key]", "a")
    driver.click("Why")
    driver.until(
        lambda: driver.js("return document.querySelector('#why, p') !== null"), "no answer"
    )
    view(driver, "health")
    driver.shows("Traffic and drops")
    driver.shows(str(bus.zid()))
    driver.shows("received messages")
    clean(driver)
    for kind, question in (("sql", "SELECT 1"), ("get", "@lake/sql"), ("get", "@journal/*/ledger")):
        asked(driver, "ask", kind=kind, q=question)
        driver.until(
            lambda: driver.js("return document.querySelector('#answer, [role=alert]') !== null"),
            "neither an answer nor a reason",
        )
        clean(driver)
    driver.shows("Views and alerts")
    asked(driver, "time")
    driver.shows("Replay from here")
    clean(driver)
    view(driver, "live")
    driver.shows("Find a key")
    assert driver.errors() == []


@pytest.mark.parametrize("node", [BARE, VNODE], ids=["without a type", "with one"])
def test_events_whose_fields_are_nodes_are_rows_of_text(
    driver: Browser, bus: zenlake.Session, stranger: Stranger, node: dict[str, Any]
) -> None:
    stranger.says(json.dumps([node, placed(node)]).encode())
    driver.open(f"{url_of(bus)}/#/health")
    driver.until(lambda: driver.js(EVENTS) >= 2, "two rows of events")
    clean(driver)
    # What was drawn before is not what is drawn for the first time.
    stranger.says(json.dumps([node, placed(node), node]).encode())
    driver.until(lambda: driver.js(EVENTS) >= 3, "three rows of events")
    clean(driver)
    assert driver.errors() == []


EVENTS = """
return document.querySelectorAll("[aria-label='Denied, refused, slow'] tbody tr").length
"""


def test_a_node_that_says_odd_things_of_itself_is_named(
    driver: Browser, bus: zenlake.Session, stranger: Stranger
) -> None:
    stranger.says(b'{"zid": "aa11", "sessions": 5}')
    driver.open(f"{url_of(bus)}/#/map")
    driver.shows("odd answer from @/odd")
    driver.shows(f"router {str(bus.zid())[:8]}")


def test_a_virtual_node_in_cbor_is_a_value_and_no_element(
    driver: Browser, bus: zenlake.Session, stranger: Stranger
) -> None:
    stranger.says(cbor(PLACED), zenlake.Encoding.APPLICATION_CBOR)
    driver.open(f"{url_of(bus)}/#/map")
    driver.shows(f"router {str(bus.zid())[:8]}")
    for name in ("health", "ask", "time", "live"):
        view(driver, name, **({"kind": "sql", "q": "SELECT 1"} if name == "ask" else {}))
        if name in ("ask", "time"):
            driver.click("Run it")
        driver.shows({"health": "Traffic", "ask": "rows in"}.get(name, "")[:7])
        clean(driver)
    bus.put("cbor/x", cbor(VNODE), encoding=zenlake.Encoding.APPLICATION_CBOR)
    view(driver, "live", key="cbor/x")
    driver.shows("dangerouslySetInnerHTML")
    clean(driver)


def cbor(value: Any) -> bytes:
    match value:
        case None:
            return b"\xf6"
        case int():
            return bytes([value])
        case str():
            data = value.encode()
            return b"\x79" + len(data).to_bytes(2, "big") + data
        case list():
            return b"\x99" + len(value).to_bytes(2, "big") + b"".join(map(cbor, value))
    pairs = b"".join(cbor(name) + cbor(inner) for name, inner in value.items())
    return b"\xb9" + len(value).to_bytes(2, "big") + pairs


PAYLOADS = {
    "json": (nested(b"[", b"1", b"]"), "application/json"),
    "json of objects": (nested(b'{"a":', b"1", b"}"), "application/json"),
    "json by its looks": (nested(b"[", b"1", b"]"), "zenoh/bytes"),
    "cbor": (nested(b"\x81", b"\x01", b""), "application/cbor"),
    "cbor without lengths": (nested(b"\x9f", b"\x01", b"\xff"), "application/cbor"),
    "msgpack": (nested(b"\x91", b"\x01", b""), "application/msgpack"),
    "a long text": (b"x" * 2_000_000, "text/plain"),
    "a wide list": (json.dumps([[[n] * 60] * 60 for n in range(30)]).encode(), "application/json"),
}


@pytest.mark.parametrize("name", some(PAYLOADS, {"json", "cbor"}))
def test_a_payload_of_any_depth_and_size_is_shown_as_far_as_it_goes(
    driver: Browser, bus: zenlake.Session, name: str
) -> None:
    payload, encoding = PAYLOADS[name]
    # A storage has it, so that it is there when the page asks, whole.
    bus.put("deep/x", payload, encoding=encoding)
    bus.put("deep/y", b'"honest"', encoding="application/json")
    driver.follow(f"{url_of(bus)}/#/live?key=deep/x", "Get it")
    driver.connects()
    driver.until(
        lambda: driver.js("return document.querySelector('#value pre') !== null"), "no value"
    )
    assert len(driver.js("return document.querySelector('#value').innerHTML")) < 2_000_000
    driver.click("History")
    driver.shows("The last hour")
    asked(driver, "live", key="deep/y")
    driver.shows('"honest"')
    asked(driver, "ask", kind="get", q="deep/*")
    driver.shows("rows in")
    asked(driver, "time", key="deep/*")
    driver.shows("keys as they were")
    assert driver.errors() == []


def test_scripts_in_keys_and_payloads_are_texts(driver: Browser, bus: zenlake.Session) -> None:
    keys = [f"script/{text.strip('/').replace('$', '').replace('//', '/')}" for text in SCRIPTS]
    for key, text in zip(keys, SCRIPTS, strict=True):
        bus.put(key, text, encoding="text/plain")
        bus.put(f"{key}/json", json.dumps({text: [text]}), encoding="application/json")
        bus.put(f"{key}/html", text, encoding=f"text/html;{text}")
    # As many chunks as a key can have.
    bus.put("/".join(["a"] * 32_000), b"1", encoding="application/json")
    driver.open(f"{url_of(bus)}/#/live")
    driver.connects()
    driver.fill("input[type=search]", "script")
    bus.put(keys[0], SCRIPTS[0], encoding="text/plain")
    driver.shows("onerror")
    clean(driver)
    driver.fill("input[type=search]", "a/a")
    clean(driver)
    for key in keys:
        for end in ("", "/json", "/html"):
            # The first was heard while the page was open.
            (view if key + end == keys[0] else asked)(driver, "live", key=key + end)
            driver.shows(key + end)
            clean(driver)
    asked(driver, "ask", kind="get", q="script/**")
    driver.shows("rows in")
    clean(driver)
    asked(driver, "time", key="script/**")
    driver.shows("keys as they were")
    clean(driver)
    assert driver.errors() == []


def test_scripts_in_rows_and_columns_of_sql_are_texts(
    driver: Browser, bus: zenlake.Session, stranger: Stranger
) -> None:
    rows = [{text: other for text in SCRIPTS} for other in SCRIPTS]
    stranger.says(json.dumps(rows).encode())
    driver.open(f"{url_of(bus)}/#/map")
    driver.connects()
    asked(driver, "ask", kind="sql", q="SELECT 1")
    driver.shows(f"{len(rows)} rows in")
    driver.until(lambda: driver.js(CELLS, "th") == [*SCRIPTS], "the names of all columns")
    assert driver.js(CELLS, "td") == [text for text in SCRIPTS for _ in SCRIPTS]
    clean(driver)
    assert driver.errors() == []


CELLS = """
return [...document.querySelectorAll(`#answer ~ * ${arguments[0]}`)].map((one) => one.textContent)
"""


def test_a_key_that_climbs_to_another_asks_for_no_other(
    driver: Browser, bus: zenlake.Session
) -> None:
    asked_for: list[str] = []

    def note(query: zenlake.Query) -> None:
        with query:
            asked_for.append(str(query.key_expr))

    key = "../../climbed/x"
    # The page gives a lake what it cannot read: /@lake/decode/<key> would be /climbed/x.
    bus.put(key, b"\xff\x00", encoding="my/own")
    with bus.declare_queryable("climbed/**", note):
        driver.open(f"{url_of(bus)}/#/map")
        asked(driver, "live", key=key)
        driver.shows("the lake: ")
        driver.until(lambda: "asking…" not in driver.text(), "what the lake says")
        assert asked_for == []
        assert "'..'" in driver.text()
        asked(driver, "ask", kind="get", q=key)
        driver.shows("1 rows in")
        assert asked_for == []


def test_a_value_is_no_script_of_the_page(driver: Browser, bus: zenlake.Session) -> None:
    bus.put("evil/script", "window.ran.push('evil')", encoding="text/javascript")
    driver.open(f"{url_of(bus)}/#/live")
    driver.connects()
    done = driver.driver.execute_async_script("""
        const done = arguments[0], made = document.createElement("script");
        made.onload = () => done("loaded"); made.onerror = () => done("refused");
        made.src = "/evil/script?_raw"; document.head.append(made);
    """)
    assert done == "refused"
