"""Throttle for messages to people: a dated line for each problem, repeated seldom."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from zenlake.clock.throttle import Throttle

__all__ = ["Line", "MessageThrottle"]

AGAIN: Final = 300.0
"""Seconds before the same problem is told again."""

LINES: Final = 20
"""Lines that are kept to be shown."""


@dataclass(frozen=True, slots=True)
class Line:
    """Something that was told: when (seconds since 1970), and what."""

    at: float
    words: str
    bad: bool = True

    def __str__(self) -> str:
        return f"{datetime.fromtimestamp(self.at, UTC):%Y-%m-%d %H:%M:%SZ} {self.words}"


class MessageThrottle:
    """Remembers what was told, so that a problem that goes on does not fill a log."""

    def __init__(self, again: float = AGAIN) -> None:
        """`again`: seconds before the same subject is told again."""
        self._throttle = Throttle(again)
        #: The last lines, oldest first.
        self.lines: deque[Line] = deque(maxlen=LINES)

    def admit(self, at: float, subject: str, words: str, *, bad: bool = True) -> Line | None:
        """The line to print now, or None if the subject was told a short while ago.

        `subject` names the problem without its numbers; `words` are for people.
        """
        told = self._throttle.line(at, words, subject)
        if told is None:
            return None
        line = Line(at, told, bad)
        self.lines.append(line)
        return line

    def reset(self, subject: str) -> bool:
        """A problem has ended: when it comes back it is told at once. Whether it had been told."""
        return self._throttle.forget(subject)
