"""Queries to the caches of advanced publishers: when they are repeated, how many wait, a thread.

    due ─► ask ─ in vain, 1 s ─► ask ─ in vain, 5 s ─► ask ─ in vain ─► given up

Which publisher is asked for what is decided by plans of two kinds: `past` asks those that have come
for what they kept, `heal` asks for numbers that are missing.
"""

from __future__ import annotations

import threading
import time
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from zenlake.values import ConsolidationMode, QueryTarget, ReplyKeyExpr

if TYPE_CHECKING:
    from collections.abc import Iterator

    from zenlake.api.session import Session
    from zenlake.node.sample import Sample

__all__ = ["ATTEMPTS", "MOST_WAITING", "CacheAsker", "CacheQuery"]

PAUSES: Final = (1.0, 5.0)
"""Seconds after the first query, and after the second."""

ATTEMPTS: Final = len(PAUSES) + 1
"""How often a cache is asked for the same."""

MOST_WAITING: Final = 10_000
"""How many caches may wait to be asked, for each of the two reasons."""

REPLY_TIME: Final = 5.0
"""How long a reply may take, in seconds."""


@dataclass(slots=True)
class CacheQuery:
    """A query that is due at a time, and how often it was made."""

    due: float
    attempts: int = 0

    def again(self, now: float) -> bool:
        """It was made in vain: make it again after a pause; False if it was made often enough."""
        self.attempts += 1
        if self.attempts >= ATTEMPTS:
            return False
        self.due = now + PAUSES[self.attempts - 1]
        return True


class CacheAsker(ABC):
    """A thread that makes one query after the other, each when it is due."""

    def __init__(self, session: Session, name: str) -> None:
        """`name`: the thread's."""
        self._session = session
        self._wake = threading.Condition()
        self._ended = False
        self.queries = 0
        """How many queries were made."""
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def start(self) -> None:
        """Begin to ask; called when all that the thread needs is there."""
        self._thread.start()

    def close(self) -> None:
        """Ask no more."""
        with self._wake:
            self._ended = True
            self._wake.notify()
        self._thread.join()

    @abstractmethod
    def due(self) -> float | None:
        """When the next query is due; called with the lock."""

    @abstractmethod
    def ask(self) -> None:
        """Make the query that is due; called without the lock."""

    def replies(self, selector: str) -> Iterator[Sample]:
        """What caches reply, one sample after the other; replies that are errors are left out."""
        self.queries += 1
        for reply in self._session.get(
            selector,
            target=QueryTarget.ALL,
            consolidation=ConsolidationMode.NONE,
            accept_replies=ReplyKeyExpr.ANY,
            timeout=REPLY_TIME,
        ):
            if reply.ok is not None:
                yield reply.ok

    def _run(self) -> None:
        while True:
            with self._wake:
                if self._ended:
                    return
                due = self.due()
                wait = None if due is None else due - time.monotonic()
                if wait is None or wait > 0:
                    self._wake.wait(wait)
                    continue
            self.ask()
            if self._session.is_closed():
                return
