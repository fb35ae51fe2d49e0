"""The socket of a running lake, without a Spark behind it."""

from __future__ import annotations

import json
import os
import threading
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from tests.waiting import SECONDS, until
from zenlake.errors import LocalError
from zenlake.lake.service.local_server import LocalCaller, LocalServer
from zenlake.lake_client import PAGE, ask


def test_rows_facts_and_refusals_come_back(tmp_path: Path) -> None:
    rows = pa.table({"n": list(range(300_000)), "text": ["x" * 20] * 300_000})

    def answer(request: dict[str, Any], caller: LocalCaller) -> None:
        if request.get("refuse"):
            raise LocalError("not this one")
        caller.table(rows)
        caller.fact({"rows": rows.num_rows})

    server = LocalServer(tmp_path)
    try:
        server.handle("rows", answer)
        server.handle("fact", lambda request, caller: caller.fact(request))
        asked = ask(tmp_path, {"do": "rows"})
        assert asked is not None
        with asked:
            assert asked.table().equals(rows)
        fact = ask(tmp_path, {"do": "fact", "n": 1})
        assert fact is not None
        assert fact.fact()["n"] == 1
        fact.close()
        for request, words in (({"do": "rows", "refuse": 1}, "not this"), ({"do": "x"}, "no 'x'")):
            refused = ask(tmp_path, request)
            assert refused is not None
            with refused, pytest.raises(LocalError, match=words):
                refused.table()
        place = Path(json.loads((tmp_path / PAGE).read_text())["socket"])
        assert place.parent.stat().st_mode & 0o077 == 0
    finally:
        server.close()
    assert ask(tmp_path, {"do": "rows"}) is None
    assert not place.parent.exists()


def test_who_goes_away_is_noticed(tmp_path: Path) -> None:
    seen = threading.Event()
    here = threading.Event()

    def answer(request: dict[str, Any], caller: LocalCaller) -> None:
        here.set()
        until(caller.gone)
        seen.set()

    server = LocalServer(tmp_path)
    try:
        server.handle("wait", answer)
        asked = ask(tmp_path, {"do": "wait"})
        assert asked is not None
        assert here.wait(SECONDS)
        asked.close()
        assert seen.wait(SECONDS)
    finally:
        server.close()


def test_a_lake_that_was_killed_is_no_lake_that_runs(tmp_path: Path) -> None:
    assert ask(tmp_path, {}) is None
    (tmp_path / PAGE).write_text(json.dumps({"pid": os.getpid(), "socket": str(tmp_path / "no")}))
    assert ask(tmp_path, {}) is None
    (tmp_path / PAGE).write_text("{")
    assert ask(tmp_path, {}) is None
    assert ask("s3://bucket/lake", {}) is None
