"""Alerts tried over history by programs on this machine: each in its own turn."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.lake.journals import write
from tests.lake.rowsof import Row
from tests.waiting import until
from zenlake.errors import LocalError
from zenlake.journal import Journal
from zenlake.lake import LakeConfig
from zenlake.lake.continuous.manager import ContinuousQueries
from zenlake.lake.continuous.requests import ContinuousRequests
from zenlake.lake.maintain.definition_store import ContinuousQueryStore, new_definition
from zenlake.lake.query.lake import Lake
from zenlake.lake.service.service import Service
from zenlake.lake.table.location import LakeLocation
from zenlake.lake_client import ask

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TEST = {"do": "continuous", "as": "operator", "action": "test", "kind": "alert", "name": "low"}


def test_who_asks_much_keeps_no_other_program_from_trying_an_alert(
    tmp_path: Path, spark: SparkSession
) -> None:
    write(tmp_path / "journal", [Row("a", b"1")])
    place = LakeLocation(str(tmp_path / "lake"))
    (tmp_path / "lake").mkdir()
    service = Service(Lake(place, spark, LakeConfig()), [Journal.open(tmp_path / "journal")], None)
    gate = threading.Event()

    begun = threading.Semaphore(0)

    def wait() -> None:
        begun.release()
        gate.wait(60)

    try:
        queries = ContinuousQueries(service, print)
        service.add(queries)
        service.add(ContinuousRequests(service, queries))
        store = ContinuousQueryStore(place)
        store.write(new_definition("low", "alert", "SELECT key FROM samples WHERE key = 'a'"))
        executor = service.executor
        for n in range(executor.at_once):
            assert executor.submit(f"other {n}", wait)
        assert all(begun.acquire(timeout=60) for _ in range(executor.at_once))
        # The first program to ask has no room for one more question.
        while executor.submit("terminal 1", lambda: None):
            pass
        waiting = executor.waiting
        refused = ask(tmp_path / "lake", TEST)
        assert refused is not None
        with refused, pytest.raises(LocalError, match="questions wait already"):
            refused.fact()
        tried = ask(tmp_path / "lake", TEST)
        assert tried is not None
        with tried:
            until(lambda: executor.waiting == waiting + 1)
            gate.set()
            with pytest.raises(LocalError, match="no table 'samples'"):
                tried.fact()
    finally:
        gate.set()
        service.close()
