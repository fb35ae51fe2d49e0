"""Scouting: SCOUT to the multicast group, HELLO back to its sender.

    me                                   the group 224.0.0.224:7446
    │  SCOUT, at 0, 1, 3, 7, 15, 23 … s  │
    ├───────────────────────────────────►│
    │◄───────────── HELLO, to me alone ──┤ from each node with a wanted role

The datagrams are whole messages with no framing. The caller owns the sockets:
it sends what `ScoutSender.tick` gives to the group, and what `HelloResponder.received` gives to the
address that the SCOUT came from.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple, final

from zenlake.clock.backoff import Backoff
from zenlake.errors import DecodeError, LocatorError
from zenlake.values.locator import Locator
from zenlake.wire import Hello, Scout, read_scouting, write

__all__ = [
    "MAX_HELLO_BYTES",
    "VERSION",
    "DiscoveredNode",
    "HelloResponder",
    "ScoutSender",
    "is_loopback",
]

VERSION: Final = 9
MAX_HELLO_BYTES: Final = 1400
"""An answer fits one packet of an ordinary network; locators beyond that are left out."""


class DiscoveredNode(NamedTuple):
    """A node that sent a HELLO."""

    zid: bytes
    role: int
    locators: tuple[str, ...]


@final
class ScoutSender:
    """Sends SCOUT at growing intervals, until it is stopped.

    Args:
        zid: this node's id, so that its own HELLO is not taken for another node's.
        role: this node's role.
        matcher: the roles that should answer.
        period: the first interval, in seconds; it doubles each time.
        max_period: the longest interval.
    """

    __slots__ = (
        "_backoff",
        "_datagram",
        "_pause",
        "deadline",
        "role",
        "undecodable",
        "zid",
    )

    def __init__(
        self,
        zid: bytes,
        role: int,
        matcher: int,
        period: float = 1.0,
        max_period: float = 8.0,
    ) -> None:
        self.zid = zid
        self.role = role
        self.deadline: float | None = None
        """When `tick` wants to be called; None while it is not asking."""
        self.undecodable = 0
        """How many datagrams were not scouting messages."""
        self._backoff = Backoff(period, max_period)
        self._pause = 0.0
        # The sender's id is left out, as by every known node: receivers ignore it.
        self._datagram = write(Scout(version=VERSION, what=matcher))

    def start(self, now: float) -> None:
        """Begin, or begin anew; the first SCOUT is due at once."""
        self.deadline = now
        self._pause = 0.0

    def stop(self) -> None:
        """Send no more SCOUT; a HELLO that is still under way is taken."""
        self.deadline = None

    def tick(self, now: float) -> bytes | None:
        """The datagram for the group, if one is due."""
        if self.deadline is None or now < self.deadline:
            return None
        self._pause = self._backoff.after(self._pause)
        self.deadline = now + self._pause
        return self._datagram

    def received(self, datagram: bytes, now: float) -> list[DiscoveredNode]:
        """The node that this HELLO tells of; nothing for anything else.

        A HELLO without locators is nothing: nobody knows where to connect to.
        """
        try:
            message = read_scouting(datagram)
        except DecodeError:
            self.undecodable += 1
            return []
        if not isinstance(message, Hello) or message.zid == self.zid or not message.locators:
            return []
        return [DiscoveredNode(message.zid, 1 << message.whatami, message.locators)]


@final
class HelloResponder:
    """Answers SCOUT with a HELLO that says where this node listens.

    Args:
        zid: this node's id.
        role: this node's role; it answers only a SCOUT for this role.
        locators: gives the places it listens at now.
    """

    __slots__ = ("_locators", "role", "undecodable", "zid")

    def __init__(self, zid: bytes, role: int, locators: Callable[[], list[str]]) -> None:
        self.zid = zid
        self.role = role
        self.undecodable = 0
        """How many datagrams were not scouting messages."""
        self._locators = locators

    def received(self, datagram: bytes, from_this_host: bool) -> bytes | None:
        """The HELLO that answers this datagram, if it asks for a node like this one.

        Loopback locators are told only to programs of this machine (`from_this_host`); to others
        they would name the wrong one. The version is not looked at: 1.x answers any.
        """
        try:
            message = read_scouting(datagram)
        except DecodeError:
            self.undecodable += 1
            return None
        if not isinstance(message, Scout) or not message.what & self.role:
            return None
        room = MAX_HELLO_BYTES - 32
        locators: list[str] = []
        for locator in self._locators():
            if is_loopback(locator) and not from_this_host:
                continue
            room -= len(locator.encode()) + 2
            if room < 0:
                break
            locators.append(locator)
        if not locators:
            return None  # a HELLO that names no place is ignored by its receiver
        code = self.role >> 1
        return write(Hello(version=VERSION, whatami=code, zid=self.zid, locators=tuple(locators)))


def is_loopback(locator: str) -> bool:
    """Whether this place is reachable only from the machine it is on."""
    try:
        place = Locator.parse(locator)
    except LocatorError:
        return False
    if place.protocol.startswith("unix"):
        return True
    try:
        host = place.host
    except LocatorError:
        return False
    return host.startswith("127.") or host in ("::1", "localhost")
