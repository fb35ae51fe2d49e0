"""A secured `zenlake up` as docs/how-to/open-it.md sets it up, with a robot of Eclipse's.

By day without Spark: a program that has the secrets of the lake answers in its place. By night one
test, for starting Spark takes long. What the page itself says is run by tests/docs.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
from pathlib import Path

import psutil
import pytest

import zenlake
from tests.cli.programs import HEARING, ROOT, Program, endpoint, run_alone
from tests.cli.test_up import Up, others_may
from tests.waiting import until
from zenlake.supervise.status_server import fetch

ROBOT = (
    HEARING
    + """
import json, sys, time, zenoh
where, authority, password, what, *rest = sys.argv[1:]
config = zenoh.Config()
config.insert_json5("mode", '"client"')
config.insert_json5("scouting/multicast/enabled", "false")
config.insert_json5("connect/endpoints", json.dumps([where]))
# Who guesses is refused again and again until then.
config.insert_json5("connect/timeout_ms", "5000" if password == "guessed" else "60000")
config.insert_json5("transport/link/tls/root_ca_certificate", json.dumps(authority))
config.insert_json5("transport/auth/usrpwd/user", '"robot-7"')
config.insert_json5("transport/auth/usrpwd/password", json.dumps(password))
with zenoh.open(config) as session:
    for key, value in zip(rest[::2], rest[1::2]) if what == "put" else ():
        session.put(key, value)
    for reply in session.get(rest[0], payload=rest[1], timeout=60.0) if what == "ask" else ():
        print("answer", reply.ok.payload.to_string() if reply.ok else reply.err, flush=True)
"""
)
PASSWORD = "the first robot of plant 1"


def plant(folder: Path, *more: str) -> tuple[Up, tuple[str, ...]]:
    """Start the plant of the page; return it with what robots are run by."""
    data, file = folder / "plant", folder / "plant.json5"
    page = (ROOT / "docs" / "how-to" / "open-it.md").read_text("utf-8")
    file.write_text(page.partition("```json5\n// plant.json5\n")[2].partition("```")[0])
    assert run_alone("certs", "init", "--data", str(data))[0] == 0
    assert run_alone("users", "add", "robot-7", "--data", str(data), given=PASSWORD)[0] == 0
    data.chmod(0o755)  # as a folder is that somebody else has made
    where = endpoint().replace("tcp/", "tls/")
    authority = str(data / "certs" / "authority.pem")
    umask = os.umask(0)
    try:
        up = Up(data, where, "-c", str(file), "--open", *more)
    finally:
        os.umask(umask)
    return up, ("-c", ROBOT, where, authority)


@pytest.mark.interop
@pytest.mark.slow
def test_by_its_rules_a_robot_records_and_asks_the_lake_and_a_stranger_does_nothing(
    tmp_path: Path,
) -> None:
    up, for_robots = plant(tmp_path, "--no-lake", "--rest-http-port", "none")
    with up.program as program:
        up.ready()
        up.all_ready()
        stand_in = zenlake.Config.from_file(str(up.data / "run" / "lake.json5"))
        asked: list[str] = []

        def answer(query: zenlake.Query) -> None:
            asked.append(query.payload.to_string() if query.payload is not None else "")
            with query:
                query.reply("@lake/sql", "rows")

        with zenlake.open(stand_in) as lake, lake.declare_queryable("@lake/sql", answer):
            # The rules do not let it open doors.
            said = ("robot/7/battery", "98", "plant/door", "open", "robot/7/pose", "1")
            with Program(*for_robots, PASSWORD, "put", *said) as robot:
                assert robot.ends() == 0
            until(lambda: up.status()["journal"]["durable"] == 2)
            with Program(*for_robots, PASSWORD, "ask", "@lake/sql", "SELECT 1") as robot:
                robot.says("answer rows")
                assert robot.ends() == 0
            with Program(*for_robots, "guessed", "ask", "@lake/sql", "SELECT 2") as stranger:
                assert stranger.ends() != 0
        assert asked == ["SELECT 1"]
        operator = str(up.data / "run" / "operator.json5")
        _, lines = run_alone("get", "-s", "**", "-c", operator)
        assert sorted(line.split()[1] for line in lines) == ["robot/7/battery:", "robot/7/pose:"]
        assert others_may(up.data) == [str(up.data)]
        assert others_see_secrets(up, up.data) == []
        assert program.interrupt(signal.SIGTERM) == 0


@pytest.mark.nightly(
    day="cli/test_secure_up.py, cli/test_up.py, supervise/test_parts_folder.py, "
    "supervise/test_status_messages.py, lake/service/test_bus_link.py"
)
@pytest.mark.interop
@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.timeout(500)
def test_a_robot_with_a_password_has_rows_and_answers_and_others_read_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    monkeypatch.setenv("TMPDIR", str(temporary))
    monkeypatch.setenv("JDK_JAVA_OPTIONS", f"-Djava.io.tmpdir={temporary}")
    up, for_robots = plant(tmp_path, "--rest-http-port", "127.0.0.1:0")
    data = up.data
    with up.program as program:
        told = up.ready()
        with Program(*for_robots, PASSWORD, "put", "robot/7/battery", "98") as robot:
            assert robot.ends() == 0
        with Program(*for_robots, "guessed", "put", "robot/7/battery", "13") as stranger:
            assert stranger.ends() != 0
        up.all_ready()
        status = up.status()
        assert (status["health"], status["lake"]["connected"]) == ("well", True)
        until(lambda: up.status()["lake"]["rows"] == 1)
        with Program(*for_robots, PASSWORD, "ask", "@lake/sql", "SELECT key FROM samples") as robot:
            answer = json.loads(robot.says("answer").partition(" ")[2])
            assert answer == [{"key": "robot/7/battery"}]
            assert robot.ends() == 0
        operator = str(data / "run" / "operator.json5")
        _, lines = run_alone("get", "-s", "**", "-c", operator)
        assert "robot/7/battery" in lines[0]

        # Nothing is open to others: not in its folder, not in that for temporary files.
        assert {one.name.partition("-")[0] for one in temporary.iterdir()} >= {
            "zenlake",
            "blockmgr",
        }
        assert others_may(data, *temporary.iterdir()) == [str(data)]
        assert others_see_secrets(up, data) == []

        # A lake that its router knows no more is told, whatever else runs.
        host, _, port = told["http"].removeprefix("http://").rpartition(":")
        secrets = data / "run" / "lake.json5"
        config = json.loads(secrets.read_text())
        config["transport"]["auth"]["usrpwd"]["password"] = "of yesterday"
        secrets.write_text(json.dumps(config))
        os.kill(up.part("lake")["pid"], signal.SIGKILL)
        until(
            lambda: (
                "the lake is not connected to its router" in fetch(host, int(port), "/health")[1]
            )
        )
        assert up.status()["health"] == "unwell"
        assert fetch(host, int(port), "/ready")[0] == 503
        assert "zenlake_lake_connected 0" in fetch(host, int(port), "/metrics")[1]
        assert run_alone("status", "--data", str(data))[0] == 1
        assert program.interrupt(signal.SIGTERM) == 0
        assert not any("was killed after" in line for line in program.lines), "it stops at once"
    assert list((data / "run").iterdir()) == []


def others_see_secrets(up: Up, data: Path) -> list[str]:
    """Where a secret of the parts stands in what `ps e` shows of a process."""
    secrets = json.loads((data / "run" / "parts.json").read_text())["users"].values()
    found = []
    for process in up.family():
        with contextlib.suppress(psutil.Error):
            shown = " ".join([*process.cmdline(), *process.environ().values()])
            found += [process.name() for secret in secrets if secret in shown]
    return found
