"""A router that is killed under load: what it acknowledged is there when it is back."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

import zenlake
from tests.api.sessions import config
from tests.cli.programs import command, endpoint
from tests.storages.test_storages import manager, values
from tests.waiting import until
from zenlake.errors import ZError

#: How many puts are acknowledged before the router is killed.
ENOUGH = 60
ROUNDS = int(os.environ.get("ZENLAKE_ROUNDS", "1"))


@pytest.mark.parametrize("kind", ["sqlite", "fs", *(["rocksdb"] if ROUNDS > 1 else [])])
def test_what_was_acknowledged_survives_a_kill_under_load(kind: str, tmp_path: Path) -> None:
    volume = {"id": kind, "dir": str(tmp_path / "volume")}
    settings = manager(s={"key_expr": "s/**", "volume": volume})
    (tmp_path / "router.json5").write_text(json.dumps({"plugins": json.loads(settings)}))
    sure: dict[str, str] = {}
    for round in range(ROUNDS):
        at = endpoint()
        with command("router", "-c", str(tmp_path / "router.json5"), "-l", at) as router:
            router.says("listens on")
            if round:
                _has_all(at, sure)
            _acknowledged_until_killed(at, router.process.kill, sure)
    at = endpoint()
    with command("router", "-c", str(tmp_path / "router.json5"), "-l", at) as router:
        router.says("listens on")
        assert len(sure) >= ENOUGH
        _has_all(at, sure)


def _client(at: str) -> zenlake.Session:
    return zenlake.open(config(mode='"client"', connect__endpoints=json.dumps([at])))


def _has_all(at: str, sure: dict[str, str]) -> None:
    with _client(at) as client:
        found = values(client, "s/**")
    assert {key: found.get(key) for key in sure} == sure


def _acknowledged_until_killed(at: str, kill: Callable[[], None], sure: dict[str, str]) -> None:
    """Several publishers at once, beside puts that nobody waits for."""
    wanted = len(sure) + ENOUGH
    first = len(sure)

    def publish(name: int) -> None:
        with _client(at) as client:
            for n in range(first, first + 10_000):
                try:
                    client.put(f"s/other/{name}", str(n))
                    client.put_acknowledged(f"s/{name}/{n}", str(n), timeout=5.0)
                except ZError:
                    return
                sure[f"s/{name}/{n}"] = str(n)

    threads = [threading.Thread(target=publish, args=(name,)) for name in range(3)]
    for thread in threads:
        thread.start()
    until(lambda: len(sure) >= wanted)
    kill()
    for thread in threads:
        thread.join()
