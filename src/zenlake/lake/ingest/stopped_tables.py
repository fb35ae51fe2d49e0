"""Tables that cannot go on, why, and when each is tried again; time is an argument."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final, final

from zenlake.clock.backoff import Backoff
from zenlake.errors import ConfigError
from zenlake.lake.ingest.failure_reason import reason_of
from zenlake.lake.table.delta import CommitConflict

__all__ = ["StoppedTable", "StoppedTables"]

log = logging.getLogger("zenlake.lake")

RETRY: Final = Backoff(2.0, 300.0)


@dataclass(frozen=True, slots=True)
class StoppedTable:
    """Why a table stopped, and when it is tried again."""

    reason: str
    pause: float
    again: float


@final
class StoppedTables:
    """The tables that stopped, by name."""

    def __init__(self) -> None:
        """All of them go on."""
        self._all: dict[str, StoppedTable] = {}

    def stop(self, name: str, reason: str, now: float) -> None:
        """A table could not go on."""
        had = self._all.get(name)
        pause = RETRY.after(0.0 if had is None else had.pause)
        self._all[name] = StoppedTable(reason, pause, now + pause)

    @contextmanager
    def alone(self, name: str, now: float) -> Iterator[None]:
        """What goes wrong in here stops one table and no other."""
        try:
            yield
        except (CommitConflict, ConfigError):
            raise
        except Exception as error:
            log.debug("table '%s' stops", name, exc_info=error)
            self.stop(name, reason_of(error), now)

    def went_on(self, name: str) -> None:
        """A table did go on."""
        self._all.pop(name, None)

    def due(self, name: str, now: float) -> bool:
        """Whether a table may be tried: it never stopped, or long enough ago."""
        had = self._all.get(name)
        return had is None or now >= had.again

    def reason(self, name: str) -> str:
        """Why a table stopped; empty if it did not."""
        had = self._all.get(name)
        return "" if had is None else had.reason

    def sentences(self) -> tuple[str, ...]:
        """A line for each table that stopped, with what to do."""
        return tuple(_sentence(name, one.reason) for name, one in sorted(self._all.items()))

    def __contains__(self, name: str) -> bool:
        return name in self._all

    def __iter__(self) -> Iterator[str]:
        return iter(sorted(self._all))


def _sentence(name: str, reason: str) -> str:
    advice = f"`zenlake lake repair {name}` says what can be done"
    told = reason if advice in reason else f"{reason}; {advice}"
    return f"table '{name}' has stopped, the others go on: {told}"
