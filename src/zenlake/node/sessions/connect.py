"""Whom to connect to, and when to try again.

A router or a peer keeps a connection to every endpoint it was given. A client keeps one
connection: it tries its endpoints in turn until one answers. Nodes that were found (by scouting
or gossip) are tried at each of their locators once, each time they are found. An endpoint where
a node answers that there is a session with already is left alone until that session ends.

A session that ends is opened again at once; if that fails, at short periods that double until
they reach the configured ones (0.01, 0.1, 0.2, 0.4, 0.8 s, then `connect/retry`): a neighbour that
was there a moment ago is most likely being restarted.
"""

from __future__ import annotations

from dataclasses import field
from typing import Final

from zenlake.clock.backoff import Backoff
from zenlake.records import record

#: When to try again what was open a moment ago, in seconds: first, and if that fails.
AT_ONCE: Final = 0.01
RECONNECT: Final = Backoff(0.1, 0.0)

#: Connections to nodes that others told of: at once, a second, and under way.
DIALS: Final = 1024.0
DIALS_A_SECOND: Final = 16.0
MOST_UNDER_WAY: Final = 128


@record(slots=True)
class Attempt:
    """One connection under way or in place."""

    id: int
    endpoint: str
    expected: bytes = b""  # the id that must answer there (empty: any)
    discovered: bool = False  # found by scouting or gossip, not configured
    others: tuple[str, ...] = ()  # where else it may be found
    open: bool = False  # its session is open


@record(slots=True)
class Endpoint:
    """A configured endpoint, and how it went so far."""

    text: str
    due: float = 0.0
    period: float = 0.0
    lost: bool = False  # it was open, and the short periods are not over
    attempt: int = 0  # the attempt under way or in place; 0: none
    error: str = ""
    taken: bytes = b""  # who answers there, connected by another link


@record(slots=True)
class ConnectPlan:
    """The connections that a node wants."""

    single: bool  # a client: one connection at a time
    retry: Backoff = Backoff(1.0, 4.0)
    endpoints: list[Endpoint] = field(default_factory=list)
    attempts: dict[int, Attempt] = field(default_factory=dict)
    following: list[Attempt] = field(default_factory=list)  # other locators, to be tried now
    next_id: int = 1
    next_endpoint: int = 0
    stopped: bool = False
    dials: float = 1024.0  # connections to nodes that were found that may be begun now
    dialled_at: float = 0.0
    not_dialled: int = 0  # nodes that were found and not connected to, for these bounds

    def configure(self, texts: tuple[str, ...], now: float) -> None:
        """Take the configured endpoints, all due at once."""
        self.endpoints = [Endpoint(text, now) for text in texts]

    def add(self, text: str, now: float) -> None:
        """Take one more endpoint, due at once."""
        self.endpoints.append(Endpoint(text, now))

    def change(self, texts: tuple[str, ...], now: float) -> list[int]:
        """Take other endpoints; gives the attempts that are wanted no more."""
        known = {endpoint.text: endpoint for endpoint in self.endpoints}
        self.endpoints = [
            known.pop(text) if text in known else Endpoint(text, now) for text in texts
        ]
        self.next_endpoint = 0
        return [endpoint.attempt for endpoint in known.values() if endpoint.attempt]

    @property
    def deadline(self) -> float:
        """When an endpoint is due to be tried."""
        if self.following:
            return 0.0
        waiting = [e.due for e in self._idle()]
        return min(waiting) if waiting else float("inf")

    def _idle(self) -> list[Endpoint]:
        """The endpoints that may be tried, in the order of their turn."""
        if self.stopped or not self.endpoints:
            return []
        if self.single:
            if any(e.attempt for e in self.endpoints) or self._discovered_busy():
                return []
            return [self.endpoints[self.next_endpoint % len(self.endpoints)]]
        return [e for e in self.endpoints if not e.attempt and not e.taken]

    def _discovered_busy(self) -> bool:
        return any(attempt.discovered for attempt in self.attempts.values())

    def due(self, now: float) -> list[Attempt]:
        """The connections to try now."""
        started = self.following
        self.following = []
        for endpoint in self._idle():
            if endpoint.due <= now:
                attempt = self._attempt(endpoint.text, b"", False)
                endpoint.attempt = attempt.id
                started.append(attempt)
        return started

    def find(self, locators: tuple[str, ...], expected: bytes, now: float = 0.0) -> Attempt | None:
        """A connection to a node that was found, unless a client has one already.

        Others decide how many are found, so that connections to these are bounded: so many under
        way, and so many a second.
        """
        self.dials = min(DIALS, self.dials + max(0.0, now - self.dialled_at) * DIALS_A_SECOND)
        self.dialled_at = max(now, self.dialled_at)
        under_way = sum(1 for a in self.attempts.values() if a.discovered and not a.open)
        if self.dials < 1.0 or under_way >= MOST_UNDER_WAY:
            self.not_dialled += 1
            return None
        if self.stopped or (self.single and (self.attempts or self.endpoints)):
            return None
        if any(a.expected == expected for a in self.attempts.values()):
            return None
        self.dials -= 1.0
        attempt = self._attempt(locators[0], expected, True)
        attempt.others = locators[1:]
        return attempt

    def _attempt(self, endpoint: str, expected: bytes, discovered: bool) -> Attempt:
        attempt = Attempt(self.next_id, endpoint, expected, discovered)
        self.next_id += 1
        self.attempts[attempt.id] = attempt
        return attempt

    def opened(self, id: int) -> None:
        """The session is open: a later failure starts the periods anew."""
        attempt = self.attempts.get(id)
        if attempt is not None:
            attempt.open = True
        for endpoint in self.endpoints:
            if endpoint.attempt == id:
                endpoint.period = 0.0
                endpoint.lost = False
                endpoint.error = ""

    def over(self, id: int, was_open: bool, error: str, now: float) -> None:
        """A connection failed or ended."""
        attempt = self.attempts.pop(id, None)
        if attempt is not None and attempt.others and not was_open and not self.stopped:
            elsewhere = self._attempt(attempt.others[0], attempt.expected, True)
            elsewhere.others = attempt.others[1:]
            self.following.append(elsewhere)
        for index, endpoint in enumerate(self.endpoints):
            if endpoint.attempt != id:
                continue
            endpoint.attempt = 0
            endpoint.error = error
            if was_open:
                self._lost(endpoint, now)
            else:
                endpoint.period = self._next_period(endpoint)
                endpoint.due = now + endpoint.period
                if self.single and len(self.endpoints) > 1:
                    self.next_endpoint = index + 1
                    following = self.endpoints[self.next_endpoint % len(self.endpoints)]
                    if self.next_endpoint % len(self.endpoints):
                        following.due = min(following.due, now)

    def taken(self, id: int, zid: bytes, now: float) -> None:
        """The node that answered has a session over another link: leave the endpoint alone."""
        attempt = self.attempts.get(id)
        if attempt is not None:
            attempt.others = ()
        for endpoint in self.endpoints:
            if endpoint.attempt == id:
                endpoint.taken = zid

    def released(self, zid: bytes, now: float) -> None:
        """A session has ended: endpoints that led to the same node are tried again."""
        for endpoint in self.endpoints:
            if endpoint.taken == zid:
                endpoint.taken = b""
                self._lost(endpoint, now)

    def _lost(self, endpoint: Endpoint, now: float) -> None:
        """The session with the node of this endpoint has ended: try again at once, then soon."""
        endpoint.due = now + AT_ONCE
        endpoint.period = 0.0
        endpoint.lost = True

    def _next_period(self, endpoint: Endpoint) -> float:
        """How long to wait after one more failure."""
        if endpoint.lost:
            short = RECONNECT.after(endpoint.period)
            if short < self.retry.first:
                return short
            endpoint.lost = False
            return self.retry.first
        return self.retry.after(endpoint.period)
