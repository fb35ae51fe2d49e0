"""The metrics of a router that runs in another process, asked for over its pipe."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import Final

from zenlake.supervise.child import Child
from zenlake.supervise.openmetrics import END

#: How long a request waits for the router, in seconds.
ASK: Final = 2.0


@dataclass(slots=True)
class _Asked:
    """A request for metrics: the process that it was sent to, and the reply."""

    child: Child
    answered: threading.Event = field(default_factory=threading.Event)
    text: str = END


class RouterMetrics:
    """Asks one router at a time; any thread may ask."""

    def __init__(self) -> None:
        """Nothing was asked."""
        self._asking = threading.Lock()
        self._asked: _Asked | None = None

    def ask(self, child: Child) -> str:
        """The metrics of a router; only an end if it does not answer."""
        with self._asking:
            asked = self._asked
            # What was not answered is not asked again: the pipe to a router that hangs is short.
            if asked is None or asked.child is not child or asked.answered.is_set():
                asked = self._asked = _Asked(child)
                child.ask("metrics")
        asked.answered.wait(ASK)
        return asked.text

    def answered(self, child: Child, text: str) -> None:
        """A router has answered; on the thread that reads its pipe."""
        asked = self._asked
        if asked is not None and asked.child is child:
            asked.text = text
            asked.answered.set()
