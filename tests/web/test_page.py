"""The web page in a real browser, on a real router, with a real Eclipse publisher."""

from __future__ import annotations

import json
import os
import subprocess
import threading
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from selenium.webdriver.common.keys import Keys

import zenlake
from tests.api.sessions import listening, where
from tests.remote import node
from tests.web.browser import Browser, start
from zenlake.rest import RestService

pytestmark = [pytest.mark.interop, pytest.mark.slow, pytest.mark.timeout(600)]

ROOT = Path(__file__).resolve().parents[2]
#: Where pictures go: into the documentation if asked, else into a folder that is thrown away.
PICTURES = os.environ.get("ZENLAKE_PICTURES", "")
AXE = "axe-core@4.14.0"


def plugins(port: int = 0) -> str:
    storage = {"key_expr": "**", "volume": "memory", "history": "all"}
    return json.dumps(
        {
            "rest": {"http_port": f"127.0.0.1:{port}"},
            "storage_manager": {"storages": {"all": storage}},
        }
    )


def router(port: int = 0) -> zenlake.Session:
    return listening(
        mode='"router"', adminspace__enabled="true", plugins=plugins(port),
        timestamping__enabled="true",
    )  # fmt: skip


def url_of(session: zenlake.Session) -> str:
    service = session._runtime.services["zenlake.rest"]
    assert isinstance(service, RestService)
    return service.url


class Eclipse:
    """An Eclipse client that publishes two robots, ten times a second."""

    def __init__(self, place: str) -> None:
        import zenoh

        config = zenoh.Config()
        config.insert_json5("mode", '"client"')
        config.insert_json5("connect/endpoints", json.dumps([place]))
        config.insert_json5("scouting/multicast/enabled", "false")
        self.session = zenoh.open(config)
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._publish)
        self._thread.start()

    def _publish(self) -> None:
        number = 0
        while not self._over.wait(0.1):
            number += 1
            for robot in ("ada", "bob"):
                value = {"battery": 90 - number % 50, "pose": {"x": number, "y": -number}}
                self.session.put(
                    f"robot/{robot}/state", json.dumps(value), encoding="application/json"
                )

    def close(self) -> None:
        self._over.set()
        self._thread.join()
        self.session.close()  # type: ignore[no-untyped-call]


@pytest.fixture(scope="module")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    made = start(tmp_path_factory.mktemp("profile"))
    try:
        yield Browser(made)
    finally:
        made.quit()


@pytest.fixture(scope="module")
def bus() -> Iterator[zenlake.Session]:
    with router() as session:
        yield session


@pytest.fixture(scope="module")
def eclipse(bus: zenlake.Session) -> Iterator[Eclipse]:
    made = Eclipse(where(bus))
    try:
        yield made
    finally:
        made.close()


@pytest.fixture(scope="module")
def pictures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return ROOT / "docs" / "pictures" if PICTURES else tmp_path_factory.mktemp("pictures")


@pytest.fixture(scope="module")
def axe() -> str:
    """The source of axe-core, from npm, kept in a cache."""
    folder = node.CACHE / AXE
    file = folder / "node_modules" / "axe-core" / "axe.min.js"
    if not file.exists():
        folder.mkdir(parents=True, exist_ok=True)
        subprocess.run(
            [*node.npm(), "install", "--no-audit", "--no-fund", "--ignore-scripts", AXE],
            cwd=folder, check=True, capture_output=True, timeout=200,
        )  # fmt: skip
    return file.read_text("utf-8")


CHECK = """
const done = arguments[arguments.length - 1];
axe.run(document, { resultTypes: ["violations"] }).then((found) => done(found.violations
  .filter((one) => ["serious", "critical"].includes(one.impact))
  .map((one) => one.id + ": " + one.nodes.slice(0, 3).map((n) => n.html).join(" | "))));
"""


def check(driver: Browser, axe: str) -> None:
    driver.js(axe)
    found: Any = driver.driver.execute_async_script(CHECK)
    assert found == [], "\n".join(found)


def test_a_live_value_is_shown_within_a_second(
    driver: Browser, bus: zenlake.Session, eclipse: Eclipse, pictures: Path, axe: str
) -> None:
    driver.open(f"{url_of(bus)}/#/live")
    driver.shows("connected")
    driver.shows("robot")
    driver.click("robot")
    driver.click("ada")
    driver.click("state")
    driver.shows("battery")
    eclipse.session.put("page/now", "fresh value", encoding="text/plain")
    assert driver.until(lambda: "page" in driver.text(), "the new key") < 1.0
    driver.js("[...document.querySelectorAll('#value button.number')][1].click()")
    driver.until(
        lambda: int(driver.js("return document.querySelector('.chart')?.dataset.points ?? 0")) > 5,
        "the chart did not fill",
    )
    driver.click("History")
    driver.shows("The last hour")
    driver.picture(pictures / "live.png")
    check(driver, axe)
    assert driver.errors() == []


def test_a_value_is_published_from_the_page(
    driver: Browser, bus: zenlake.Session, eclipse: Eclipse
) -> None:
    heard = threading.Event()
    got: list[bytes] = []

    def hear(sample: Any) -> None:
        got.append(sample.payload.to_bytes())
        heard.set()

    subscriber = eclipse.session.declare_subscriber("page/command", hear)
    driver.open(f"{url_of(bus)}/#/live?key=page/command")
    driver.shows("no storage, recorder or queryable answers")
    driver.fill("input[name=value]", '{"go": true}')
    driver.click("Put")
    assert heard.wait(10)
    assert got == [b'{"go": true}']
    driver.shows("go: true")
    subscriber.undeclare()  # type: ignore[no-untyped-call]


def test_questions_have_addresses_tables_and_charts(
    driver: Browser, bus: zenlake.Session, eclipse: Eclipse, pictures: Path, axe: str
) -> None:
    def answer(query: zenlake.Query) -> None:
        assert query.payload is not None
        rows = [
            {"robot": robot, "time": f"2026-01-01T00:00:0{n}Z", "avg": n * 1.5 + place}
            for n in range(9)
            for place, robot in enumerate(("ada", "bob"))
        ]
        proof = {"complete": False, "sources": [{"missing": 2}]}
        if "FROM nothing" in query.payload.to_string():
            why = json.dumps({"error": "there is no table 'nothing'"})
            query.reply_err(why, encoding="application/json")
        else:
            told = json.dumps({"rows": rows, "proof": proof})
            query.reply("@lake/sql", told, encoding="application/json")

    driver.open(f"{url_of(bus)}/#/ask?kind=get&q=robot/**")
    driver.shows("2 rows in")
    driver.open(f"{url_of(bus)}/#/ask?kind=sql&q=SELECT+1")
    driver.shows("No lake answers here")
    facts = json.dumps({"columns": {"battery": "double"}, "rows": 9, "version": 1})

    def describe(query: zenlake.Query) -> None:
        query.reply("@lake/tables/state", facts, encoding="application/json")

    with (
        bus.declare_queryable("@lake/sql", answer),
        bus.declare_queryable("@lake/tables/**", describe),
    ):
        driver.open(f"{url_of(bus)}/#/ask?kind=sql&q=SELECT+2")
        driver.click("state")
        driver.shows("battery")
        driver.fill("textarea", "")
        box = driver.driver.find_element("css selector", "textarea")
        box.send_keys("SELECT robot, time, avg(bat", Keys.TAB, ") FROM sta", Keys.TAB)
        assert box.get_property("value") == "SELECT robot, time, avg(battery ) FROM state "
        box.send_keys("GROUP BY robot, time")
        box.send_keys(Keys.CONTROL, Keys.ENTER)
        driver.shows("18 rows in")
        driver.shows("incomplete: 2 samples are missing")
        legend = driver.js("return document.querySelector('.u-legend').innerText")
        assert "avg of ada" in legend
        assert "avg of bob" in legend
        driver.shows("2026-01-01T00:00:08Z")
        assert driver.js("return document.querySelector('.chart').dataset.points") == "9"
        assert "q=SELECT" in driver.driver.current_url
        check(driver, axe)
        driver.fill("textarea", "SELECT * FROM nothing")
        driver.click("Run")
        driver.shows("there is no table 'nothing'")


def test_the_slider_shows_the_past(
    driver: Browser, bus: zenlake.Session, eclipse: Eclipse, axe: str
) -> None:
    bus.put("past/one", "first", encoding="text/plain")
    driver.open(f"{url_of(bus)}/#/time?key=past/**&span=60")
    driver.click("Now")
    driver.shows("first")
    before = driver.js("return document.querySelector('#slider').value")
    bus.put("past/one", "second", encoding="text/plain")

    def looked() -> bool:
        driver.click("Now")
        return "second" in driver.text()

    driver.until(looked, "the second value")
    driver.js(
        "const s = document.querySelector('#slider'); s.min = arguments[0] - 60000; "
        "s.step = 1; s.value = arguments[0]; "
        "s.dispatchEvent(new Event('input', { bubbles: true }));",
        int(before),
    )
    driver.shows("first")
    assert "--prefix replay" in driver.text()
    check(driver, axe)


def test_gaps_and_alerts_are_marks_that_lead_to_their_time(
    driver: Browser, bus: zenlake.Session
) -> None:
    lost = time.time() - 30

    def answer(query: zenlake.Query) -> None:
        at = datetime.fromtimestamp(lost, UTC).isoformat()
        gaps = [{"key": "robot/ada/state", "first": 4, "last": 5, "at": at}]
        query.reply("@lake/sql", json.dumps(gaps), encoding="application/json")

    bus.put("alert/low/ada", '{"battery": 3}', encoding="application/json")
    with bus.declare_queryable("@lake/sql", answer):
        driver.open(f"{url_of(bus)}/#/time?key=robot/**&span=60")
        driver.shows("1 gaps and 1 alerts in this span")
        driver.js("document.querySelector('#marks button').click()")
        instant = datetime.fromtimestamp(int(lost * 1000) / 1000, UTC)
        driver.shows(f"{instant:%Y-%m-%dT%H:%M:%S}")


def test_views_and_alerts_are_listed_with_how_they_are(
    driver: Browser, bus: zenlake.Session
) -> None:
    def answer(query: zenlake.Query) -> None:
        told = {"name": "busy", "sql": "SELECT key FROM samples", "state": "running"}
        query.reply("@lake/views/busy", json.dumps(told), encoding="application/json")

    def alerts(query: zenlake.Query) -> None:
        facts: dict[str, object] = {"name": "low", "sql": "SELECT id", "state": "running"}
        if "_time" in str(query.parameters):
            change = {"time": "2026-01-31T12:00:00+00:00", "state": "raised", "key": "a"}
            facts = {"name": "low", "changes": [change, {**change, "state": "cleared"}]}
        query.reply("@lake/alerts/low", json.dumps(facts), encoding="application/json")

    with (
        bus.declare_queryable("@lake/views/**", answer),
        bus.declare_queryable("@lake/alerts/**", alerts),
    ):
        driver.open(f"{url_of(bus)}/#/ask")
        driver.shows("busy")
        driver.shows("SELECT key FROM samples")
        driver.click("Back-test a day")
        driver.shows("would have been raised once")
        driver.click("2026-01-31T12:00:00+00:00")
        driver.shows("The instant: 2026-01-31T12:00:00.000Z")


def tall(driver: Browser, what: str) -> bool:
    high = driver.js("return document.querySelector(arguments[0])?.clientHeight ?? 0", what)
    return int(high) > 60


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_phone_has_room_for_everything(
    driver: Browser, bus: zenlake.Session, eclipse: Eclipse, axe: str, scheme: str
) -> None:
    features = [{"name": "prefers-color-scheme", "value": scheme}]
    driver.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
    phone = {"width": 390, "height": 844, "deviceScaleFactor": 1, "mobile": True}
    driver.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", phone)
    try:
        driver.open(f"{url_of(bus)}/#/live?key=robot/ada/state")
        driver.shows("battery")
        for view, what in (("live", ".rows"), ("map", "svg.map"), ("ask", "textarea")):
            driver.open(f"{url_of(bus)}/#/{view}")
            driver.until(partial(tall, driver, what), f"room for {what}")
            wide = driver.js("return document.documentElement.scrollWidth")
            assert wide <= 390, f"{view} is {wide} wide"
        ink = driver.js("return getComputedStyle(document.body).backgroundColor")
        assert ink == ("rgb(15, 22, 29)" if scheme == "dark" else "rgb(247, 248, 250)")
        check(driver, axe)
    finally:
        driver.driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
        driver.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})


def test_the_keyboard_is_enough(driver: Browser, bus: zenlake.Session, eclipse: Eclipse) -> None:
    driver.open(f"{url_of(bus)}/#/live")
    driver.shows("robot")
    body = driver.driver.find_element("css selector", "body")
    body.send_keys(Keys.ALT, "3")
    driver.until(lambda: "#/ask" in driver.driver.current_url, "Alt+3 leads to Ask")
    body.send_keys(Keys.ALT, "1")
    driver.shows("Find a key")
    driver.js("document.querySelector('.row').focus()")
    active = driver.driver.switch_to.active_element
    active.send_keys(Keys.ENTER)
    driver.shows("ada")
    active.send_keys(Keys.ARROW_DOWN)
    told = driver.js("return document.activeElement.querySelector('.name').textContent")
    assert told == "ada"


def test_map_and_health_show_the_node_and_say_what_to_start(
    driver: Browser, bus: zenlake.Session, eclipse: Eclipse, pictures: Path, axe: str
) -> None:
    driver.open(f"{url_of(bus)}/#/map")
    driver.until(
        lambda: driver.js("return document.querySelectorAll('svg.map g').length") >= 2, "two nodes"
    )
    driver.js(
        "[...document.querySelectorAll('svg.map g')].find((g) => g.ariaLabel.startsWith('router'))"
        ".dispatchEvent(new MouseEvent('click', { bubbles: true }))"
    )
    driver.shows(f"router {bus.zid()}")
    driver.until(lambda: "B/s" in driver.text(), "the traffic of a session")
    driver.fill("input[name=key]", "robot/ada/state")
    driver.click("Why")
    driver.shows("publisher: there")
    driver.shows("subscriber: there")
    driver.fill("input[name=key]", "nobody/says/this")
    driver.click("Why")
    driver.shows("nobody has declared one, and nothing was heard")
    driver.picture(pictures / "map.png")
    check(driver, axe)
    driver.open(f"{url_of(bus)}/#/health")
    driver.shows("zenlake v")
    driver.shows("No journal is recorded here")
    driver.picture(pictures / "health.png")
    check(driver, axe)
    assert driver.errors() == []


FRAMES = """
const done = arguments[arguments.length - 1];
const times = []; let last = performance.now(), at = 0;
const box = document.querySelector('.rows');
const step = (now) => {
  times.push(now - last); last = now; at += 400; box.scrollTop = at % 200000;
  times.length < 90 ? requestAnimationFrame(step) : done(times);
};
requestAnimationFrame(step);
"""


def known(driver: Browser, many: int) -> bool:
    return int(driver.js("return window.zenlake.keys.keys.size")) >= many


def test_ten_thousand_keys_scroll_without_jank(driver: Browser) -> None:
    with router() as bus:
        driver.open(f"{url_of(bus)}/#/live")
        driver.shows("connected")
        publisher = [f"many/{n // 100}/{n}" for n in range(10_000)]
        for number in range(0, 10_000, 500):
            for key in publisher[number : number + 500]:
                bus.put(key, str(number), encoding="text/plain")
            many = int(0.9 * (number + 500))
            driver.until(partial(known, driver, many), f"{many} keys")
        driver.fill("input[type=search]", "many")
        driver.until(
            lambda: driver.js("return document.querySelector('.rows').scrollHeight") > 200_000,
            "the tree of all keys",
        )
        frames: list[float] = driver.driver.execute_async_script(FRAMES)
        rendered = driver.js("return document.querySelectorAll('.row').length")
        assert rendered < 100
        frames.sort()
        median, worst = frames[len(frames) // 2], frames[int(len(frames) * 0.95)]
        print(f"frames: median {median:.1f} ms, 95 % below {worst:.1f} ms")
        assert median < 50, frames


def test_the_page_comes_back_when_the_router_does(driver: Browser) -> None:
    with router() as bus:
        url = url_of(bus)
        driver.open(f"{url}/#/live")
        driver.until(lambda: driver.js("return window.zenlake.keys.connected"), "connected")
    driver.shows("not connected")
    with router(int(url.rpartition(":")[2])) as bus:
        driver.until(lambda: driver.js("return window.zenlake.keys.connected"), "connected again")
        bus.put("again/here", "back", encoding="text/plain")
        driver.shows("again")


def test_the_page_asks_nobody_else_for_anything() -> None:
    folder = ROOT / "src" / "zenlake" / "web"
    for file in folder.glob("*.*"):
        if file.suffix in (".js", ".html", ".css"):
            text = file.read_text("utf-8")
            assert "http://" not in text, file
            assert "https://" not in text, file
    assert (folder / "vendor" / "LICENSES.txt").is_file()
