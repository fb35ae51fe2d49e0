"""`zenlake demo fleet` beside a router of ours, each in a process of its own."""

from __future__ import annotations

import json

import pytest

from tests.cli.programs import command, endpoint, run


@pytest.mark.slow
def test_a_fleet_is_heard_through_a_router() -> None:
    where = endpoint()
    with command("router", "-l", where, "--no-multicast-scouting") as router:
        router.says("listens on")
        sub = command("sub", "-k", "robot/*/pose", "-m", "client", "-e", where, "-n", "20")
        with sub:
            sub.says("subscribed")
            done = ("--robots", "3", "--rate", "20", "--duration", "3", "--json")
            fleet = command("demo", "fleet", "-m", "client", "-e", where, *done)
            with fleet:
                assert sub.ends() == 0
                assert fleet.ends() == 0
    assert {line.split(":")[0] for line in sub.lines if line.startswith("put ")} == {
        f"put robot/{number}/pose" for number in (1, 2, 3)
    }
    told = json.loads(fleet.lines[-1])
    assert told["robots"] == 3
    assert told["samples"] > 150
    assert told["bytes"] > 10_000


@pytest.mark.slow
def test_a_fleet_goes_on_when_its_router_was_restarted() -> None:
    where = endpoint()
    listen = ("router", "-l", where, "--no-multicast-scouting")
    with command(*listen) as first:
        first.says("listens on")
        options = ("--robots", "2", "--rate", "50", "--camera-bytes", "0", "--seed", "5", "--json")
        fleet = command("demo", "fleet", "-m", "client", "-e", where, *options)
        with fleet:
            fleet.says("samples")
            first.process.kill()
            first.process.wait()
            with command(*listen) as second:
                second.says("listens on")
                with command(
                    "sub", "-k", "robot/*/pose", "-m", "client", "-e", where, "-n", "200"
                ) as sub:
                    sub.says("subscribed")
                    assert sub.ends() == 0
                assert fleet.process.poll() is None
                assert fleet.interrupt() == 130
    heard = {line.split(":")[0] for line in sub.lines if line.startswith("put ")}
    assert heard == {"put robot/1/pose", "put robot/2/pose"}


def test_without_a_router_the_fleet_says_what_it_tried() -> None:
    where = endpoint()
    code, said = run("demo", "fleet", "-m", "client", "-e", where, "--no-multicast-scouting")
    assert code == 1
    assert where in "\n".join(said)
