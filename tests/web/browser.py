"""Debian's Chromium and its driver, installed by apt where we may."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from selenium import webdriver
from selenium.webdriver.chrome.options import Options
from selenium.webdriver.chrome.service import Service

from tests.installed import installed, which
from tests.waiting import SECONDS

FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--window-size=1280,800", "--disable-dev-shm-usage",
)  # fmt: skip


def start(profile: Path, *flags: str) -> webdriver.Chrome:
    """A browser with a profile of its own."""
    debian = "chromium chromium-driver"
    driver = installed(debian, lambda: which("chromedriver"))
    browser = installed(debian, lambda: which("chromium"))
    options = Options()
    options.binary_location = browser
    for flag in (*FLAGS, *flags, f"--user-data-dir={profile}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    found = webdriver.Chrome(options=options, service=Service(driver))
    found.set_script_timeout(30)
    return found


STATE = "return document.querySelector('#state')?.textContent"


class Browser:
    """A page, and what a person does with it."""

    def __init__(self, driver: webdriver.Chrome) -> None:
        self.driver = driver

    def open(self, url: str) -> None:
        self.driver.get("about:blank")
        self.driver.get(url)

    def follow(self, url: str, press: str = "Run it") -> None:
        """Open a link to a question, which the page asks when a person presses the button."""
        self.open(url)
        self.click(press)

    def js(self, code: str, *arguments: object) -> Any:
        return self.driver.execute_script(code, *arguments)

    def text(self) -> str:
        return str(self.js("return document.body.innerText"))

    def until(self, holds: Callable[[], object], what: str, seconds: float = SECONDS) -> float:
        """Wait until something holds, and say how long it took."""
        began = time.monotonic()
        while not holds():
            took = time.monotonic() - began
            assert took < seconds, f"{what} within {seconds} s; the page shows:\n{self.text()}"
            time.sleep(0.01)
        return time.monotonic() - began

    def shows(self, text: str, seconds: float = SECONDS) -> float:
        return self.until(lambda: text in self.text(), f"'{text}' was not shown", seconds)

    def enter(self, token: str) -> None:
        """Say who one is, to a node that asks."""
        self.shows("Your token")
        self.fill("input[name=token]", token)
        self.click("Enter")
        self.connects()

    def connects(self) -> None:
        """Wait until the page hears the bus; it says `not connected` before."""
        self.until(lambda: self.js(STATE) == "connected", "connected")

    def click(self, text: str) -> None:
        """Click the button or link with this very text."""
        self.until(lambda: self.js(CLICK, text), f"there is no '{text}' to click")

    def fill(self, selector: str, text: str) -> None:
        self.js(FILL, selector, text)

    def choose(self, selector: str, value: str) -> None:
        """Choose an option of a list, by its value."""
        self.until(lambda: self.js(CHOOSE, selector, value), f"there is no {selector} to choose of")

    def picture(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self.driver.execute_async_script(PAINTED)
        self.driver.save_screenshot(str(path))

    def errors(self) -> list[str]:
        logged = self.driver.get_log("browser")  # type: ignore[no-untyped-call]
        return [one["message"] for one in logged if one["level"] == "SEVERE"]


PAINTED = "const done = arguments[0]; requestAnimationFrame(() => requestAnimationFrame(done));"
"""Waits until what was changed just now is on the screen."""
CLICK = """
const found = [...document.querySelectorAll('button, a, summary')]
  .find((one) => (one.querySelector('.name') ?? one).textContent.trim() === arguments[0]);
if (found) found.click();
return Boolean(found);
"""
FILL = """
const found = document.querySelector(arguments[0]);
found.value = arguments[1];
found.dispatchEvent(new Event('input', { bubbles: true }));
"""
CHOOSE = """
const found = document.querySelector(arguments[0]);
if (!found) return false;
found.value = arguments[1];
found.dispatchEvent(new Event('change', { bubbles: true }));
return true;
"""
