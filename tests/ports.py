"""Ports for programs that a test starts, which nobody else is given meanwhile."""

from __future__ import annotations

import fcntl
import os
import random
import socket
import tempfile
from functools import cache
from pathlib import Path
from typing import IO

#: Below those that the system hands out by itself (`net.ipv4.ip_local_port_range`): a port of
#: those may be another program's before the one that it was meant for has started.
PORTS = range(18_000, 32_000)
_given: set[int] = set()


@cache
def _locks() -> IO[bytes]:
    """A file shared by all test runs: its byte n is locked by the process that has port n."""
    return (Path(tempfile.gettempdir()) / f"zenlake-ports-{os.getuid()}.lock").open("wb")


def free_port(kind: socket.SocketKind = socket.SOCK_STREAM) -> int:
    """Return a port on loopback that no other test is given as long as this process runs."""
    for port in random.sample(PORTS, len(PORTS)):
        if port not in _given and _is_mine(port) and _is_free(port, kind):
            _given.add(port)
            return port
    raise AssertionError(f"no port of {PORTS} is free")


def _is_mine(port: int) -> bool:
    """Lock the port; False if another test run has it."""
    try:
        fcntl.lockf(_locks(), fcntl.LOCK_EX | fcntl.LOCK_NB, 1, port)
    except OSError:
        return False
    return True


def _is_free(port: int, kind: socket.SocketKind) -> bool:
    with socket.socket(socket.AF_INET, kind) as probe:
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True
