"""Log the same thing not too often: the first line at once, then one a period with a count.

    throttle = Throttle()
    throttle.line(0.0, "the disk is full")    # "the disk is full"
    throttle.line(1.0, "the disk is full")    # None
    throttle.line(61.0, "the disk is full")   # "… (1 more since the last such line)"

Time is an argument, in seconds of any clock.
"""

from __future__ import annotations

from typing import Final, final

__all__ = ["REPEAT_AFTER_SECONDS", "LineBudget", "Throttle"]

REPEAT_AFTER_SECONDS: Final = 60.0
"""Seconds before a line about the same subject is written again."""

MAX_SUBJECTS: Final = 256
"""Subjects that are remembered; the one that was silent longest is forgotten for a new one."""


@final
class LineBudget:
    """A bound on lines of any subject: so many in each period."""

    def __init__(self, lines: int, period: float = REPEAT_AFTER_SECONDS) -> None:
        """Allow `lines` lines in `period` seconds."""
        self.lines: int = lines
        self.period: float = period
        self._since: float = 0.0
        self._written: int = -1

    def take(self, now: float) -> int:
        """Count a line; return how many more the period allows, -1 if not even this one."""
        if self._written < 0 or not 0.0 <= now - self._since < self.period:
            self._since, self._written = now, 0
        if self._written >= self.lines:
            return -1
        self._written += 1
        return self.lines - self._written


@final
class Throttle:
    """Decides which lines are written, and counts the others."""

    def __init__(
        self,
        period: float = REPEAT_AFTER_SECONDS,
        subjects: int = MAX_SUBJECTS,
        budget: LineBudget | None = None,
    ) -> None:
        """Allow a line about each subject in `period` seconds, and in all what `budget` allows."""
        self._period: float = period
        self._subjects: int = subjects
        self._budget: LineBudget | None = budget
        #: When the last line about a subject was written, and the lines left out since.
        self._last: dict[str, tuple[float, int]] = {}

    def line(self, now: float, text: str, subject: str = "") -> str | None:
        """Return the line to write now, or None.

        `subject` names the problem without its numbers; it is the text where it is not given.
        """
        subject = subject or text
        before = self._last.pop(subject, None)
        if before is not None and 0.0 <= now - before[0] < self._period:
            self._last[subject] = (before[0], before[1] + 1)
            return None
        budget = self._budget
        if budget is not None:
            left = budget.take(now)
            if left < 0:
                if before is not None:
                    self._last[subject] = (before[0], before[1] + 1)
                return None
            if left == 0:
                text += f"; no more such lines for {budget.period:g} s"
        if len(self._last) >= self._subjects:
            del self._last[next(iter(self._last))]
        self._last[subject] = (now, 0)
        if before is not None and before[1]:
            text += f" ({before[1]} more since the last such line)"
        return text

    def forget(self, subject: str) -> bool:
        """End a problem, so that its return is logged at once; return whether it was known."""
        return self._last.pop(subject, None) is not None

    def __len__(self) -> int:
        """Return how many subjects are remembered."""
        return len(self._last)
