"""A month of `zenlake up` in a short time: every part is killed, the disk fills, the network goes.

`ZENLAKE_MINUTES=60 make soak` takes an hour for it; the suite has each trouble once.
"""

from __future__ import annotations

import json
import os
import random
import signal
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.cli.programs import command, endpoint
from tests.supervise.month import Cable, Publisher, files_in, full, small_disk
from tests.waiting import SECONDS
from zenlake.supervise.status_server import fetch

MINUTES = float(os.environ.get("ZENLAKE_MINUTES", "0"))
MB = 1_000_000
#: Half of it waits for the lake: some ten minutes, for a busy machine takes as long to start Spark.
BUDGET = 32 * MB
DISK = int(400 * MB + MINUTES * 20 * MB)
RATE, FILLER = 50.0, 500


class Month:
    """One `zenlake up`, what it is asked, and what is done to it."""

    def __init__(self, data: Path, where: str) -> None:
        self.data = data
        self.program = command(
            "up", "--data", str(data), "-l", where, "--json", "--http", "127.0.0.1:0",
            "--retain-size", str(BUDGET), "--interval", "3600",
        )  # fmt: skip
        self.http = ("127.0.0.1", 0)
        self.seen: list[str] = []

    def begin(self) -> None:
        told = json.loads(self.program.says('"ready": "router"', 150))
        host, _, port = str(told["http"]).removeprefix("http://").rpartition(":")
        self.http = (host, int(port))

    def status(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(fetch(*self.http, "/status", 20)[1])
        return found

    def part(self, name: str) -> dict[str, Any]:
        (found,) = [one for one in self.status()["parts"] if one["name"] == name]
        return dict(found)

    def well(self) -> bool:
        return bool(self.status()["health"] == "well")

    def eventually(self, look: Callable[[], bool], what: str, seconds: float = 240.0) -> None:
        deadline = time.monotonic() + seconds
        while not look():
            assert self.program.process.poll() is None, "zenlake up has ended"
            assert time.monotonic() < deadline, f"{what}: {json.dumps(self.status(), indent=1)}"
            time.sleep(0.3)

    # ------------------------------------------------------------------------ what happens to it

    def kill_router(self) -> None:
        self._kill(psutil.Process(self.part("router")["pid"]), "router")

    def kill_lake(self) -> None:
        self._kill(psutil.Process(self.part("lake")["pid"]), "lake")

    def kill_java(self) -> None:
        lake = psutil.Process(self.part("lake")["pid"])
        (java,) = [one for one in lake.children(recursive=True) if one.name() == "java"][:1]
        self._kill(java, "lake")

    def _kill(self, process: psutil.Process, part: str) -> None:
        before = self.part(part)["restarts"]
        process.send_signal(signal.SIGKILL)
        self.eventually(lambda: self.part(part)["restarts"] > before, f"a restart of {part}")


def rows(lake: Path) -> dict[str, tuple[int, int]]:
    """For each publisher's key: rows in the table, and different ones among them."""
    import duckdb
    from deltalake import DeltaTable

    if not (lake / "samples" / "_delta_log").is_dir():
        return {}
    files = DeltaTable(str(lake / "samples")).file_uris()
    if not files:
        return {}
    query = (
        "SELECT key, count(*), count(DISTINCT source_sn) FROM read_parquet(?) "
        "WHERE starts_with(key, 'month/') GROUP BY key"
    )
    with duckdb.connect() as connection:
        return {key: (a, b) for key, a, b in connection.execute(query, [files]).fetchall()}


@pytest.mark.nightly(day="cli/test_up.py, lake/continuous/test_views_and_alerts.py")
@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.interop
@pytest.mark.timeout(900 + MINUTES * 120)
def test_nothing_is_lost_and_nobody_is_needed_whatever_is_killed(tmp_path: Path) -> None:
    chance = random.Random(int(os.environ.get("ZENLAKE_SEED", "1")))
    where = endpoint()
    port = int(where.rpartition(":")[2])
    with ExitStack() as stack:
        disk = tmp_path / "disk"
        own = stack.enter_context(small_disk(disk, DISK))
        month = Month(disk / "data", where)
        up = stack.enter_context(month.program)
        month.begin()
        cable = Cable(port)
        stack.callback(cable.close)
        publishers = [
            Publisher(place, f"month/{number}", RATE, FILLER)
            for number, place in enumerate((where, cable.where))
        ]
        for publisher in publishers:
            stack.enter_context(publisher.program)
            publisher.program.says("ready", 60)
        fleet = command(
            "demo", "fleet", "-m", "client", "-e", where, "--robots", "3", "--rate", "5",
            "--camera-bytes", "2000", "--json",
        )  # fmt: skip
        stack.enter_context(fleet)
        month.eventually(month.well, "the first start")

        def lose_network() -> None:
            cable.pull()
            time.sleep(chance.uniform(2, 12))  # how long a network is gone is what is tried
            cable.plug()

        def fill_disk() -> None:
            with full(disk):
                month.eventually(lambda: month.status()["journal"]["disk_full"], "a full disk")
            month.eventually(lambda: not month.status()["journal"]["disk_full"], "room again")

        trouble = [month.kill_router, month.kill_lake, month.kill_java, lose_network]
        trouble += [fill_disk] if own else []
        end = time.monotonic() + MINUTES * 60
        memory: list[int] = []
        files: list[int] = []
        rounds = 0
        while not rounds or time.monotonic() < end:
            rounds += 1
            chance.shuffle(trouble)
            for happens in trouble:
                happens()
                month.eventually(month.well, f"recovery after {happens.__name__}")
            memory.append(month.part("router")["memory_bytes"] or 0)
            files.append(files_in(disk))
        said = {publisher.key: publisher.stop() for publisher in publishers}
        assert fleet.process.poll() is None, "the fleet ended"
        month.eventually(
            lambda: {key: found[1] for key, found in rows(disk / "data" / "lake").items()} == said,
            f"everything that was said: {said}",
        )
        # Each once, though most parts died in between.
        assert rows(disk / "data" / "lake") == {key: (many, many) for key, many in said.items()}
        status = month.status()
        assert status["health"] == "well", status["reasons"]
        assert status["journal"]["missing"] == 0
        if rounds > 3:
            early, late = max(memory[: rounds // 3]), min(memory[-rounds // 3 :])
            assert late < early * 1.3 + 50 * MB, memory
            assert min(files[-rounds // 3 :]) < max(files[: rounds // 3]) * 2 + 300, files
            assert status["journal"]["size"] < BUDGET * 2
        family = psutil.Process(up.process.pid).children(recursive=True)
        assert up.interrupt() == 130
    _, alive = psutil.wait_procs(family, timeout=SECONDS)
    assert alive == []
    print(json.dumps({"rounds": rounds, "said": said, "memory": memory, "files": files}))
    if not own:
        print("the full disk was left out: a small one takes root, to mount a tmpfs")
