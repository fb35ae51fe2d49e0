"""Tables of keys on the page: a lake without Spark, whose pipeline takes what is changed there."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

import zenlake
from tests.lake.journals import Here, rows_of, write
from tests.lake.rowsof import Row
from tests.rest.conftest import plugins, router, url_of
from tests.web.browser import Browser, start
from tests.web.test_page import axe, check
from zenlake.lake import LakeConfig, Pipeline
from zenlake.lake.model.typed_table import TypedTable
from zenlake.lake.query.lake import Lake
from zenlake.lake.service.bus import BusAnswers
from zenlake.lake.service.missing_tables import MissingTables
from zenlake.lake.service.service import Service
from zenlake.lake.service.table_commands import TableCommands
from zenlake.lake.table.delta import CommitConflict

pytestmark = [pytest.mark.interop, pytest.mark.slow, pytest.mark.timeout(300)]

__all__ = ["axe"]

CONFIG = LakeConfig(tables=(TypedTable("named", "named/${id:*}", encoding="text/plain"),))
WHY = "keys of which every chunk varies"


@pytest.fixture
def driver(tmp_path: Path) -> Iterator[Browser]:
    made = start(tmp_path / "profile")
    try:
        yield Browser(made)
    finally:
        made.quit()


@contextmanager
def running(folder: Path, bus: zenlake.Session) -> Iterator[Pipeline]:
    """A lake that answers on the bus and over its socket; nothing is asked of it in SQL."""
    write(folder / "journal", [Row("named/one", b"1"), Row("1/2", b'{"n": 1}')])
    write(folder / "journal", [Row(f"robot/{n}/battery", b'{"percent": 40}') for n in range(3)])
    pipeline = Pipeline(str(folder / "lake"), str(folder / "journal"), Here(), CONFIG)
    while pipeline.step().behind or pipeline.settle(0.0):
        pass
    over = threading.Event()

    def feed() -> None:
        while not over.wait(0.02):
            with suppress(CommitConflict):  # a command was faster
                pipeline.step()

    thread = threading.Thread(target=feed)
    service = Service(Lake(pipeline.place, None, CONFIG), [pipeline.journal], bus)
    commands = TableCommands(pipeline.place, CONFIG, pipeline.found, Here())
    service.handle("table", commands.handle)
    service.add(commands)
    service.add(BusAnswers(service, bus, ()))
    service.add(MissingTables(bus, pipeline.found))
    thread.start()
    try:
        yield pipeline
    finally:
        over.set()
        thread.join()
        service.close()


def rows(driver: Browser, table: str) -> list[list[str]]:
    found: list[list[str]] = driver.js(ROWS, table)
    return found


ROWS = """
return [...document.querySelectorAll(`#${arguments[0]} tbody tr`)]
  .map((row) => [...row.querySelectorAll("td")].map((one) => one.innerText.trim()));
"""


def save(driver: Browser, name: str, encoding: str) -> None:
    driver.fill("#edit-table [name=name]", name)
    driver.fill("#edit-table [name=encoding]", encoding)
    driver.js("document.querySelector('#edit-table form').requestSubmit()")


def test_a_table_is_added_changed_and_removed_where_the_keys_without_one_are_named(
    tmp_path: Path, driver: Browser, axe: str
) -> None:
    lake = tmp_path / "lake"
    with router(plugins(lake=str(lake))) as bus, running(tmp_path, bus):
        driver.open(f"{url_of(bus)}/#/ask")
        driver.connects()
        driver.until(lambda: rows(driver, "without"), "the key without a table")
        assert rows(driver, "without") == [[WHY, "1", "1/2"]]
        driver.until(lambda: rows(driver, "tables"), "the tables")
        assert [one[:5] for one in rows(driver, "tables")] == [
            ["battery", "robot/${id:*}/battery", "as samples say", "3", "by itself"],
            ["named", "named/${id:*}", "text/plain", "1", "in lake.json5"],
        ]
        assert rows(driver, "tables")[1][5] == ""
        check(driver, axe)
        driver.click("1/2")
        save(driver, "named", "")
        driver.shows("there is a table 'named' already; choose another name")
        save(driver, "pair", "")
        driver.until(lambda: len(rows(driver, "tables")) == 3, "the new table")
        assert rows(driver, "tables")[2][:5] == ["pair", "1/2", "as samples say", "1", "by command"]
        driver.until(lambda: not rows(driver, "without"), "no key is without a table")
        assert [row["n"] for row in rows_of(lake, "pair")] == [1]
        driver.js("document.querySelector('[aria-label=\"Change pair\"]').click()")
        save(driver, "pair", "text/plain")
        driver.until(lambda: rows(driver, "tables")[2][2] == "text/plain", "the encoding")
        assert [row["text"] for row in rows_of(lake, "pair")] == ['{"n": 1}']
        driver.js("document.querySelector('[aria-label=\"Change pair\"]').click()")
        driver.fill("#edit-table [name=name]", "two")
        driver.click("Rename pair")
        driver.until(lambda: [one[0] for one in rows(driver, "tables")][-1] == "two", "the name")
        assert [row["text"] for row in rows_of(lake, "two")] == ['{"n": 1}']
        assert not (lake / "pair").exists()
        driver.fill("#edit-table [name=format]", "1/${what}")
        save(driver, "one", "")
        driver.until(lambda: len(rows(driver, "tables")) == 4, "the table to merge")
        driver.choose("[aria-label='Merge into two']", "one")
        driver.click("Merge one into two")
        driver.until(lambda: len(rows(driver, "tables")) == 3, "one table of both")
        assert rows(driver, "tables")[2][:2] == ["two", "1/${id:*}"]
        driver.js("document.querySelector('[aria-label=\"Remove two\"]').click()")
        assert (lake / "two").is_dir()
        driver.click("Remove two and its rows")
        driver.until(lambda: len(rows(driver, "tables")) == 2, "the table is gone")
        assert not (lake / "two").exists()
        refused = [one for one in driver.errors() if "Failed to load resource" not in one]
        assert refused == []
