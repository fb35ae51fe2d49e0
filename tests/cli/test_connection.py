from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from zenlake.cli.app import application
from zenlake.cli.connection import Connection, Mode

NETWORK = (
    "pub", "sub", "put", "get", "delete", "queryable", "liveliness token", "scout", "info",
    "ping", "pong",
)  # fmt: skip


def run(*arguments: str) -> Result:
    environment = {"COLUMNS": "200", "TERM": "dumb", "NO_COLOR": "1"}
    return CliRunner(env=environment).invoke(application(arguments), list(arguments))


@pytest.mark.parametrize("name", NETWORK)
def test_every_command_on_the_network_has_the_same_options(name: str) -> None:
    told = run(*name.split(), "--help").output
    for option in (
        "-m", "--mode", "-e", "--connect", "-l", "--listen", "-c", "--config", "--cfg",
        "--no-multicast-scouting", "--wait", "--json",
    ):  # fmt: skip
        assert option in told


def test_options_become_a_configuration(tmp_path: Path) -> None:
    file = tmp_path / "node.json5"
    file.write_text("{mode: 'peer', id: 'a1', listen: {endpoints: ['tcp/[::]:1']}}")
    config = Connection(
        mode=Mode.CLIENT,
        connect=["tcp/a:1", "udp/b:2"],
        listen=["tcp/c:3"],
        file=str(file),
        changes=["transport/unicast/max_links:2", 'metadata:{"a:b": 1}'],
        no_multicast_scouting=True,
    ).config()
    assert config.mode == "client"
    assert config.get_json("id") == '"a1"'
    assert config.get_json("connect/endpoints") == '["tcp/a:1","udp/b:2"]'
    assert config.get_json("listen/endpoints") == '["tcp/c:3"]'
    assert config.get_json("transport/unicast/max_links") == "2"
    assert config.get_json("metadata") == '{"a:b":1}'
    assert config.get_json("scouting/multicast/enabled") == "false"


def test_nothing_said_about_the_network_is_noticed() -> None:
    assert not Connection(wait=1.0, as_json=True).asked()
    assert Connection(mode=Mode.PEER).asked()
    assert Connection(no_multicast_scouting=True).asked()


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("sub", "--cfg", "mode"), "write KEY:VALUE"),
        (("sub", "--cfg", "mod:'peer'"), "did you mean 'mode'"),
        (("sub", "--cfg", "mode:peer"), "mode"),
        (("sub", "-e", "nonsense"), "names no protocol"),
        (("sub", "-m", "router"), "router"),
        (("sub", "-c", "/nowhere/at/all.json5"), "/nowhere/at/all.json5"),
        (("sub", "-n", "0"), "0 is not in the range x>=1"),
        (("sub", "-k", "a//b", "--no-multicast-scouting"), "a//b"),
        (("put", "-k", "a//b", "-p", "x", "--no-multicast-scouting"), "a//b"),
        (("put", "-k", "a"), "--payload"),
        (("put", "-p", "a"), "--key"),
        (("put", "-k", "a", "-p", "x", "--priority", "urgent"), "urgent"),
        (("get", "-s", "a//b"), "a//b"),
        (("get", "-t", "NOBODY"), "NOBODY"),
        (("get", "-o", "-1"), "-1.0 is not in the range x>=0"),
        (("scout", "--what", "robot"), "robot"),
        (("liveliness", "shout", "-k", "a"), "shout"),
        (("liveliness", "get", "-k", "a", "--history"), "No such option: --history"),
        (("liveliness", "token", "-k", "a", "-n", "3"), "No such option: -n"),
        (("pub", "--interval", "-1"), "-1.0 is not in the range x>=0"),
    ],
)
def test_what_makes_no_sense_is_refused_with_2(arguments: tuple[str, ...], complaint: str) -> None:
    told = run(*arguments)
    assert told.exit_code == 2
    assert complaint in told.output
    assert "Traceback" not in told.output
