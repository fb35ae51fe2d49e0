"""The operator's commands, beside a router and programs in processes of their own."""

from __future__ import annotations

import json
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import zenlake
from tests.api.sessions import config, connected, listening
from tests.api.sessions import where as located
from tests.cli.programs import command, endpoint, run
from tests.waiting import SECONDS

ZID = "aa11"


@contextmanager
def village(publish: str = "demo/a", subscribe: str = "demo/**", **keys: object) -> Iterator[str]:
    """A router, a publisher that never tires and a subscriber; where the router listens."""
    written = {name: json.dumps(value) for name, value in keys.items()}
    over = threading.Event()
    with (
        listening(mode='"router"', id=f'"{ZID}"', adminspace__enabled="true", **written) as router,
        connected(router, mode='"client"') as listener,
        connected(router, mode='"client"') as speaker,
        listener.declare_subscriber(subscribe, lambda _: None),
        speaker.declare_publisher(publish) as publisher,
    ):

        def speak() -> None:
            while not over.wait(0.01):
                publisher.put("hello")

        speaking = threading.Thread(target=speak)
        speaking.start()
        try:
            yield located(router)
        finally:
            over.set()
            speaking.join()


def asked(where: str, *words: str) -> tuple[int, list[str]]:
    return run(*words, "-m", "client", "-e", where)


def test_keys_are_listed_drawn_and_measured() -> None:
    with village() as where:
        code, lines = asked(where, "ls")
        assert code == 0
        assert lines[0].split("  ", 1)[0] == "demo/**"
        assert "1 subscriber" in lines[0]
        assert lines[1].startswith("demo/a")
        assert "1 publisher" in lines[1]
        code, lines = asked(where, "ls", "demo/a", "--json")
        told = {facts["key"]: facts for facts in map(json.loads, lines)}
        assert set(told) == {"demo/a", "demo/**"}
        assert len(told["demo/a"]["publishers"]) == 1
        assert told["demo/a"]["samples"] > 0
        code, lines = asked(where, "tree")
        assert (code, lines[0]) == (0, "└── demo")
        assert lines[1].startswith("    ├── **  1 subscriber")
        code, lines = asked(where, "tree", "--json")
        assert json.loads(lines[-1]) == {"demo": {"**": {}, "a": {}}}
        code, lines = asked(where, "hz", "demo/a", "-n", "5", "--json")
        told = json.loads(lines[-1])
        assert (code, told["key"], told["samples"], told["window"]) == (0, "demo/a", 5, 5)
        assert 0 < told["min_s"] <= 1 / told["hz"] <= told["max_s"]
        code, lines = asked(where, "bw", "demo/a", "-n", "5")
        assert code == 0
        assert lines[-2].split() == ["KEY", "BYTES/S", "MEAN", "MIN", "MAX", "SAMPLES"]
        assert lines[-1].endswith("5 B       5 B       5 B         5")


def test_top_shows_who_says_how_much() -> None:
    with village() as where:
        code, lines = asked(where, "top", "--once", "-i", "0.3", "--json")
        told = json.loads(lines[-1])
        assert code == 0
        assert [row["key"] for row in told["keys"]] == ["demo/a"]
        assert told["keys"][0]["samples_per_s"] > 1
        assert {one["node"] for one in told["sessions"]} == {ZID}
        assert len(told["sessions"]) == 2
        assert all(0 <= one["nearest_limit"]["part"] < 0.1 for one in told["sessions"])
        code, lines = asked(where, "top", "--once", "-i", "0.3")
        assert code == 0
        assert lines[0].split() == ["KEY", "FROM", "SAMPLES/S", "BYTES/S", "SAMPLES"]
        assert lines[1].startswith("demo/a")
        assert all(len(line) <= 200 for line in lines)
        assert any(line.startswith("NODE") for line in lines)


def test_why_finds_nothing_wrong_where_nothing_is() -> None:
    with village() as where:
        code, lines = asked(where, "why", "demo/a")
        assert code == 0
        assert lines[-1] == "nothing stops samples on 'demo/a' as far as these nodes know"
        assert [line.split()[0] for line in lines[:-1]] == ["ok"] * 7


def test_why_names_the_missing_end() -> None:
    with village(subscribe="other") as where:
        code, lines = asked(where, "why", "demo/a")
        assert code == 1
        assert lines[-1].startswith("samples on 'demo/a' stop at: subscriber (nobody subscribes")
        code, lines = asked(where, "why", "nothing/here", "--json")
        told = json.loads(lines[-1])
        assert (code, told["stopped"]) == (1, "publisher")


def until_heard(where: str) -> None:
    """Wait until something has passed the router's ears, or was stopped there."""
    with connected_to(where) as session:
        deadline = time.monotonic() + SECONDS
        while time.monotonic() < deadline:
            told = [reply.ok for reply in session.get(f"@/{ZID}/router?_stats=true")]
            page = json.loads(told[0].payload.to_bytes()) if told and told[0] else {}
            stats = page["stats"]
            if any(stats["dropped"][way] for way in ("rx", "tx")):
                return
    raise AssertionError("nothing was dropped")


def connected_to(where: str) -> zenlake.Session:
    return zenlake.open(config(mode='"client"', connect__endpoints=json.dumps([where])))


def denying(message: str, flow: str) -> dict[str, object]:
    return {
        "enabled": True,
        "default_permission": "allow",
        "rules": [
            {
                "id": "seeded",
                "messages": [message],
                "flows": [flow],
                "permission": "deny",
                "key_exprs": ["demo/**"],
            }
        ],
        "subjects": [{"id": "all"}],
        "policies": [{"rules": ["seeded"], "subjects": ["all"]}],
    }


@pytest.mark.parametrize(
    ("message", "flow"),
    [("put", "ingress"), ("put", "egress"), ("declare_subscriber", "ingress")],
)
def test_why_finds_a_seeded_denial(message: str, flow: str) -> None:
    with village(access_control=denying(message, flow)) as where:
        code, lines = asked(where, "why", "demo/a", "--json")
        told = json.loads(lines[-1])
        assert (code, told["stopped"]) == (1, "access control")
        assert f"router {ZID} denies {message}" in told["because"]
        assert f"({flow})" in told["because"]
        assert "seeded" in told["because"]


def test_why_finds_downsampling() -> None:
    slow = {
        "id": "slow",
        "messages": ["put"],
        "flows": ["egress"],
        "rules": [{"key_expr": "demo/**", "freq": 0.1}],
    }
    with village(downsampling=[slow]) as where:
        until_heard(where)
        code, lines = asked(where, "why", "demo/a", "--json")
        told = json.loads(lines[-1])
        assert (code, told["stopped"]) == (1, "downsampling")
        assert "slow" in told["because"]


def test_why_finds_a_size_limit() -> None:
    small = {
        "id": "small",
        "messages": ["put"],
        "flows": ["ingress"],
        "key_exprs": ["demo/**"],
        "size_limit": 3,
    }
    with village(low_pass_filter=[small]) as where:
        until_heard(where)
        code, lines = asked(where, "why", "demo/a", "--json")
        told = json.loads(lines[-1])
        assert (code, told["stopped"]) == (1, "low-pass filter")
        assert "small" in told["because"]


def test_without_an_admin_space_nothing_can_be_seen() -> None:
    where = endpoint()
    with command("router", "-l", where, "--adminspace-permissions", "none") as router:
        router.says("listens on")
        for words in (("ls",), ("tree",), ("top", "--once"), ("why", "demo/a")):
            code, lines = asked(where, *words)
            assert code == 3
            assert "no node shows its admin space" in lines[-1]


def test_the_doctor_tells_each_thing_with_a_way_out() -> None:
    where = endpoint()
    with command("router", "-l", where, "-i", ZID) as router:
        router.says("listens on")
        code, lines = asked(where, "doctor", "--json")
        told = [json.loads(line) for line in lines]
        assert code == 0
        assert {finding["what"] for finding in told} >= {
            "python",
            "build",
            "event loop",
            "java",
            "pandas",
            "disk",
            "open files",
            "tcp 7447",
            "udp 7446",
            "session",
            "version",
            "clock",
        }
        assert all(finding["remedy"] for finding in told if finding["result"] != "ok")
    code, lines = asked(where, "doctor", "--wait", "0.2")
    assert code == 1
    assert any(line.startswith("fail  session") for line in lines)
    assert "→" in lines[-1]


def test_a_router_stops_gracefully_and_its_clients_are_told() -> None:
    where = endpoint()
    with command("router", "-l", where, "-i", ZID, "--transcript") as router:
        router.says("listens on")
        with command("sub", "-k", "demo/**", "-m", "client", "-e", where) as sub:
            sub.says("subscribed")
            router.says("declare subscriber 1 demo/**")
            assert router.interrupt() == 130
            assert any("DEBUG" in line and ": close:" in line for line in router.lines)
            assert not any("Traceback" in line for line in router.lines)


def test_metrics_that_come_compressed_are_shown_as_text() -> None:
    with village() as where:
        code, lines = asked(where, "get", "-s", "@/*/router/metrics")
        assert code == 0
        assert lines[0].startswith(f"put @/{ZID}/router/metrics: # HELP zenoh_build")
        code, lines = asked(where, "get", "-s", "@/*/router/metrics", "--json")
        told = json.loads(lines[0])
        assert told["unpacked"].startswith("# HELP zenoh_build")
        assert told["payload_base64"]


@pytest.mark.parametrize(
    ("told", "kind"), [("{}", "router"), ("{mode: 'router'}", "router"), ("{mode: 'peer'}", "peer")]
)
def test_a_router_is_what_its_file_says(told: str, kind: str, tmp_path: Path) -> None:
    file = tmp_path / "node.json5"
    file.write_text(told)
    with command("router", "-c", str(file), "-l", endpoint(), "-i", ZID) as node:
        assert node.says(ZID) == f"{kind} {ZID}"
        assert node.interrupt(signal.SIGTERM) == 0
    warned = [line for line in node.lines if "this is no router" in line]
    assert len(warned) == (kind != "router")


def test_a_required_plugin_that_is_not_there_keeps_a_router_from_starting(tmp_path: Path) -> None:
    file = tmp_path / "node.json5"
    file.write_text("{plugins: {webserver: {__required__: true}}}")
    code, lines = run("router", "-c", str(file), "-l", endpoint())
    assert code == 2
    assert lines[-1] == (
        "zenlake: plugins/webserver/__required__: zenlake has no plugin 'webserver'; "
        "set it to false to start without it"
    )
