"""Nodes in other processes, which can be stopped and killed, and places where nodes can meet."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar, cast

from tests.interop.peer import SECONDS, Peer
from tests.ports import free_port

T = TypeVar("T")

OURS = "zenlake"
THEIRS = "zenoh"

#: A call that waits for something has its own deadline; this is for those that get none.
PATIENCE = 2 * SECONDS


class Died(Exception):
    """The process is no more."""


class Process:
    """A process that runs nodes of one package."""

    def __init__(self, package: str) -> None:
        """Start it."""
        self.package = package
        self.running = subprocess.Popen(
            [sys.executable, "-W", "ignore", str(Path(__file__).with_name("peer.py")), package],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.waiting: dict[int, Future[Any]] = {}
        self.next = 0
        self.lock = threading.Lock()
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()

    def node(self, name: str = "") -> Peer:
        """A node of that process, to be used as if it were here."""
        return cast(Peer, Elsewhere(self, name))

    def call(self, node: str, name: str, args: tuple[Any, ...], options: dict[str, Any]) -> Any:
        """Make a call there and wait for its outcome."""
        future: Future[Any] = Future()
        with self.lock:
            self.next += 1
            self.waiting[self.next] = future
            request = {"id": self.next, "node": node, "call": name}
        stdin = self.running.stdin
        assert stdin is not None
        with self.lock:
            stdin.write(json.dumps({**request, "args": args, "options": options}) + "\n")
            stdin.flush()
        return future.result(PATIENCE)

    def _read(self) -> None:
        stdout = self.running.stdout
        assert stdout is not None
        for line in stdout:
            outcome = json.loads(line)
            future = self.waiting.pop(outcome["id"])
            if "error" in outcome:
                future.set_exception(RuntimeError(outcome["error"]))
            else:
                future.set_result(outcome["result"])
        while self.waiting:
            self.waiting.popitem()[1].set_exception(Died(self.package))

    def freeze(self) -> None:
        """Let it live, and do nothing."""
        os.kill(self.running.pid, signal.SIGSTOP)

    def thaw(self) -> None:
        """Let it go on."""
        os.kill(self.running.pid, signal.SIGCONT)

    def kill(self) -> None:
        """End it without a word."""
        self.running.kill()
        self.running.wait(SECONDS)
        self.reader.join(SECONDS)
        assert self.running.stdin is not None
        assert self.running.stdout is not None
        with suppress(BrokenPipeError):
            self.running.stdin.close()
        self.running.stdout.close()

    def __enter__(self) -> Process:
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()


class Elsewhere:
    """A node of another process."""

    def __init__(self, process: Process, name: str) -> None:
        """One of several there."""
        self._process = process
        self._name = name

    def __getattr__(self, call: str) -> Callable[..., Any]:
        def there(*args: Any, **options: Any) -> Any:
            return self._process.call(self._name, call, args, options)

        return there


def meanwhile(call: Callable[..., T], *args: Any, **options: Any) -> Future[T]:
    """Make a call on another thread."""
    future: Future[T] = Future()

    def run() -> None:
        try:
            future.set_result(call(*args, **options))
        except BaseException as error:
            future.set_exception(error)

    threading.Thread(target=run, daemon=True).start()
    return future


def listen(peer: Peer, mode: str = "peer", protocol: str = "tcp", **keys: object) -> str:
    """Open a node that others can connect to; where."""
    kind = socket.SOCK_DGRAM if protocol == "udp" else socket.SOCK_STREAM
    endpoint = f"{protocol}/127.0.0.1:{free_port(kind)}"
    peer.open(mode, listen__endpoints=[endpoint], **keys)
    return endpoint


def connect(peer: Peer, endpoint: str, mode: str = "peer", **keys: object) -> str:
    """Open a node that connects to another; its id."""
    return peer.open(mode, connect__endpoints=[endpoint], **keys)
