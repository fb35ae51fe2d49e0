"""What happened that an operator should know of: denials, cuts, limits, failed logins, the slow.

An event has a kind, the peer that it is about, its user, the key and the reason. Equal ones within
a period are one event with a count. The newest are kept, so many in all and no more, and each new
one is told to the edge: what fills a log is bounded by the events, not by what strangers send.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from zenlake.clock.throttle import LineBudget
from zenlake.records import record

MOST: Final = 256
"""The events that are kept."""
PERIOD: Final = 60.0
"""Seconds in which equal events are one."""
LINES: Final = 20
"""The events that are told in a period."""
LONGEST: Final = 300
"""Characters of a reason or key that are kept."""

DENIED: Final = "denied"
"""The access control or another rule of the policy stopped a message."""
REJECTED: Final = "rejected"
"""A neighbour or stranger sent what is not taken, or was cut for it."""
LOGIN: Final = "login"
"""A login failed."""
LIMIT: Final = "limit"
"""A limit was reached."""
SLOW: Final = "slow"
"""A neighbour does not take what is sent to it."""
BUSY: Final = "busy"
"""A neighbour takes most of the node's time while others wait."""
KINDS: Final = (DENIED, REJECTED, LOGIN, LIMIT, SLOW, BUSY)


@record(slots=True)
class Incident:
    """One thing that happened, once or several times."""

    kind: str
    peer: str
    user: str
    key: str
    reason: str
    #: When it happened first and last, on the node's clock.
    first: float
    last: float
    count: int = 1
    #: More about the last of them, which tells it from no other: how much, how long.
    detail: str = ""

    def plain(self, now: float) -> dict[str, Any]:
        """As JSON has it; times are seconds ago."""
        return {
            "kind": self.kind,
            "peer": self.peer,
            "user": self.user,
            "key": self.key,
            "reason": self.reason,
            "detail": self.detail,
            "count": self.count,
            "first_seconds_ago": round(max(0.0, now - self.first), 3),
            "last_seconds_ago": round(max(0.0, now - self.last), 3),
        }


class Incidents:
    """The newest events of one node."""

    def __init__(self) -> None:
        """Nothing has happened."""
        self._known: dict[tuple[str, str, str, str], Incident] = {}
        #: How many of each kind there were, those that are forgotten included.
        self.counts: dict[str, int] = dict.fromkeys(KINDS, 0)
        #: Takes events that are new, so many in a period.
        self.tell: Callable[[Incident], None] | None = None
        self._budget: LineBudget = LineBudget(LINES, PERIOD)

    def add(
        self,
        kind: str,
        now: float,
        *,
        peer: str = "",
        user: str = "",
        key: str = "",
        reason: str,
        detail: str = "",
    ) -> None:
        """Something happened."""
        self.counts[kind] = self.counts.get(kind, 0) + 1
        reason, key = reason[:LONGEST], key[:LONGEST]
        at = (kind, peer, user, reason if kind != DENIED else f"{reason} {key}")
        incident = self._known.get(at)
        if incident is not None and now - incident.last < PERIOD:
            incident.count += 1
            incident.last = now
            incident.detail = detail
            return
        self._known.pop(at, None)
        if len(self._known) >= MOST:
            del self._known[next(iter(self._known))]
        incident = Incident(
            kind=kind,
            peer=peer,
            user=user,
            key=key,
            reason=reason,
            first=now,
            last=now,
            detail=detail,
        )
        self._known[at] = incident
        tell = self.tell
        if tell is not None and self._budget.take(now) >= 0:
            tell(incident)

    def newest(self) -> list[Incident]:
        """The events that are kept, the newest first."""
        return sorted(self._known.values(), key=lambda event: event.last, reverse=True)
