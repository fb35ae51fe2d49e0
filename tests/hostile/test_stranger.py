"""The stranger on the network, from a network namespace of its own: what it tried, tried again.

A namespace is another machine as far as sockets are concerned. It takes root; where a test may not
make one, the same is tried from another address of this machine.
"""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.cli.programs import COMMAND, HEARING, Program
from tests.ports import free_port
from tests.waiting import SECONDS, until

pytestmark = [pytest.mark.slow, pytest.mark.timeout(180)]

STRANGER = (
    HEARING
    + """
import json, sys, time, zenlake
config = zenlake.Config.from_json5(json.dumps({
    "mode": "client", "connect": {"endpoints": [sys.argv[1]], "timeout_ms": int(sys.argv[4])},
    "scouting": {"multicast": {"enabled": False}}, **json.loads(sys.argv[2])}))
try:
    session = zenlake.open(config)
except zenlake.ZError as error:
    print("refused", error, flush=True)
    raise SystemExit(0)
with session:
    print("in", flush=True)
    token = session.liveliness().declare_token("@lake/here")
    past = [r.ok.payload.to_string() for r in session.get("robot/**?_time=[now(-1h)..]") if r.ok]
    session.put("@/" + sys.argv[3] + "/router/config/metadata", '{"forged": true}')
    told = list(session.get("@/*/router/**", timeout=60))
    admin = [str(r.ok.key_expr) for r in told if r.ok]
    errors = [r.err.payload.to_string() for r in told if r.err]
    session.delete("**")
    print(json.dumps({"past": past, "admin": admin, "errors": errors}), flush=True)
    sys.stdin.readline()
"""
)


@dataclass
class Elsewhere:
    """Another machine: how programs are started there, and how it reaches this one."""

    before: list[str]
    address: str

    def run(self, place: str, login: str, seconds: float = SECONDS) -> str:
        """What a stranger says that tries to connect for so long."""
        done = subprocess.run(
            [*self.before, sys.executable, "-c", STRANGER, *_arguments(place, login, seconds)],
            capture_output=True,
            text=True,
            timeout=2 * SECONDS,
            input="\n",
            env=os.environ | {"PYTHONUNBUFFERED": "1"},
        )
        return done.stdout + done.stderr

    def refused(self, place: str, login: str, why: str) -> None:
        """Demand that it is refused for this reason, not for want of time."""

        def refusal() -> bool:
            told = self.run(place, login, 2.0)
            assert told.startswith("refused")
            return why in told

        until(refusal, f"nobody said {why!r}")

    @contextmanager
    def staying(self, place: str) -> Iterator[subprocess.Popen[str]]:
        process = subprocess.Popen(
            [*self.before, sys.executable, "-c", STRANGER, *_arguments(place, "{}", SECONDS)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        try:
            yield process
        finally:
            process.communicate("\n", timeout=SECONDS)


def _arguments(place: str, login: str, seconds: float) -> list[str]:
    return [place, login, "abc1", str(round(seconds * 1000))]


@pytest.fixture
def elsewhere() -> Iterator[Elsewhere]:
    ip = shutil.which("ip")
    if ip is None or os.geteuid() != 0:
        yield Elsewhere([], _own_address())
        return
    name = f"zl{uuid.uuid4().hex[:8]}"
    net = f"10.{os.getpid() % 200 + 20}.{uuid.uuid4().int % 250}"

    def run(*words: str) -> None:
        subprocess.run([str(ip), *words], check=True, capture_output=True)

    run("netns", "add", name)
    try:
        run("link", "add", name, "type", "veth", "peer", "name", "eth9", "netns", name)
        run("addr", "add", f"{net}.1/24", "dev", name)
        run("link", "set", name, "up")
        run("-n", name, "addr", "add", f"{net}.2/24", "dev", "eth9")
        run("-n", name, "link", "set", "eth9", "up")
        yield Elsewhere([str(ip), "netns", "exec", name], f"{net}.1")
    finally:
        run("netns", "delete", name)


def _own_address() -> str:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.connect(("192.0.2.1", 9))
        return str(probe.getsockname()[0])


def up(folder: Path, *more: str) -> Program:
    words = ("up", "--no-lake", "--plain", "--http", "none", "--data", str(folder))
    return Program("-c", COMMAND, *words, "--no-multicast-scouting", *more)


def test_a_stranger_finds_nothing_to_connect_to_unless_it_is_opened_and_then_needs_a_name(
    tmp_path: Path, elsewhere: Elsewhere
) -> None:
    port = free_port()
    data = tmp_path / "data"
    # As it is by default, but for the port.
    with up(data, "-l", f"tcp/127.0.0.1:{port}") as program:
        program.says("records")
        elsewhere.refused(f"tcp/{elsewhere.address}:{port}", "{}", "Connection refused")
    assert data.stat().st_mode & 0o077 == 0
    assert (data / "journal").stat().st_mode & 0o077 == 0
    with up(data, "--open", "-l", f"tcp/0.0.0.0:{port}") as program:
        program.says("zenlake users add")
    command = [sys.executable, "-c", COMMAND, "users", "add", "anna", "--data", str(data)]
    subprocess.run(command, input="correct horse\n", text=True, check=True, capture_output=True)
    assert (data / "users").stat().st_mode & 0o077 == 0
    with up(data, "--open", "-l", f"tcp/0.0.0.0:{port}") as program:
        program.says("records")
        place = f"tcp/{elsewhere.address}:{port}"
        elsewhere.refused(place, "{}", "it may ask for a login")
        login = {"transport": {"auth": {"usrpwd": {"user": "anna", "password": "wrong"}}}}
        elsewhere.refused(place, json.dumps(login), "user 'anna' or its password is wrong")
        login["transport"]["auth"]["usrpwd"]["password"] = "correct horse"
        assert elsewhere.run(place, json.dumps(login)).startswith("in")


def test_who_is_let_in_from_elsewhere_silences_nothing_and_changes_no_configuration(
    tmp_path: Path, elsewhere: Elsewhere
) -> None:
    import zenlake

    port = free_port()
    journal = {"name": "here", "dir": str(tmp_path / "j"), "key_exprs": ["robot/**"]}
    with Program(
        "-c", COMMAND, "router", "-l", f"tcp/0.0.0.0:{port}", "--no-multicast-scouting",
        "--adminspace-permissions", "rw", "--cfg", f"journals:[{json.dumps(journal)}]",
        "--cfg", "id:'abc1'",
    ) as router:  # fmt: skip
        router.says("recording journal")
        router.says("every interface")
        here = zenlake.Config.from_json5(
            '{mode: "client", scouting: {multicast: {enabled: false}}, '
            "queries_default_timeout: 60000, "
            f'connect: {{endpoints: ["tcp/127.0.0.1:{port}"]}}}}'
        )
        with zenlake.open(here) as session:
            session.put("robot/7", "kept")

            def past() -> list[str]:
                replies = session.get("robot/**?_time=[now(-1h)..]")
                return [r.ok.payload.to_string() for r in replies if r.ok]

            until(lambda: past() == ["kept"])
            with elsewhere.staying(f"tcp/{elsewhere.address}:{port}") as stranger:
                assert stranger.stdout is not None
                assert stranger.stdout.readline() == "in\n"
                found = json.loads(stranger.stdout.readline())
                if elsewhere.before:
                    # It sees nothing of the node, where others see much: it was told, in time.
                    assert (found["admin"], found["errors"]) == ([], [])
                    assert len(list(session.get("@/*/router/**"))) > 5
                    # Its forged token silences nobody, and nothing is changed.
                    assert past()[0] == "kept"
                    (told,) = [
                        r.ok.payload.to_string()
                        for r in session.get("@/abc1/router/config/metadata")
                        if r.ok
                    ]
                    assert "forged" not in told
                    (events,) = [
                        json.loads(r.ok.payload.to_string())
                        for r in session.get("@/abc1/router/events")
                        if r.ok
                    ]
                    keys = {event["key"] for event in events if event["kind"] == "denied"}
                    assert "@lake/here" in keys
