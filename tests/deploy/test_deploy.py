"""The files of `deploy/`: read by the programs that they are for where those are at hand."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import typer
import yaml

from tests.cli.programs import command, endpoint
from tests.cli.test_up import Up
from tests.installed import installed, which
from tests.waiting import SECONDS, until
from zenlake.admin.document import render as of_nodes
from zenlake.cli.app import application
from zenlake.supervise.openmetrics import render as of_services

ROOT = Path(__file__).resolve().parents[2]
DEPLOY = ROOT / "deploy"
DASHBOARD: dict[str, Any] = json.loads((DEPLOY / "grafana/dashboards/zenlake.json").read_text())


def takes(words: list[str]) -> None:
    """The command line is one that `zenlake` takes."""
    command: Any = typer.main.get_command(application())
    while getattr(command, "commands", None):
        command = command.commands[words.pop(0)]
    with command.make_context("zenlake", words):
        pass


@pytest.mark.nightly(day="deploy/test_deploy.py")
@pytest.mark.slow
@pytest.mark.timeout(400)
def test_systemd_takes_the_unit(tmp_path: Path) -> None:
    text = (DEPLOY / "systemd/zenlake.service").read_text("utf-8")
    (command,) = re.findall(r"^ExecStart=(.*)$", text, re.MULTILINE)
    program, *words = command.split()
    assert program == "/opt/zenlake/bin/zenlake"
    takes(words)
    # It looks for the program, which is not installed on this machine.
    unit = tmp_path / "zenlake.service"
    unit.write_text(text.replace(program, sys.executable), "utf-8")
    analyze = installed("systemd", lambda: which("systemd-analyze"))
    done = subprocess.run(
        [analyze, "verify", "--recursive-errors=no", str(unit)],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""


def instructions() -> list[tuple[str, str]]:
    text = re.sub(r"^#.*\n", "", (DEPLOY / "container/Dockerfile").read_text(), flags=re.MULTILINE)
    lines = text.replace("\\\n", " ").splitlines()
    return [(word, rest) for word, _, rest in (line.partition(" ") for line in lines if line)]


def test_the_image_is_built_of_files_that_are_there_and_runs_as_nobody() -> None:
    words = instructions()
    stages = [rest for word, rest in words if word == "FROM"]
    assert len(stages) == 2
    last = words[[i for i, (word, _) in enumerate(words) if word == "FROM"][-1] :]
    assert ("USER", "zenlake") in last
    ignored = (ROOT / ".dockerignore").read_text().splitlines()
    for word, rest in words:
        if word == "COPY" and "--from" not in rest:
            for source in rest.split()[:-1]:
                assert (ROOT / source).exists(), source
                assert f"!{source}" in ignored, f"{source} does not reach the builder"
    (command,) = [json.loads(rest) for word, rest in words if word == "CMD"]
    assert ("ENTRYPOINT", '["zenlake"]') in words
    takes(command)
    (health,) = [rest.partition("CMD ")[2] for word, rest in words if word == "HEALTHCHECK"]
    takes(json.loads(health)[1:])
    known = {"FROM", "RUN", "COPY", "WORKDIR", "ENV", "USER", "VOLUME", "EXPOSE", "STOPSIGNAL"}
    assert {word for word, _ in words} <= known | {"HEALTHCHECK", "ENTRYPOINT", "CMD"}


def test_the_compose_file_opens_no_unguarded_port() -> None:
    found = yaml.safe_load((DEPLOY / "container/compose.yaml").read_text())
    service = found["services"]["zenlake"]
    assert (DEPLOY / "container" / service["build"]["context"]).resolve() == ROOT
    assert (ROOT / service["build"]["dockerfile"]).is_file()
    takes(list(service["command"]))
    assert "--open" in service["command"]
    metrics = [port for port in service["ports"] if "7780" in port]
    assert metrics == ["127.0.0.1:7780:7780"]
    assert set(found["volumes"]) == {"data"}


def targets() -> Iterator[tuple[str, dict[str, Any]]]:
    for panel in DASHBOARD["panels"]:
        for target in panel["targets"]:
            yield panel["title"], target


def test_the_dashboard_is_whole() -> None:
    ids = [panel["id"] for panel in DASHBOARD["panels"]]
    assert len(set(ids)) == len(ids)
    places = [panel["gridPos"] for panel in DASHBOARD["panels"]]
    for n, one in enumerate(places):
        assert one["x"] + one["w"] <= 24
        for other in places[n + 1 :]:
            apart = (
                one["x"] + one["w"] <= other["x"]
                or other["x"] + other["w"] <= one["x"]
                or one["y"] + one["h"] <= other["y"]
                or other["y"] + other["h"] <= one["y"]
            )
            assert apart, (one, other)
    sources = yaml.safe_load((DEPLOY / "grafana/provisioning/datasources/zenlake.yaml").read_text())
    known = {one["uid"]: one["type"] for one in sources["datasources"]}
    for title, target in targets():
        asked = target["datasource"]
        assert known[asked["uid"]] == asked["type"], title
    provider = yaml.safe_load((DEPLOY / "grafana/provisioning/dashboards/zenlake.yaml").read_text())
    assert provider["providers"][0]["type"] == "file"


def expressions() -> list[str]:
    """What the dashboard and the conditions of alerts ask Prometheus."""
    page = (ROOT / "docs/how-to/grafana.md").read_text("utf-8")
    conditions = re.findall(r"^\| `([^`]+)`", page, re.MULTILINE)
    return [target["expr"] for _, target in targets() if "expr" in target] + conditions


def asked(port: int, expression: str) -> list[dict[str, Any]]:
    """What Prometheus answers to an expression; raises for one that it does not understand."""
    query = urllib.parse.urlencode({"query": expression})
    url = f"http://127.0.0.1:{port}/api/v1/query?{query}"
    with urllib.request.urlopen(url, timeout=SECONDS) as one:
        result: list[dict[str, Any]] = json.load(one)["data"]["result"]
    return result


@pytest.mark.nightly(day="deploy/test_deploy.py")
@pytest.mark.slow
@pytest.mark.timeout(500)
def test_prometheus_reads_the_metrics_and_answers_the_dashboard(tmp_path: Path) -> None:
    prometheus = installed("prometheus", lambda: which("prometheus"))
    http, port = (int(endpoint().rpartition(":")[2]) for _ in range(2))
    up = Up(tmp_path / "data", where := endpoint(), "--no-lake", http=http)
    fleet = ("demo", "fleet", "-m", "client", "-e", where, "--robots", "1", "--json")
    with up.program:
        up.ready()
        text = (DEPLOY / "grafana/prometheus.yml").read_text()
        assert "127.0.0.1:7780" in text
        config = tmp_path / "prometheus.yml"
        mine = f"127.0.0.1:{http}"
        config.write_text(text.replace("127.0.0.1:7780", mine).replace("5s", "200ms"))
        server = subprocess.Popen(
            [
                prometheus, f"--config.file={config}", f"--storage.tsdb.path={tmp_path / 'tsdb'}",
                f"--web.listen-address=127.0.0.1:{port}",
            ],
            stderr=subprocess.DEVNULL,
        )  # fmt: skip
        try:
            with command(*fleet):
                until(lambda: answers(port) and asked(port, "zenoh_rx_bytes_total > 1000") != [])
                seen = float(asked(port, "count_over_time(up[1m])")[0]["value"][1])
                until(lambda: asked(port, f"count_over_time(up[1m]) > {seen + 2}") != [])
            assert asked(port, "up")[0]["value"][1] == "1"
            assert asked(port, "zenlake_healthy")[0]["value"][1] == "1"
            silent = {one for one in expressions() if not asked(port, one)}
        finally:
            server.terminate()
            server.wait(SECONDS)
    # There is nothing of a lake that does not run, nor of drops where there were none; alerts are
    # conditions that do not hold, and a disk that hardly fills has no day on which it is full.
    excused = re.compile(
        r"zenlake_lake_|zenoh_key_dropped_|[<>=] ?\d|^zenlake_disk_full_in_seconds$"
    )
    assert [one for one in silent if not excused.search(one)] == []


def answers(port: int) -> bool:
    with suppress(OSError):
        asked(port, "up")
        return True
    return False


def test_every_series_of_the_dashboard_and_of_the_alerts_exists() -> None:
    series = set(re.findall(r"^\| `(\w+)` \|", of_nodes() + of_services(), re.M))
    asked = expressions()
    named = {name for text in asked for name in re.findall(r"\b(?:zenlake|zenoh)_\w+", text)}
    assert len(named) > 15
    assert sorted(named - series) == []
