"""Programs that no configuration names: what they publish is in tables that SQL asks."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.programs import HEARING, Program, endpoint, run_alone
from tests.cli.test_up import Up

PROGRAM = (
    HEARING
    + """
import cbor2, json, sys, zenoh
config = zenoh.Config()
config.insert_json5("mode", '"client"')
config.insert_json5("scouting/multicast/enabled", "false")
config.insert_json5("connect/endpoints", json.dumps([sys.argv[1]]))
with zenoh.open(config) as session:
    publisher = session.declare_publisher("demo/example/zenoh-python-pub")
    for n in range(5):
        publisher.put(f"[{n:4d}] Pub from Python!")
        session.put("plant/a/line/3/motor/rpm", str(1000 + n))
        for robot in (7, 8):
            session.put(f"robot/{robot}/energy", json.dumps({"watts": 40.5 + n}))
            speed = cbor2.dumps({"kmh": 10.5, "gear": n})
            session.put(f"car/c{robot}/speed", speed, encoding=zenoh.Encoding.APPLICATION_CBOR)
        for room in ("kitchen", "attic"):
            session.put(f"home/{room}/climate", json.dumps({"celsius": 20 + n, "window": "shut"}))
        session.put("robot/7/camera", bytes(range(256)))
"""
)


@pytest.mark.nightly(day="lake/ingest/test_found_tables.py, cli/test_up.py")
@pytest.mark.interop
@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.timeout(500)
def test_an_empty_folder_has_a_table_for_each_family_of_keys(tmp_path: Path) -> None:
    where, data = endpoint(), tmp_path / "fleet"
    up = Up(data, where, "--no-multicast-scouting", "--rest-http-port", "none")
    with up.program:
        up.ready()
        with Program("-c", PROGRAM, where) as eclipse:
            assert eclipse.ends() == 0
        up.all_ready()
        assert run_alone("status", "--data", str(data), "--wait", "150")[0] == 0
        lake = str(data / "lake")

        def asked(question: str) -> list[dict[str, object]]:
            code, lines = run_alone("sql", question, "--lake", lake, "--format", "json")
            assert code == 0, lines
            return [json.loads(line) for line in lines]

        assert asked("SELECT count(*) AS n, min(text) AS first FROM zenoh_python_pub") == [
            {"n": 5, "first": "[   0] Pub from Python!"}
        ]
        assert asked("SELECT plant, line, max(number) AS rpm FROM rpm GROUP BY ALL") == [
            {"plant": "a", "line": "3", "rpm": 1004.0}
        ]
        assert asked("SELECT id, sum(watts) AS watts FROM energy GROUP BY id ORDER BY id") == [
            {"id": "7", "watts": 212.5},
            {"id": "8", "watts": 212.5},
        ]
        assert asked(
            "SELECT id, max(gear) AS gear, max(kmh) AS kmh FROM speed GROUP BY id ORDER BY id"
        ) == [
            {"id": "c7", "gear": 4, "kmh": 10.5},
            {"id": "c8", "gear": 4, "kmh": 10.5},
        ]
        assert asked("SELECT id, max(celsius) AS most FROM climate GROUP BY id ORDER BY id") == [
            {"id": "attic", "most": 24},
            {"id": "kitchen", "most": 24},
        ]
        _, lines = run_alone("lake", "status", "--lake", lake)
        assert any("robot/7/camera" in line for line in lines if line.startswith("no table"))
        renamed = run_alone("lake", "table", "rename", "rpm", "motor_rpm", "--lake", lake)
        assert renamed[0] == 0
        assert asked("SELECT count(*) AS n FROM motor_rpm") == [{"n": 5}]
