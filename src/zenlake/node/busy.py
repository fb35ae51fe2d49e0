"""Who keeps a node busy while others wait, and is named for it.

Turns are fair, so nobody stops the others; but who uses up one turn after the other makes them wait
for each. Such turns are added up by address. Who had most of a `WINDOW`, while others were heard
between its turns, is an event with its user, what it sent and its share: whether that is an attack
or a program that has much to say, only an operator knows.
"""

from __future__ import annotations

from typing import Final

from zenlake.node.incidents import BUSY, Incidents

WINDOW: Final = 1.0
"""Seconds that turns are added up for."""
MOST_OF: Final = 0.5
"""The part of them that is most of a node's time."""
WAITED: Final = 10
"""So many reads of others in them are others that wait."""
REMEMBERED: Final = 64
"""Addresses whose turns are added up."""


class _Window:
    """What the turns of one address took."""

    __slots__ = ("declarations", "heard", "messages", "own", "samples", "seconds", "since")

    def __init__(self, since: float, heard: int) -> None:
        self.since: float = since
        #: What the node had heard of all when it began, and of this address since.
        self.heard: int = heard
        self.own: int = 0
        self.seconds: float = 0.0
        self.declarations: int = 0
        self.samples: int = 0
        self.messages: int = 0

    def work(self) -> str:
        """What most of it was."""
        most = max(self.declarations, self.samples, self.messages)
        if most == self.declarations:
            return "declarations"
        return "samples" if most == self.samples else "queries, replies or other messages"


class BusyWatch:
    """The turns that were used up, by address."""

    def __init__(self, incidents: Incidents) -> None:
        """Nobody has used up a turn."""
        self._incidents = incidents
        self._windows: dict[str, _Window] = {}

    def used_up(
        self,
        host: str,
        user: str,
        seconds: float,
        declarations: int,
        samples: int,
        messages: int,
        heard: int,
        own: int,
        now: float,
    ) -> None:
        """A turn of `host` ended late or before all was handled.

        It took `seconds`, for so many of each. `heard`: how many reads of all neighbours ended
        within their turns so far; `own`: how many of those were this neighbour's since it was last
        told of.
        """
        window = self._windows.get(host)
        if window is None:
            if len(self._windows) >= REMEMBERED:
                self._windows.clear()  # as many as that do not have most of a node's time
            window = self._windows[host] = _Window(now - seconds, heard - own)
        window.seconds += seconds
        window.declarations += declarations
        window.samples += samples
        window.messages += messages
        window.own += own
        passed = now - window.since
        if passed < WINDOW:
            return
        del self._windows[host]
        share = window.seconds / passed
        others = heard - window.heard - window.own
        if share >= MOST_OF and others >= WAITED:
            self._incidents.add(
                BUSY,
                now,
                peer=host,
                user=user,
                reason=f"takes most of this node's time with {window.work()} while others wait",
                detail=f"{share:.0%} of {passed:.1f} s",
            )
