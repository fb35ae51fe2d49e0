"""What neighbours and strangers sent that was rejected: counted always, told seldom.

A line is told at most once a period for each host and reason, and only so many a period in all:
who sends garbage must not fill a disk with words about it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from zenlake.clock.throttle import LineBudget, Throttle
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
        self._throttle: Throttle = Throttle(PERIOD, 2 * LINES, LineBudget(LINES, PERIOD))

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
        line = self._throttle.line(now, f"{peer}: {what}", f"{reason} {host_of(peer)}")
        if line is not None:
            warn(line)


def host_of(peer: str) -> str:
    """The host of a locator: each connection of one host has a port of its own."""
    address = peer.partition("/")[2] or peer
    head, colon, port = address.rpartition(":")
    return head if colon and port.isdigit() else address
