"""What `zenlake up` prints: a live screen on a terminal, lines elsewhere, or JSON objects.

A thread of its own prints, so that a terminal that was stopped, or a pipe that nobody reads,
holds up nothing else; what it cannot print in time is lost.
"""

from __future__ import annotations

import contextlib
import json
import queue
import sys
import threading
import time
from dataclasses import replace
from enum import Enum
from typing import TYPE_CHECKING, Any, Final

from zenlake.printable import printable_lines
from zenlake.supervise.compiling import Compilation
from zenlake.supervise.screen import compiling, line, screen
from zenlake.supervise.status import Health, Status
from zenlake.supervise.throttle import Line

if TYPE_CHECKING:
    from rich.live import Live

__all__ = ["Output", "OutputFormat"]

WAITING: Final = 1000
"""Lines that wait to be printed; more are lost."""

REFRESH: Final = 0.5


class OutputFormat(Enum):
    """How it is told."""

    LIVE = "live"
    PLAIN = "plain"
    JSON = "json"


class Output:
    """Prints what it is given, in its own time."""

    def __init__(
        self, output_format: OutputFormat, every: float, compilation: Compilation | None = None
    ) -> None:
        """`every`: seconds between two lines with the status, if it is told in lines.

        `compilation`: a compiler in the background, whose progress is shown.
        """
        self._format = output_format
        self._every = every
        self._compilation = compilation
        self._waiting: queue.Queue[tuple[str, dict[str, Any] | None] | None]
        self._waiting = queue.Queue(WAITING)
        self._status: Status | None = None
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="zenlake output", daemon=True)
        self._thread.start()

    def write(self, text: str, fact: dict[str, Any] | None = None) -> None:
        """Print a text to people, or a fact where JSON is wanted."""
        with contextlib.suppress(queue.Full):
            self._waiting.put_nowait((text, fact))

    def write_line(self, noted: Line) -> None:
        """Print a dated line."""
        self.write(str(noted), {"at": noted.at, "told": noted.words, "bad": noted.bad})

    def show_status(self, status: Status) -> None:
        """This is how it is now."""
        self._status = status

    def close(self) -> None:
        """Print what waits, for a moment at most."""
        self._over.set()
        with contextlib.suppress(queue.Full):
            self._waiting.put_nowait(None)
        self._thread.join(2.0)

    def _run(self) -> None:
        with contextlib.suppress(OSError):
            if self._format is OutputFormat.LIVE:
                self._live()
            else:
                self._lines()

    def _next(self, seconds: float) -> tuple[str, dict[str, Any] | None] | None:
        try:
            return self._waiting.get(timeout=seconds)
        except queue.Empty:
            return None

    def _ended(self) -> bool:
        return self._over.is_set() and self._waiting.empty()

    def _lines(self) -> None:
        shown = time.monotonic()
        while not self._ended():
            message = self._next(REFRESH)
            if message is not None:
                self._print(*message)
            self._look_at_compiler()
            status = self._status
            if status is not None and time.monotonic() - shown >= self._every:
                shown = time.monotonic()
                words = "; ".join([line(status), *self._compiler("compiling: ")])
                self._print(str(Line(status.at, words)), {"status": _plain(status)})

    def _print(self, text: str, fact: dict[str, Any] | None) -> None:
        if self._format is OutputFormat.JSON:
            if fact is None:
                return
            text = json.dumps(fact)
        sys.stdout.write(printable_lines(text) + "\n")
        sys.stdout.flush()

    def _live(self) -> None:
        from rich.console import Console
        from rich.live import Live

        console = Console(highlight=False, soft_wrap=True)
        with Live(console=console, auto_refresh=False, transient=True) as live:
            while not self._ended():
                message = self._next(REFRESH)
                while message is not None:
                    console.print(printable_lines(message[0]), markup=False)
                    message = None if self._waiting.empty() else self._next(0.0)
                self._look_at_compiler()
                self._draw(live, console.width)

    def _look_at_compiler(self) -> None:
        ended = None if self._compilation is None else self._compilation.look(time.time())
        if ended is not None:
            self.write_line(ended)

    def _compiler(self, lead: str = "") -> list[str]:
        """Return the progress of the compiler as one line; an empty list if no compiler runs."""
        words = "" if self._compilation is None else self._compilation.words
        return [lead + words] if words else []

    def _draw(self, live: Live, width: int) -> None:
        from rich.text import Text

        status = self._status
        if status is None:
            return
        # What was told stands above already.
        lines = screen(replace(status, told=[]), width)
        lines += [compiling(words)[:width] for words in self._compiler()]
        text = Text("\n".join(lines), no_wrap=True)
        text.stylize(_colour(status.health), 0, len(lines[0]))
        live.update(text, refresh=True)


def _colour(health: Health) -> str:
    return {Health.WELL: "green", Health.STARTING: "yellow", Health.UNWELL: "bold red"}[health]


def _plain(status: Status) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(status.to_json())
    return document
