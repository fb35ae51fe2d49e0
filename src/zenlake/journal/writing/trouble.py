"""A disk that refuses writes for a while: what passes, what does not, and what is told of it."""

from __future__ import annotations

import errno
import logging
import time
from dataclasses import dataclass
from typing import Final

__all__ = ["DiskTrouble", "WriterStats"]

_log = logging.getLogger("zenlake.journal")
_NO_ROOM: Final = (errno.ENOSPC, errno.EDQUOT)
#: What a disk or a process can suffer from and get over; a failed fsync is not among it.
_PASSING: Final = (
    *_NO_ROOM,
    errno.EMFILE,
    errno.ENFILE,
    errno.ENOMEM,
    errno.EIO,
    errno.EAGAIN,
    errno.EBUSY,
    errno.EINTR,
    errno.ESTALE,
    errno.ETIMEDOUT,
    errno.EROFS,
)


@dataclass(slots=True)
class WriterStats:
    """What the writer did since it was opened."""

    rows: int = 0
    blocks: int = 0
    bytes: int = 0
    commits: int = 0
    dropped_rows: int = 0
    dropped_bytes: int = 0
    queued_bytes: int = 0
    blocked_appends: int = 0
    full: bool = False
    #: Why nothing can be written at this moment, in words; empty if it can.
    stuck: str = ""
    #: Since when, on the monotonic clock.
    stuck_since: float = 0.0
    #: How often writing did not succeed at once.
    retries: int = 0
    appended_rows: int = 0
    recovered_bytes_cut: int = 0
    sources_forgotten: int = 0
    sealed: int = 0
    #: What rules of retention have taken: rows, bytes of files, and how often that failed.
    retired_rows: int = 0
    retired_bytes: int = 0
    retire_failures: int = 0
    #: Seconds by which the clock is ahead, for which nothing is deleted that it would delete.
    held_seconds: float = 0.0


class DiskTrouble:
    """What of a journal cannot be written at this moment; kept in the writer's counters.

    Rows, watermark and segments are written apart, so that each may be refused alone; the trouble
    is over when none of them is.
    """

    def __init__(self, stats: WriterStats, name: str, *, drops: bool) -> None:
        """Of the journal `name`; `drops`: whether rows are dropped meanwhile, or wait."""
        self._stats = stats
        self._name = name
        self._meanwhile = "rows are dropped" if drops else "rows wait"
        self._refused: set[str] = set()

    def met(self, what: str, error: OSError) -> None:
        """Note what passes, a full disk first of all; raises anything else, which is a failure."""
        if error.errno not in _PASSING:
            raise error
        stats = self._stats
        self._refused.add(what)
        stats.retries += 1
        if not stats.stuck:
            stats.stuck_since = time.monotonic()
        full = error.errno in _NO_ROOM
        if not stats.stuck or full > stats.full:
            name, now = self._name, self._meanwhile
            if full:
                words = f"the disk of journal '{name}' is full; {now} until there is room"
            else:
                words = f"journal '{name}' cannot be written: {error}; {now} until it can"
            _log.warning("%s", words)
        stats.full |= full
        stats.stuck = "the disk is full" if full else str(error)

    def over(self, what: str) -> None:
        """This was written."""
        if self._refused:
            self._refused.discard(what)
            if not self._refused:
                self._stats.full = False
                self._stats.stuck = ""
                _log.warning("journal '%s' is written again", self._name)
