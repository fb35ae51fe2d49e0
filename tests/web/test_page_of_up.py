"""`zenlake up` as its users meet it: an Eclipse client, tables, and the page in a real browser.

One test, for starting Spark takes long: what the page asks of a lake, a real one answers.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest
import zenoh
from rosbags.typesys import Stores, get_typestore
from selenium.webdriver.common.keys import Keys

from tests.cli.programs import endpoint
from tests.cli.test_up import Up, got, put, rows
from tests.waiting import SECONDS, until
from tests.web.browser import Browser, start

pytestmark = [
    pytest.mark.nightly(day="web/test_page.py, cli/test_up.py, docs/test_prose.py"),
    pytest.mark.interop,
    pytest.mark.slow,
    pytest.mark.spark,
    pytest.mark.timeout(600),
]

LAKE = """{
  tables: {battery: {format: "robot/${id}/battery"}},
  rollups: {every: "3s"},
}"""
STORE = get_typestore(Stores.ROS2_JAZZY)
POINT = "geometry_msgs/msg/Point"
TOPIC = f"0/arm/geometry_msgs::msg::dds_::Point_/{STORE.hash_rihs01(POINT)}"
SQL = (
    "SELECT id, window(time, '1 second').start AS at, avg(percent) AS percent FROM battery "
    "GROUP BY ALL ORDER BY at"
)


class Robots:
    """An Eclipse client that is two robots: batteries as JSON, and an arm that speaks ROS 2.

    They speak when they are told to, for a lake that hears something all the time commits it every
    ten seconds, and at once what it hears now and then.
    """

    def __init__(self, where: str) -> None:
        config = zenoh.Config()
        config.insert_json5("mode", '"client"')
        config.insert_json5("connect/endpoints", json.dumps([where]))
        config.insert_json5("scouting/multicast/enabled", "false")
        self.session = zenoh.open(config)
        #: Numbered, so that what is missing can be known.
        self.numbered = self.session.declare_publisher("robot/9/battery")
        self._pace = threading.Event()

    def speak(self, charge: float, times: int) -> None:
        """Publish how full the batteries are and where the arm is, ten times a second."""
        for number in range(times):
            for robot in ("ada", "bob"):
                told = json.dumps({"percent": charge - number % 7})
                self.session.put(f"robot/{robot}/battery", told, encoding="application/json")
            point = STORE.types[POINT](x=number / 2, y=0.25, z=-1.0)
            self.session.put(TOPIC, bytes(STORE.serialize_cdr(point, POINT)))
            self._pace.wait(0.1)

    def lose(self) -> None:
        """Publish 0, 1 and 4: somebody has lost two."""
        for number in (0, 1, 4):
            source = zenoh.SourceInfo(self.numbered.id, number)
            self.numbered.put('{"percent": 50}', encoding="application/json", source_info=source)


@contextmanager
def robots(where: str) -> Iterator[Robots]:
    made = Robots(where)
    try:
        yield made
    finally:
        made.session.close()  # type: ignore[no-untyped-call]


@pytest.fixture
def page(tmp_path: Path) -> Iterator[Browser]:
    made = start(tmp_path / "profile")
    try:
        yield Browser(made)
    finally:
        made.quit()


def test_what_an_eclipse_client_puts_is_in_tables_on_the_page_and_there_after_a_restart(
    tmp_path: Path, page: Browser
) -> None:
    data, where = tmp_path / "data", endpoint()
    lake = data / "lake"
    lake.mkdir(parents=True)
    (lake / "lake.json5").write_text(LAKE)
    # First without a lake, for one that is stopped and goes on is in `tests/lake`, and takes long.
    before = Up(data, where, "--no-lake")
    with before.program as program:
        before.ready()
        put(where, "robot/7/battery", '{"percent": 1}')
        assert program.interrupt() == 130
    up = Up(data, where, "--rest-http-port", "127.0.0.1:0")
    with up.program as program:
        told = up.ready()
        assert len(told["try"]) == 6
        page.follow(f"{told['page']}/#/ask?kind=sql&q=SELECT+1")
        page.shows("No lake answers here")
        with robots(where) as alive:
            # While Spark starts: what is put meanwhile waits in the journal.
            put(where, "robot/7/battery", '{"percent": 2}')
            alive.lose()
            alive.speak(80.0, 12)
            up.all_ready()
            until(lambda: sorted(seven(lake)) == [1, 2], "each once")
            assert got(where, "robot/7/**") == ['robot/7/battery {"percent": 2}']
            assert len(got(where, "robot/7/**?_time=[now(-10m)..]")) == 2
            until(lambda: {"ada", "bob"} <= known(lake), "the robots are in their table", 120)
            shown(page, told["page"], alive)
        assert sorted(seven(lake)) == [1, 2]
        family = up.family()
        assert len(family) >= 3
        assert program.interrupt() == 130
    psutil.wait_procs(family, timeout=SECONDS)
    assert [one for one in family if one.is_running()] == []


def seven(lake: Path) -> list[Any]:
    return [row["percent"] for row in rows(lake, "battery") if row["id"] == "7"]


def known(lake: Path) -> set[str]:
    return {row["id"] for row in rows(lake, "battery")}


def shown(page: Browser, url: str, alive: Robots) -> None:
    """The page, view by view."""
    asked(page, url)
    views_and_alerts(page, url, alive)
    decoded(page, url)
    gone_by(page, url)
    # What was refused above the browser tells too.
    assert [one for one in page.errors() if "Failed to load resource" not in one] == []


def asked(page: Browser, url: str) -> None:
    page.open(f"{url}/#/ask")
    page.click("battery")
    page.shows("percent")
    page.fill("textarea", "")
    box = page.driver.find_element("css selector", "textarea")
    box.send_keys("SELECT id, avg(perc", Keys.TAB, ") FROM batt", Keys.TAB)
    assert box.get_property("value") == "SELECT id, avg(percent ) FROM battery "
    page.fill("textarea", SQL)
    box.send_keys(Keys.CONTROL, Keys.ENTER)
    page.until(lambda: answered(page), "an answer", 120)
    page.until(lambda: "percent of ada" in legend(page), "a line for each robot")
    assert "percent of bob" in legend(page)
    page.shows("samples are missing")
    assert "q=SELECT" in page.driver.current_url
    link = page.js("return document.querySelector('#answer a[download]').href")
    assert httpx.get(link, trust_env=False, timeout=60).text.startswith("id,at,percent\r\n")
    page.fill("textarea", "SELECT * FROM nothing")
    page.click("Run")
    page.shows("nothing")
    assert page.js("return document.querySelector('[role=alert]').textContent")


def answered(page: Browser) -> bool:
    """Whether there is one; a busy machine may take longer than a question may, the first time."""
    if page.js("return document.querySelector('.card [role=alert]') !== null"):
        page.click("Run")
    return "rows in" in page.text()


def legend(page: Browser) -> str:
    return str(page.js("return document.querySelector('.u-legend')?.innerText ?? ''"))


def views_and_alerts(page: Browser, url: str, alive: Robots) -> None:
    page.open(f"{url}/#/ask")
    page.shows("No views or alerts here yet")
    page.click("Make a view or an alert")
    page.fill("#create [name=name]", "busy")
    page.fill("#create [name=sql]", "SELECT id FROM battery; DROP TABLE battery")
    page.click("Create")
    page.until(lambda: page.js("return document.querySelector('#create ~ .bad, #create .bad')"), "")
    page.fill("#create [name=sql]", "SELECT id, count(*) AS n FROM battery GROUP BY id")
    page.click("Create")
    page.until(lambda: "running" in listed(page), "the view runs", 60)
    page.choose("#create [name=kind]", "alert")
    page.fill("#create [name=name]", "low")
    page.fill("#create [name=sql]", "SELECT id, percent FROM battery WHERE percent < 20")
    page.click("Create")
    page.until(lambda: listed(page).count("running") == 2, "the alert runs", 60)
    alive.speak(15.0, 3)
    page.until(lambda: "raised" in listed(page), "the alert is raised", 60)
    page.click("Back-test a day")
    page.until(lambda: "would have been raised" in listed(page), "it is tried", 60)
    assert "never" not in listed(page)
    page.click("busy")
    page.shows("view/busy/ada")
    page.click("Drop")
    page.click("Drop busy and its table")
    page.until(lambda: "busy" not in listed(page), "the view is dropped", 60)
    assert "low" in listed(page)


def listed(page: Browser) -> str:
    return str(page.js("return document.querySelector('#continuous')?.innerText ?? ''"))


def decoded(page: Browser, url: str) -> None:
    """A message of ROS 2, its numbers, and charts of the last minutes and of hours."""
    page.follow(f"{url}/#/live?key={TOPIC}", "Get it")
    page.shows("y: 0.25")
    page.js("document.querySelector('#value button.number').click()")
    page.until(lambda: points(page) > 5, "samples of the table and of now")
    page.shows("of the table arm")
    page.choose("#span", "3600")
    page.shows("by minute, of rollups")
    page.until(lambda: "greatest" in legend(page), "lines of the least and the greatest")
    page.follow(f"{url}/#/live?key=robot/ada/battery", "Get it")
    page.shows("percent")
    page.js("document.querySelector('#value button.number').click()")
    page.until(lambda: points(page) > 5, "samples that were recorded")
    page.choose("#span", "86400")
    page.shows("by minute, of rollups")


def points(page: Browser) -> int:
    return int(page.js("return document.querySelector('.chart')?.dataset.points ?? 0"))


def gone_by(page: Browser, url: str) -> None:
    """The past, by the lake, with marks where something was lost and an alert was raised."""
    page.follow(f"{url}/#/time?key=robot/*/battery&span=600")
    page.shows("keys as they were, by the lake")
    page.shows("/data/lake -e tcp/")  # the line that replays it
    page.until(lambda: "gaps and" in page.text(), "the gap is marked")
    assert "0 alerts" not in page.text()
    before = page.js("return document.querySelector('#instant').textContent")
    page.js("document.querySelector('#marks button').click()")
    page.until(
        lambda: page.js("return document.querySelector('#instant').textContent") != before,
        "the mark leads to its time",
    )
    page.until(lambda: page.js(OLDER), "nothing is shown that came later")


OLDER = """
const instant = document.querySelector('#instant').textContent;
const since = [...document.querySelectorAll('#past td:last-child')].map((one) => one.textContent);
return since.length > 0 && since.every((one) => one <= instant);
"""
