"""A lake whose router is not there fills its tables meanwhile, and stops when it is told to."""

from __future__ import annotations

import json
import socket
import threading
from pathlib import Path

import pytest

import zenlake
from tests.cli.programs import endpoint
from tests.lake.journals import Here, rows_of, write
from tests.lake.rowsof import Row
from tests.waiting import SECONDS, until
from zenlake.lake import LakeConfig, Pipeline, read_status
from zenlake.lake.service.bus_link import BusLink
from zenlake.lake.service.loop import run

WAITS_FOR_EVER = 3_600_000
"""Milliseconds: whoever waited for the router would not be back while this test lasts."""


@pytest.mark.parametrize("router", ["absent", "silent"])
def test_a_lake_that_waits_for_its_router_fills_its_tables_and_stops_at_once(
    router: str, tmp_path: Path
) -> None:
    lake, journal = tmp_path / "lake", tmp_path / "journal"
    write(journal, [Row("a", b"", n) for n in range(5)])
    pipeline = Pipeline(str(lake), str(journal), Here(), LakeConfig())
    stop = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as silent:
        where = f"tcp/127.0.0.1:{silent.getsockname()[1]}" if router == "silent" else endpoint()
        config = zenlake.Config.from_json5(
            json.dumps(
                {
                    "mode": "client",
                    "scouting": {"multicast": {"enabled": False}},
                    "connect": {"endpoints": [where], "timeout_ms": -1, "exit_on_failure": True},
                    "transport": {"unicast": {"open_timeout": WAITS_FOR_EVER}},
                }
            )
        )

        def runs() -> None:
            with BusLink(config) as link:
                run(pipeline, Here(), stop=stop, bus=link.state)

        running = threading.Thread(target=runs, daemon=True)
        running.start()
        until(lambda: len(rows_of(lake, "samples")) == 5)
        until(lambda: (said := read_status(str(lake))) is not None and said.bus is not None)
        stop.set()
        running.join(SECONDS)
        assert not running.is_alive()
    said = read_status(str(lake))
    assert said is not None
    assert said.state == "stopped"
    assert said.bus is not None
    assert not said.bus.connected
