"""Programs that one command runs beside each other: started, watched, and stopped in order.

A child has a session of its own, so that an interruption at the terminal reaches the parent
alone, which then stops the children one after the other. Should the parent be killed, the system
ends the children (on Linux).
"""

from __future__ import annotations

import ctypes
import json
import os
import queue
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import IO, Any

from zenlake.errors import ZError

PR_SET_PDEATHSIG = 1


class ChildFailed(ZError):
    """A program ended that was to run on; with its last words."""


class Child:
    """One program; each line that it prints is a JSON object."""

    def __init__(self, name: str, arguments: list[str], log: Path) -> None:
        """Start it; what it says to people goes to `log`."""
        self.name = name
        self.log = log
        log.parent.mkdir(parents=True, exist_ok=True)
        self._written = log.stat().st_size if log.exists() else 0
        self.facts: queue.SimpleQueue[dict[str, Any] | None] = queue.SimpleQueue()
        with log.open("ab") as words:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "zenlake", *arguments],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=words,
                start_new_session=True,
                preexec_fn=_end_with_parent if sys.platform == "linux" else None,
                env=os.environ | {"PYTHONUNBUFFERED": "1"},
            )
        assert self.process.stdout is not None
        threading.Thread(
            target=self._hear, args=(self.process.stdout,), name=f"zenlake {name}", daemon=True
        ).start()

    def _hear(self, lines: IO[bytes]) -> None:
        for line in lines:
            try:
                fact = json.loads(line)
            except ValueError:
                continue
            if isinstance(fact, dict):
                self.facts.put(fact)
        self.facts.put(None)

    def first(self, seconds: float) -> dict[str, Any]:
        """Its first line: it is up. Raises `ChildFailed` if that does not come."""
        try:
            fact = self.facts.get(timeout=seconds)
        except queue.Empty:
            raise ChildFailed(
                f"{self.name} is not up after {seconds:g} s; see {self.log}"
            ) from None
        if fact is None:
            raise self.failure()
        return fact

    def running(self) -> bool:
        """Whether it has not ended."""
        return self.process.poll() is None

    def failure(self) -> ChildFailed:
        """What to say of a child that ended."""
        code = self.process.wait()
        how = f"was killed by {signal.Signals(-code).name}" if code < 0 else f"ended with {code}"
        said = self._last_words()
        return ChildFailed(f"{self.name} {how}: {said}" if said else f"{self.name} {how}")

    def _last_words(self) -> str:
        """What it told people last, of this run."""
        with self.log.open("rb") as words:
            words.seek(self._written)
            lines = [
                line.strip()
                for line in words.read()[-4000:].decode("utf-8", "replace").splitlines()
            ]
        spoken = [line for line in lines if line]
        own = [line for line in spoken if line.startswith("zenlake: ")]
        return (own or spoken or [""])[-1].removeprefix("zenlake: ")

    def stop(self, seconds: float) -> bool:
        """End it in good order; False if it had to be killed."""
        if not self.running():
            return True
        self.process.terminate()
        try:
            self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            # It may have children of its own, such as a Java: they are in its session.
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
            return False
        return True


def _end_with_parent() -> None:
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
