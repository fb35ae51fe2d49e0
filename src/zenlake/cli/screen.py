"""A terminal that is drawn on again and again, and that keys are pressed at."""

from __future__ import annotations

import os
import select
import shutil
import sys
import time
from typing import Any, Self

__all__ = ["Screen"]

#: The other screen of the terminal, without a cursor; and back.
ENTER, LEAVE = "\x1b[?1049h\x1b[?25l", "\x1b[?25h\x1b[?1049l"
HOME, REST_OF_LINE, REST_OF_SCREEN = "\x1b[H", "\x1b[K", "\x1b[J"


class Screen:
    """Takes the terminal for itself, and gives it back as it was."""

    @staticmethod
    def possible() -> bool:
        """Whether there is a terminal that understands this."""
        return sys.stdout.isatty() and os.environ.get("TERM", "dumb") != "dumb"

    @staticmethod
    def size() -> tuple[int, int]:
        """Columns and lines; 80 by 24 where the terminal does not say."""
        columns, lines = shutil.get_terminal_size((80, 24))
        return columns, lines

    def __enter__(self) -> Self:
        self._before: Any = None
        if sys.stdin.isatty() and sys.platform != "win32":
            import termios
            import tty

            self._before = termios.tcgetattr(sys.stdin.fileno())
            tty.setcbreak(sys.stdin.fileno())
        sys.stdout.write(ENTER)
        sys.stdout.flush()
        return self

    def __exit__(self, *_: object) -> None:
        try:
            sys.stdout.write(LEAVE)
            sys.stdout.flush()
        finally:
            if self._before is not None:
                import termios

                termios.tcsetattr(sys.stdin.fileno(), termios.TCSADRAIN, self._before)

    def show(self, lines: list[str]) -> None:
        """Draw these lines in the place of those before."""
        text = f"{REST_OF_LINE}\r\n".join(lines)
        sys.stdout.write(f"{HOME}{text}{REST_OF_LINE}{REST_OF_SCREEN}")
        sys.stdout.flush()

    def pressed(self, seconds: float) -> str:
        """The key that is pressed within that time, as a small letter; else nothing."""
        patience = max(0.0, seconds)
        if self._before is None:
            time.sleep(patience)
            return ""
        ready, _, _ = select.select([sys.stdin], [], [], patience)
        if not ready:
            return ""
        return os.read(sys.stdin.fileno(), 64).decode("utf-8", "replace")[:1].lower()
