"""What neighbours and strangers sent that was rejected: counted always, told seldom.

A line is told at most once a period for each host and reason, and only so many a period in all:
who sends garbage must not fill a disk with words about it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from zenlake.node import incidents
from zenlake.node.incidents import REJECTED, Incidents

#: How many seconds pass between two lines of one reason about one host.
PERIOD: Final = 60.0
#: The most lines of one period, of all hosts together; and the hosts and reasons remembered.
LINES: Final = 20

#: The reasons, as metrics name them.
KEY: Final = "key"
LOGIN: Final = "login"
BATCH_SIZE: Final = "batch-size"
UNDECODABLE: Final = "undecodable"
SILENT: Final = "silent"
HANDSHAKE: Final = "handshake"
PROTOCOL: Final = "protocol"
PENDING: Final = "pending"
LIMIT: Final = "limit"
SLOW: Final = "slow"
REASONS: Final[tuple[str, ...]] = (
    KEY, LOGIN, BATCH_SIZE, UNDECODABLE, SILENT, HANDSHAKE, PROTOCOL, PENDING, LIMIT, SLOW,
)  # fmt: skip


#: The kinds of events that rejections are, if not rejections in general.
KINDS: Final[dict[str, str]] = {
    LOGIN: incidents.LOGIN,
    LIMIT: incidents.LIMIT,
    SLOW: incidents.SLOW,
}


class _Line:
    """The last line about a host for one reason."""

    __slots__ = ("more", "when")

    def __init__(self, when: float) -> None:
        self.when: float = when
        #: How often the same has happened since.
        self.more: int = 0


class Rejections:
    """The rejections of one node."""

    def __init__(self) -> None:
        """None yet."""
        #: How many there were, by reason.
        self.counts: dict[str, int] = dict.fromkeys(REASONS, 0)
        #: Takes each line that is told.
        self.warn: Callable[[str], None] | None = None
        #: Where they are kept for operators.
        self.incidents: Incidents | None = None
        self._lines: dict[tuple[str, str], _Line] = {}
        self._lines_logged: int = 0
        self._since: float = -PERIOD

    def add(self, reason: str, peer: str, what: str, now: float, user: str = "") -> None:
        """Something of `peer`, a locator, was rejected; `what` says what and why."""
        self.counts[reason] += 1
        events = self.incidents
        if events is not None:
            kind = KINDS.get(reason, REJECTED)
            events.add(kind, now, peer=host_of(peer), user=user, reason=what)
        warn = self.warn
        if warn is None:
            return
        at = (reason, host_of(peer))
        line = self._lines.get(at)
        if line is not None and now - line.when < PERIOD:
            line.more += 1
            return
        if now - self._since >= PERIOD:
            self._since = now
            self._lines_logged = 0
            self._lines = {
                each: known
                for each, known in self._lines.items()
                if known.more or now - known.when < PERIOD
            }
        if self._lines_logged >= LINES:
            return
        self._lines_logged += 1
        text = f"{peer}: {what}"
        if line is not None and line.more:
            text += f" ({line.more} more like this since the last such line)"
        if self._lines_logged == LINES:
            text += f"; no more such lines for {PERIOD:g} s, but they are counted"
        while len(self._lines) >= 2 * LINES:
            del self._lines[next(iter(self._lines))]
        self._lines[at] = _Line(now)
        warn(text)


def host_of(peer: str) -> str:
    """The host of a locator: each connection of one host has a port of its own."""
    address = peer.partition("/")[2] or peer
    head, colon, port = address.rpartition(":")
    return head if colon and port.isdigit() else address
