"""Real servers for volumes, on this machine, in folders of their own, ended with the test run.

PostgreSQL and Redis come from Debian's packages, S3 from moto. A package that is missing is
installed if that is possible here (root, and apt); else the test says what to install.
"""

from __future__ import annotations

import functools
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from tests.installed import installed, which
from tests.ports import free_port

SECONDS = 60.0


#: Ended with the test run by tests/conftest.py: `atexit` does nothing in a worker of xdist.
RUNNING: list[Server] = []


class Server:
    """A server that can be stopped and started again where it was."""

    def __init__(
        self, command: list[str], folder: Path, is_up: Callable[[], bool], user: str | None = None
    ) -> None:
        self._command = command
        self._user = user
        self.folder = folder
        self._is_up = is_up
        self._process: subprocess.Popen[bytes] | None = None
        self.start()
        RUNNING.append(self)

    def start(self) -> None:
        with (self.folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                self._command,
                stdout=log,
                stderr=log,
                stdin=subprocess.DEVNULL,
                user=self._user,
                group=self._user,
                extra_groups=None if self._user is None else [],
            )
        end = time.monotonic() + SECONDS
        while not self._is_up():
            if self._process.poll() is not None or time.monotonic() > end:
                pytest.fail(f"{self._command}: {(self.folder / 'log').read_text()[-2000:]}")
            time.sleep(0.02)

    def stop(self) -> None:
        """End it as a fast shutdown does."""
        if self._process is not None:
            self._process.send_signal(signal.SIGINT)
            self._process.wait(SECONDS)
            self._process = None

    def hang(self) -> None:
        """Let it take connections and never answer, until it goes on."""
        for process in self._processes():
            process.suspend()

    def go_on(self) -> None:
        for process in self._processes():
            process.resume()

    def _processes(self) -> list[psutil.Process]:
        assert self._process is not None
        whole = psutil.Process(self._process.pid)
        return [whole, *whole.children(recursive=True)]

    def end(self) -> None:
        self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)


def accepts(port: int) -> Callable[[], bool]:
    def ask() -> bool:
        with socket.socket() as probe:
            probe.settimeout(1)
            return probe.connect_ex(("127.0.0.1", port)) == 0

    return ask


def _initdb() -> str | None:
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    return str(found[-1]) if found else which("initdb")


@functools.cache
def postgres() -> tuple[Server, str]:
    """A PostgreSQL with an empty database, and the URL of it."""
    bin = Path(installed("postgresql", _initdb)).parent
    folder = Path(tempfile.mkdtemp(prefix="zenlake-postgres-", dir="/tmp"))
    # The server refuses to be root.
    user = "postgres" if os.getuid() == 0 else None
    if user is not None:
        shutil.chown(folder, user, user)
    subprocess.run(
        [str(bin / "initdb"), "-D", f"{folder}/data", "-E", "UTF8", "--locale=C",
         "-U", "postgres", "-A", "trust", "--no-sync"],
        check=True, capture_output=True, cwd="/", timeout=SECONDS,
        user=user, group=user, extra_groups=None if user is None else [],
    )  # fmt: skip
    port = free_port()
    url = f"postgresql://postgres@127.0.0.1:{port}/postgres"
    command = [
        str(bin / "postgres"), "-D", f"{folder}/data", "-p", str(port),
        "-c", "listen_addresses=127.0.0.1", "-c", f"unix_socket_directories={folder}",
        "-c", "fsync=off",
    ]  # fmt: skip
    ready = [str(bin / "pg_isready"), "-q", "-h", "127.0.0.1", "-p", str(port)]

    def is_up() -> bool:
        return subprocess.run(ready, check=False).returncode == 0

    return Server(command, folder, is_up, user), url


@functools.cache
def redis() -> tuple[Server, str]:
    """A Redis that keeps what it was told, and the URL of it."""
    path = installed("redis-server", lambda: which("redis-server"))
    folder = Path(tempfile.mkdtemp(prefix="zenlake-redis-", dir="/tmp"))
    port = free_port()
    command = [
        path, "--port", str(port), "--bind", "127.0.0.1", "--dir", str(folder),
        "--appendonly", "yes", "--appendfsync", "no", "--save", "",
    ]  # fmt: skip
    return Server(command, folder, accepts(port)), f"redis://127.0.0.1:{port}/0"


@functools.cache
def s3() -> tuple[Server, str]:
    """An S3 with the bucket `zenlake`, and the URL of it; it forgets when it ends."""
    folder = Path(tempfile.mkdtemp(prefix="zenlake-s3-", dir="/tmp"))
    port = free_port()
    command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
    server = Server(command, folder, accepts(port))
    url = f"http://127.0.0.1:{port}"
    import boto3

    client = boto3.client(
        "s3",
        endpoint_url=url,
        region_name="us-east-1",
        aws_access_key_id="me",
        aws_secret_access_key="hush",
    )
    client.create_bucket(Bucket="zenlake")
    return server, url
