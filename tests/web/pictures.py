"""The three minutes of the tutorial, for real, and their pictures for the documentation.

    python -m tests.web.pictures [FOLDER]

Starts `zenlake up` and `zenlake demo fleet`, does in a browser what `docs/tutorial/fleet.md` tells
step by step, and fails where something is not seen that must be. Pictures go to `docs/pictures`.
"""

from __future__ import annotations

import json
import signal
import socket
import sys
import tempfile
import threading
import time
from contextlib import ExitStack, suppress
from pathlib import Path
from urllib.parse import quote

import duckdb
import httpx
import zenoh
from deltalake import DeltaTable

from tests.cli.programs import ROOT, command, endpoint
from tests.cli.test_up import Up
from tests.web.browser import Browser, start

SQL = (
    "SELECT id, window(time, '5 seconds').start AS at, avg(percent) AS percent\n"
    "FROM battery GROUP BY ALL ORDER BY at"
)


class Plug:
    """A cable between robots and router that can be pulled."""

    def __init__(self, router: str) -> None:
        """Programs connect to `endpoint`."""
        host, _, port = router.removeprefix("tcp/").rpartition(":")
        self._router = (host, int(port))
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=64)
        self.endpoint = f"tcp/127.0.0.1:{self._listener.getsockname()[1]}"
        self.pulled = False
        self._open: set[socket.socket] = set()
        threading.Thread(target=self._accept, daemon=True).start()

    def pull(self, seconds: float) -> None:
        """Nothing passes for so long; who is connected finds out."""
        self.pulled = True
        for one in list(self._open):
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
        time.sleep(seconds)
        self.pulled = False

    def _accept(self) -> None:
        while True:
            near, _ = self._listener.accept()
            if self.pulled:
                near.close()
                continue
            far = socket.create_connection(self._router)
            for one, other in ((near, far), (far, near)):
                self._open.add(one)
                threading.Thread(target=self._pass, args=(one, other), daemon=True).start()

    def _pass(self, one: socket.socket, other: socket.socket) -> None:
        with suppress(OSError):
            while data := one.recv(1 << 16):
                other.sendall(data)
        self._open.discard(one)
        for end in (one, other):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)


def points(page: Browser) -> int:
    return int(page.js("return document.querySelector('.chart')?.dataset.points ?? 0"))


def missing(url: str) -> int:
    """How many samples the recorder misses just now."""
    ledgers = httpx.get(f"{url}/@journal/*/ledger", trust_env=False).json()
    return sum(int(one["value"]["totals"]["missing"]) for one in ledgers)


def told(step: int, words: str) -> None:
    print(f"{step}. {words}", flush=True)


def phone(page: Browser, on: bool, scheme: str = "") -> None:
    """A narrow screen, and dark or light."""
    features = [{"name": "prefers-color-scheme", "value": scheme}] if scheme else []
    page.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
    if on:
        size = {"width": 390, "height": 844, "deviceScaleFactor": 2, "mobile": True}
        page.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    else:
        page.driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def main(folder: Path) -> None:
    with ExitStack() as stack:
        scratch = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        where, data = endpoint(), scratch / "zenlake-data"
        up = Up(data, where, "--rest-http-port", "127.0.0.1:0")
        stack.enter_context(up.program)
        url = up.ready()["page"]
        driver = start(scratch / "profile")
        stack.callback(driver.quit)
        page = Browser(driver)
        page.open(f"{url}/#/live")
        page.connects()
        told(1, f"up: the router is there, the page at {url}")

        plug = Plug(where)
        fleet = command("demo", "fleet", "--robots", "5", "--rate", "5", "-e", plug.endpoint)
        stack.enter_context(fleet)
        page.shows("robot", 60)
        page.open(f"{url}/#/live?key=robot/1/pose")
        page.shows("x:", 60)
        page.js("document.querySelector('#value button.number').click()")
        page.until(lambda: points(page) > 20, "a chart of a robot", 60)
        page.picture(folder / "live.png")
        told(2, "robots drive on the page, live")
        page.open(f"{url}/#/map")
        page.until(lambda: page.js("return document.querySelectorAll('svg.map g').length") > 5, "")
        page.until(lambda: "B/s" in page.text(), "traffic on the map")
        page.picture(folder / "map.png")

        up.all_ready()
        page.follow(f"{url}/#/ask?kind=sql&every=5&q={quote(SQL)}")
        page.until(lambda: points(page) > 2, "a chart of an answer", 120)
        first = points(page)
        page.until(lambda: points(page) > first, "the chart moves", 120)
        page.picture(folder / "ask.png")
        told(3, f"SQL on the page: {first} points, then {points(page)}: the chart moves")

        config = zenoh.Config()
        config.insert_json5("mode", '"client"')
        config.insert_json5("connect/endpoints", json.dumps([where]))
        with zenoh.open(config) as client:
            replies = [r.ok for r in client.get("robot/**?_time=[now(-10s)..]") if r.ok]
        assert len(replies) > 50
        told(4, f"Eclipse's get of the last ten seconds: {len(replies)} samples")

        page.open(f"{url}/#/ask")
        page.click("Make a view or an alert")
        page.fill("#create [name=name]", "hot")
        page.choose("#create [name=kind]", "alert")
        page.fill("#create [name=sql]", "SELECT id, percent FROM battery WHERE percent < 90")
        page.click("Create")
        page.until(lambda: "raised" in page.text(), "an alert is raised", 120)
        page.js("document.querySelector('#create').scrollIntoView({ block: 'end' })")
        page.picture(folder / "alert.png")

        page.open(f"{url}/#/health")
        page.shows("nothing is missing", 60)
        pulled = threading.Thread(target=plug.pull, args=(10.0,))
        pulled.start()
        page.until(lambda: missing(url), "samples are missing", 60)
        # A gap is healed within a blink: the robots hold their breath for the picture.
        fleet.process.send_signal(signal.SIGSTOP)
        try:
            page.until(lambda: "samples are missing" in page.text(), "the gap is seen", 8)
            page.js("document.querySelector('[aria-label=Ledger]').scrollIntoView()")
            page.picture(folder / "gap.png")
        finally:
            fleet.process.send_signal(signal.SIGCONT)
        pulled.join()
        page.until(lambda: "healed" in page.text(), "it is healed", 60)
        page.until(lambda: "nothing is missing" in page.text(), "nothing is lost", 60)
        page.open(f"{url}/#/health")
        page.shows("healed", 60)
        page.connects()
        page.picture(folder / "health.png")
        healed = page.js("return document.querySelector('[aria-label=Ledger] p').innerText")
        told(5, f"the plug was out for ten seconds: {healed}")

        past = quote("robot/*/battery", safe="")
        page.follow(f"{url}/#/time?key={past}&span=600&at={int((time.time() - 30) * 1000)}")
        page.shows("keys as they were, by the lake", 60)
        page.connects()
        page.picture(folder / "time.png")
        replay = ("replay", "SELECT * FROM samples WHERE key LIKE 'robot/%/pose'", "--speed", "4")
        lake = ("--lake", str(data / "lake"), "-e", where)
        ghosts = stack.enter_context(command(*replay, "--prefix", "replay", "--loop", *lake))
        page.open(f"{url}/#/live?key=replay/robot/1/pose")
        page.shows("x:", 120)
        page.until(lambda: "/s" in page.text(), "the rate of ghosts")
        time.sleep(2)
        page.picture(folder / "replay.png")
        told(6, "ghosts drive beside the live robots")
        ghosts.interrupt()

        table = DeltaTable(str(data / "lake" / "battery")).to_pyarrow_dataset()
        with duckdb.connect() as connection:
            connection.register("battery", table)
            rows = connection.sql("SELECT id, min(percent) FROM battery GROUP BY id").fetchall()
        assert len(rows) == 5
        told(7, f"DuckDB reads the folder: {sorted(rows)}")

        phone(page, True, "dark")
        page.open(f"{url}/#/live?key=robot/1/pose")
        page.shows("x:")
        page.connects()
        page.js("document.querySelector('#value button.number').click()")
        page.until(lambda: points(page) > 5, "a chart on a phone", 60)
        page.picture(folder / "phone.png")
        phone(page, False, "dark")
        page.follow(f"{url}/#/ask?kind=sql&q={quote(SQL)}")
        page.until(lambda: points(page) > 2, "a chart in the dark", 60)
        page.connects()
        page.picture(folder / "dark.png")
        assert [e for e in page.errors() if "Failed to load" not in e] == []
        fleet.interrupt()
        up.program.interrupt()


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "docs" / "pictures")
