"""Publishers, a network that vanishes and a small disk, for a month of `zenlake up`."""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.cli.programs import HEARING, Program

PUBLISHER = (
    HEARING
    + """
import json, sys, threading, time, zenoh, zenoh.ext
config = zenoh.Config()
config.insert_json5("mode", '"client"')
config.insert_json5("scouting/multicast/enabled", "false")
config.insert_json5("connect/endpoints", json.dumps([sys.argv[1]]))
config.insert_json5("connect/timeout_ms", "-1")
config.insert_json5("connect/retry", '{"period_init_ms": 200, "period_max_ms": 1000}')
session = zenoh.open(config)
publisher = zenoh.ext.declare_advanced_publisher(
    session, sys.argv[2], publisher_detection=True,
    cache=zenoh.ext.CacheConfig(max_samples=1_000_000),
    sample_miss_detection=zenoh.ext.MissDetectionConfig(heartbeat=0.5),
)
over = threading.Event()
threading.Thread(target=lambda: (sys.stdin.read(), over.set()), daemon=True).start()
said, due = 0, time.monotonic()
print("ready", flush=True)
while not over.is_set():
    publisher.put(json.dumps({"n": said, "filler": "x" * int(sys.argv[4])}))
    said += 1
    due += 1 / float(sys.argv[3])
    over.wait(max(0.0, due - time.monotonic()))
print(f"said {said}", flush=True)
threading.Event().wait()  # its cache answers until the end
"""
)
"""An advanced publisher of Eclipse: it numbers what it says, and has all of it at hand."""


class Publisher:
    """A program of Eclipse's that publishes until it is told to stop, and says how much."""

    def __init__(self, where: str, key: str, rate: float, filler: int) -> None:
        self.key = key
        self.program = Program(
            "-c", PUBLISHER, where, key, str(rate), str(filler), stdin=subprocess.PIPE
        )

    def stop(self) -> int:
        """How many samples it has said in all; it stays, to answer for them."""
        assert self.program.process.stdin is not None
        self.program.process.stdin.close()
        return int(self.program.says("said ").split()[1])


class Cable:
    """A TCP connection through this process, which can vanish: no bytes, no end, no error."""

    def __init__(self, to: int) -> None:
        self._to = to
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.where = f"tcp/127.0.0.1:{self._socket.getsockname()[1]}"
        self._plugged = threading.Event()
        self._plugged.set()
        self._links: list[socket.socket] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def pull(self) -> None:
        """From now on nothing passes, and nobody is told."""
        self._plugged.clear()

    def plug(self) -> None:
        """What was connected is gone; new connections pass."""
        links, self._links = self._links, []
        for link in links:
            with contextlib.suppress(OSError):
                link.shutdown(socket.SHUT_RDWR)
            link.close()
        self._plugged.set()

    def close(self) -> None:
        self._socket.close()
        self.plug()

    def _accept(self) -> None:
        while True:
            try:
                near, _ = self._socket.accept()
            except OSError:
                return
            self._plugged.wait()
            try:
                far = socket.create_connection(("127.0.0.1", self._to), timeout=5)
            except OSError:
                near.close()
                continue
            far.settimeout(None)
            self._links += [near, far]
            for one, other in ((near, far), (far, near)):
                threading.Thread(target=self._carry, args=(one, other), daemon=True).start()

    def _carry(self, one: socket.socket, other: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := one.recv(1 << 16):
                self._plugged.wait()
                other.sendall(data)
        for link in (one, other):
            with contextlib.suppress(OSError):
                link.shutdown(socket.SHUT_RDWR)


@contextmanager
def small_disk(folder: Path, size: int) -> Iterator[bool]:
    """A folder that is a disk of its own; False if that takes rights which are not there."""
    folder.mkdir(parents=True)
    mounted = (
        sys.platform == "linux"
        and os.geteuid() == 0
        and subprocess.run(
            ["mount", "-t", "tmpfs", "-o", f"size={size}", "zenlake-month", str(folder)],
            check=False,
            capture_output=True,
        ).returncode
        == 0
    )
    try:
        yield mounted
    finally:
        if mounted:
            subprocess.run(["umount", "-l", str(folder)], check=False, capture_output=True)


@contextmanager
def full(folder: Path) -> Iterator[None]:
    """A disk without a free byte."""
    ballast = folder / "ballast"
    try:
        with contextlib.suppress(OSError), ballast.open("wb", buffering=0) as file:
            while shutil.disk_usage(folder).free:
                file.write(bytes(min(1 << 20, max(4096, shutil.disk_usage(folder).free))))
        yield
    finally:
        ballast.unlink(missing_ok=True)


def files_in(folder: Path) -> int:
    """How many files there are below a folder."""
    return sum(len(files) for _, _, files in os.walk(folder))
