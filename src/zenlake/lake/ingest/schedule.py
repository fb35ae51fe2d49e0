"""When the pipeline works: how often it commits, and when a table is worth writing anew.

Pure decisions over (time, what waits); `lake/service/loop` asks them and does what they say.

Every commit costs about the same, whatever is in it: a file and a line in the log for each table,
and some tenths of a second of a core. So a lake that hears something now and then commits it at
once, and one that hears all the time commits seldom. It is a bucket of credits: a commit takes
one, one comes back every `STEADY` seconds, and `BURST` of them can be saved up.
"""

from __future__ import annotations

from typing import Final, final

from zenlake.clock.backoff import Backoff

__all__ = ["CommitSchedule", "RewriteSchedule"]

QUICK: Final = 1.0
"""Seconds between the beginnings of two steps at least, while there is credit."""

STEADY: Final = 10.0
"""Seconds between two steps in a steady flow."""

BURST: Final = 3
"""Steps that may follow each other quickly after a pause."""

SHARE: Final = 5.0
"""A step is followed by a pause of so many times its own length: it takes a fifth of the time."""

SLOWEST: Final = 30.0
"""Seconds between two steps at most, however long they take."""

RETRY: Final = Backoff(0.5, 30.0)


@final
class CommitSchedule:
    """When the next step may begin."""

    def __init__(self, every: float | None = None, far: int = 1_000_000) -> None:
        """`every`: seconds between two steps; None lets the load decide.

        `far`: with so many rows waiting a step begins at once.
        """
        self.every = every
        self.far = far
        self.failures = 0
        self._pause = 0.0
        self._began: float | None = None
        self._not_before = 0.0
        self._pace = STEADY
        self._credit = float(BURST)
        self._credited = 0.0

    def wait(self, now: float, waiting: int) -> float | None:
        """Seconds until the step for so many waiting rows; None while there is none to make."""
        if not waiting:
            return None
        if now < self._not_before:
            return self._not_before - now
        if self._began is None or waiting >= self.far:
            return 0.0
        if self.every is not None:
            return max(0.0, self._began + self.every - now)
        missing = 1.0 - self._credits(now)
        return max(0.0, self._began + QUICK - now, missing * self._pace)

    def stepped(self, began: float, ended: float) -> None:
        """A step was made."""
        self._credit = max(0.0, self._credits(began) - 1.0)
        self._credited = began
        self._began = began
        self._pace = min(SLOWEST, max(STEADY, SHARE * (ended - began)))
        self.failures = 0
        self._pause = 0.0
        self._not_before = 0.0

    def failed(self, now: float) -> float:
        """A step failed: gives the seconds until it is tried again, more each time."""
        self.failures += 1
        self._pause = RETRY.after(self._pause)
        self._not_before = now + self._pause
        return self._pause

    @property
    def interval(self) -> float:
        """Seconds between two steps in a steady flow, as it is now."""
        return self._pace if self.every is None else self.every

    def _credits(self, now: float) -> float:
        if self._began is None:
            return self._credit
        return min(float(BURST), self._credit + (now - self._credited) / self._pace)


@final
class RewriteSchedule:
    """When a table that is written anew as a whole is worth it.

    What it costs is its size; what it is worth is what came since. It is written when the news
    are large enough beside it, so that rewriting adds at most `share` to what is written anyway,
    or when it is `latest` seconds old; never sooner than `soonest` seconds after the last time.
    """

    def __init__(self, share: float, soonest: float, latest: float) -> None:
        """Nothing was written yet: the first news are worth it at once."""
        self.share = share
        self.soonest = soonest
        self.latest = max(soonest, latest)
        self._done: float | None = None

    def due(self, now: float, news: float, size: float) -> bool:
        """Whether to write it: so many bytes came since, and so large it is."""
        if news <= 0:
            return False
        if self._done is None:
            return True
        age = now - self._done
        return age >= self.latest or (age >= self.soonest and news * self.share >= size)

    def done(self, now: float) -> None:
        """Note that the table was written now."""
        self._done = now
