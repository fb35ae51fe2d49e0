"""A process of the service: started, heard line by line, stopped with all that it started.

A child has a session of its own, so that an interruption at the terminal reaches the parent
alone. Should the parent be killed, the system ends the children (on Linux); everywhere a child
that reads its standard input finds that it has ended.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import signal
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any, Final

from zenlake.supervise.logfile import LogFile

__all__ = ["Child", "members", "usage"]

PR_SET_PDEATHSIG: Final = 1
WORDS: Final = 50
"""Lines of its log that are remembered."""

MOST_LINE: Final = 32 << 20
"""The longest line that a child may print, in bytes."""

REFUSED: Final = 2
"""The exit code of a command line or configuration that is wrong."""

_libc = ctypes.CDLL(None) if sys.platform == "linux" else None

Heard = Callable[["Child", dict[str, Any]], None]
Said = Callable[["Child", str], None]


class Child:
    """One process; each line of its output is a JSON object, each line of its errors is logged."""

    def __init__(
        self, name: str, arguments: list[str], log: Path, heard: Heard, said: Said
    ) -> None:
        """Start `zenlake` with these arguments, on the thread that lives longest: the main one.

        `heard` is called with each object, `said` with each line of the log; by other threads.
        """
        self.name = name
        self.log = log
        self._heard = heard
        self._said = said
        self._words: deque[str] = deque(maxlen=WORDS)
        self._file = LogFile(log)
        self.process = subprocess.Popen(
            [sys.executable, "-m", "zenlake", *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
            preexec_fn=_end_with_parent if sys.platform == "linux" else None,
            env=os.environ | {"PYTHONUNBUFFERED": "1", "ZENLAKE_SUPERVISED": "1"},
        )
        self.pid = self.process.pid
        assert self.process.stdout is not None
        assert self.process.stderr is not None
        self._threads = [
            threading.Thread(target=self._hear, args=(self.process.stdout,), daemon=True),
            threading.Thread(target=self._note, args=(self.process.stderr,), daemon=True),
        ]
        for thread in self._threads:
            thread.start()

    def _hear(self, lines: IO[bytes]) -> None:
        while line := lines.readline(MOST_LINE):
            try:
                fact = json.loads(line)
            except ValueError:
                continue
            if isinstance(fact, dict):
                self._heard(self, fact)

    def _note(self, lines: IO[bytes]) -> None:
        while line := lines.readline(1 << 16):
            self._file.write(line)
            words = line.decode("utf-8", "replace").strip()
            if words:
                self._words.append(words)
                self._said(self, words)
        self._file.close()

    def ask(self, words: str) -> None:
        """Write a line to it; it answers in its own time, or not."""
        assert self.process.stdin is not None
        with contextlib.suppress(OSError, ValueError):
            self.process.stdin.write(words.encode() + b"\n")
            self.process.stdin.flush()

    def running(self) -> bool:
        """Whether it has not ended."""
        return self.process.poll() is None

    @property
    def refused(self) -> bool:
        """Whether it ended because of what it was told."""
        return self.process.returncode == REFUSED

    def why(self) -> str:
        """How it ended, and its last words."""
        code = self.process.wait()
        for thread in self._threads:
            thread.join(1.0)
        how = f"was killed by {_signal(-code)}" if code < 0 else f"ended with {code}"
        said = self._last_words()
        return f"{how}: {said}" if said and code >= 0 else how

    def _last_words(self) -> str:
        spoken = list(self._words)
        own = [line for line in spoken if line.startswith("zenlake: ")]
        return (own or spoken or [""])[-1].removeprefix("zenlake: ")

    def terminate(self) -> None:
        """Ask it to end in good order."""
        if self.running():
            self.process.terminate()

    def kill(self) -> None:
        """End it and everything that it started: nothing of it is left when this returns."""
        for pid in members(self.pid):
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        if self.process.poll() is None:  # else its number may be another's by now
            with contextlib.suppress(OSError):
                os.killpg(self.pid, signal.SIGKILL)
        self.process.wait()
        # What was started between the look and the kill.
        for pid in members(self.pid):
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)

    def close(self) -> None:
        """Let go of its pipes once it has ended."""
        for pipe in (self.process.stdin, self.process.stdout, self.process.stderr):
            if pipe is not None:
                with contextlib.suppress(OSError):
                    pipe.close()


def members(session: int) -> list[int]:
    """The processes of a session, such as a Java and its Python workers; empty if not Linux."""
    return [pid for pid, stat in _processes() if int(stat[3]) == session]


def usage(session: int) -> tuple[int, float]:
    """Memory in bytes and CPU in seconds of all processes of a session; zeros if not Linux."""
    pages, ticks = 0, 0
    for _, stat in _processes():
        if int(stat[3]) == session:
            ticks += int(stat[11]) + int(stat[12])
            pages += int(stat[21])
    return pages * os.sysconf("SC_PAGE_SIZE"), ticks / os.sysconf("SC_CLK_TCK")


def _processes() -> list[tuple[int, list[str]]]:
    """The processes that run, each with what `/proc/PID/stat` says after its name."""
    processes: list[tuple[int, list[str]]] = []
    try:
        names = os.listdir("/proc")
    except OSError:
        return processes
    for name in names:
        if name.isdecimal():
            with contextlib.suppress(OSError, ValueError, IndexError):
                text = Path("/proc", name, "stat").read_text("utf-8", "replace")
                processes.append((int(name), text.rpartition(")")[2].split()))
    return processes


def _signal(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _end_with_parent() -> None:
    if _libc is not None:
        _libc.prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
