"""A router that is killed under load: what it acknowledged is there when it is back."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable
from pathlib import Path

import zenlake
from tests.api.sessions import config
from tests.cli.programs import command, endpoint
from tests.storage_manager.test_storages import manager, values
from tests.volumes.opened import OPTIONS, PATIENT
from tests.waiting import SECONDS, until
from zenlake.errors import ZError

#: How many puts into each volume are acknowledged before the router is killed.
ENOUGH = 20
ROUNDS = int(os.environ.get("ZENLAKE_ROUNDS", "1"))

#: By volume: the value of each key whose put was acknowledged.
Sure = dict[str, dict[str, str]]


@PATIENT
def test_what_was_acknowledged_survives_a_kill_under_load_in_every_volume(tmp_path: Path) -> None:
    storages = {
        kind: {"key_expr": f"{kind}/**", "volume": {"id": kind, **options(tmp_path)}}
        for kind, options in OPTIONS.items()
    }
    plugins = json.loads(manager(**storages))
    (tmp_path / "router.json5").write_text(json.dumps({"plugins": plugins}))
    sure: Sure = {kind: {} for kind in OPTIONS}
    for _ in range(ROUNDS):
        at = endpoint()
        with command("router", "-c", str(tmp_path / "router.json5"), "-l", at) as router:
            router.says("listens on")
            _has_all(at, sure)
            _acknowledged_until_killed(at, router.process.kill, sure)
    at = endpoint()
    with command("router", "-c", str(tmp_path / "router.json5"), "-l", at) as router:
        router.says("listens on")
        _has_all(at, sure)


def _client(at: str) -> zenlake.Session:
    return zenlake.open(config(mode='"client"', connect__endpoints=json.dumps([at])))


def _has_all(at: str, sure: Sure) -> None:
    with _client(at) as client:
        for kind, expected in sure.items():
            found = values(client, f"{kind}/**")
            assert {key: found.get(key) for key in expected} == expected


def _acknowledged_until_killed(at: str, kill: Callable[[], None], sure: Sure) -> None:
    """A publisher for each volume, beside puts that nobody waits for."""
    wanted = {kind: len(known) + ENOUGH for kind, known in sure.items()}

    def publish(kind: str) -> None:
        first = len(sure[kind])
        with _client(at) as client:
            for n in range(first, first + 10_000):
                try:
                    client.put(f"{kind}/other", str(n))
                    client.put_acknowledged(f"{kind}/{n}", str(n), timeout=SECONDS)
                except ZError:
                    return
                sure[kind][f"{kind}/{n}"] = str(n)

    threads = [threading.Thread(target=publish, args=(kind,)) for kind in sure]
    for thread in threads:
        thread.start()
    until(lambda: all(len(known) >= wanted[kind] for kind, known in sure.items()))
    kill()
    for thread in threads:
        thread.join()
