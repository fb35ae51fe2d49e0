"""Nodes that listen on loopback are found by the programs of their machine."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.interop.processes import OURS, THEIRS

pytestmark = pytest.mark.interop

LOOPBACK = "ip link set lo up"
MULTICAST = "ip link set lo multicast on"
#: One more interface, from whose address programs ask.
WIRED = (
    "ip link add wired type veth peer name other",
    "ip addr add 10.9.9.1/24 dev wired",
    "ip link set wired up",
    "ip link set other up",
)


def find_each_other(machine: tuple[str, ...], first: str, second: str) -> bool:
    """Whether two nodes do, on a machine that is made of these commands and has nothing else."""
    scene = f"exec {sys.executable} -W ignore {Path(__file__).with_name('alone.py')}"
    script = " && ".join([*machine, f"{scene} {first} {second}"])
    done = subprocess.run(["unshare", "-rn", "sh", "-c", script], timeout=45, check=False)
    return done.returncode == 0


def node(package: str, mode: str = "peer", listen: str = "tcp/127.0.0.1:0") -> str:
    return f"{package} {mode} {listen}"


@pytest.mark.parametrize(
    ("machine", "first", "second"),
    [
        # Loopback carries multicast even where its flag is not set, as on most machines.
        ((LOOPBACK,), node(OURS), node(OURS)),
        ((LOOPBACK,), node(OURS, listen="tcp/[::]:0"), node(OURS, listen="tcp/[::]:0")),
        ((LOOPBACK, MULTICAST), node(OURS), node(THEIRS)),
        ((LOOPBACK, MULTICAST), node(OURS, "router"), node(THEIRS, "client", "-")),
        ((LOOPBACK, MULTICAST), node(THEIRS), node(OURS)),
        ((LOOPBACK, *WIRED), node(OURS, "router"), node(THEIRS, "client", "-")),
        ((LOOPBACK, *WIRED), node(OURS), node(OURS, "client", "-")),
    ],
)
def test_nodes_on_loopback_find_each_other(
    machine: tuple[str, ...], first: str, second: str
) -> None:
    assert find_each_other(machine, first, second)
