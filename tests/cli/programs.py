"""Programs in processes of their own: started, listened to line by line, interrupted, ended."""

from __future__ import annotations

import os
import queue
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Self

from typer.testing import CliRunner

from tests.ports import free_port
from tests.waiting import SECONDS
from zenlake.cli.app import application

ROOT = Path(__file__).resolve().parents[2]
# A test run may itself have been started deaf to interruptions, which its children inherit.
HEARING = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); "
COMMAND = HEARING + "from zenlake.cli.app import main; main()"
SCRIPT = HEARING + (
    "import runpy, sys; sys.argv = sys.argv[1:]; sys.path.insert(0, sys.argv.pop(0)); "
    "runpy.run_path(sys.argv[0], run_name='__main__')"
)


class Program:
    """A program that runs; what it prints is heard here, both of its streams in one."""

    def __init__(
        self,
        *arguments: str,
        given: str | None = None,
        folder: Path | None = None,
        stdin: int = subprocess.DEVNULL,
        program: str = sys.executable,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        """`arguments` for Python; `given` on the standard input, which then ends.

        Another `program` has an `environment` of its own, too.
        """
        path = os.environ.get("PYTHONPATH", "")
        ours = os.environ | {"PYTHONPATH": str(ROOT / path) if path else ""}
        self.lines: list[str] = []
        self._heard: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        self.process = subprocess.Popen(
            [program, *arguments],
            cwd=folder,
            stdin=stdin if given is None else subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            encoding="utf-8",
            env={
                **(ours if environment is None else environment),
                "PYTHONUNBUFFERED": "1",
                "PYTHONIOENCODING": "utf-8",
                "COLUMNS": "200",
            },
        )
        threading.Thread(target=self._hear, daemon=True).start()
        if given is not None:
            assert self.process.stdin is not None
            self.process.stdin.write(given)
            self.process.stdin.close()

    def _hear(self) -> None:
        assert self.process.stdout is not None
        with self.process.stdout as lines:
            for line in lines:
                self._heard.put(line.rstrip("\n"))
        self._heard.put(None)

    def says(self, words: str, seconds: float = SECONDS) -> str:
        """The next line that has these words in it; waits for it, through silences so long."""
        while True:
            line = self._next(seconds)
            if line is None:
                raise AssertionError(f"ended without {words!r}:\n" + "\n".join(self.lines))
            if words in line:
                return line

    def _next(self, seconds: float = SECONDS) -> str | None:
        try:
            line = self._heard.get(timeout=seconds)
        except queue.Empty:
            raise AssertionError("silence after:\n" + "\n".join(self.lines)) from None
        if line is not None:
            self.lines.append(line)
        return line

    def ends(self, silence: float = SECONDS) -> int:
        """Its exit code; waits for it, and hears the rest of what it says."""
        while self._next(silence) is not None:
            pass
        return self.process.wait(SECONDS)

    def interrupt(self, how: signal.Signals = signal.SIGINT) -> int:
        """Interrupt it as Ctrl-C does; its exit code."""
        self.process.send_signal(how)
        return self.ends()

    def __enter__(self) -> Self:
        """Itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Nothing is left behind."""
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()


def command(*arguments: str, given: str | None = None) -> Program:
    """`zenlake` with these arguments, finding nobody by itself."""
    return Program("-c", COMMAND, *arguments, "--no-multicast-scouting", given=given)


def run(*arguments: str, given: str | None = None) -> tuple[int, list[str]]:
    """The code and the lines of a command that ends by itself, in this very process."""
    return run_alone(*arguments, "--no-multicast-scouting", given=given)


def run_alone(*arguments: str, given: str | None = None) -> tuple[int, list[str]]:
    """The same of a command that does not go to the network."""
    told = CliRunner(env={"COLUMNS": "200"}).invoke(
        application(arguments), list(arguments), input=given
    )
    if told.exception is not None and not isinstance(told.exception, SystemExit):
        raise told.exception
    return told.exit_code, told.output.splitlines()


def script(file: Path, *arguments: str) -> Program:
    """A Python file, whose neighbours it can import."""
    return Program("-c", SCRIPT, str(file.parent), str(file), *arguments)


def endpoint() -> str:
    """An endpoint on loopback that nobody listens on."""
    return f"tcp/127.0.0.1:{free_port()}"
