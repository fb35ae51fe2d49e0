"""Asking the local network who is there, and answering.

    me                                   the group 224.0.0.224:7446
    │  SCOUT, at 0, 1, 3, 7, 15, 23 … s  │
    ├───────────────────────────────────►│
    │◄───────────── HELLO, to me alone ──┤ from each node with a wanted role

The datagrams are whole messages with no framing. Whoever runs these machines owns the sockets:
it sends what `Scouting.tick` gives to the group, and what `Answering.received` gives to the
address that the SCOUT came from.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple, final

from zenlake.errors import DecodeError, LocatorError
from zenlake.values.locator import Locator
from zenlake.wire import Hello, Scout, read_scouting, write

__all__ = ["MAX_HELLO_BYTES", "VERSION", "Answering", "Found", "Scouting", "is_loopback"]

VERSION: Final = 9
MAX_HELLO_BYTES: Final = 1400
"""An answer fits one packet of an ordinary network; locators beyond that are left out."""


class Found(NamedTuple):
    """A node that answered."""

    zid: bytes
    role: int
    locators: tuple[str, ...]


@final
class Scouting:
    """Asks until told to stop, at growing intervals.

    Args:
        zid: who is asking, so that its own answer is not taken for another node's.
        role: what is asking.
        matcher: the roles that should answer.
        period: the first interval, in seconds; it doubles each time.
        max_period: the longest interval.
    """

    __slots__ = (
        "_max_period",
        "_next_period",
        "_period",
        "_question",
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
        self._period = period
        self._max_period = max_period
        self._next_period = period
        # The asker's id is left out, as by every known node: those who answer ignore it.
        self._question = write(Scout(version=VERSION, what=matcher))

    def start(self, now: float) -> None:
        """Begin, or begin anew; the first question is due at once."""
        self.deadline = now
        self._next_period = self._period

    def stop(self) -> None:
        """Ask no more; answers that are still under way are taken."""
        self.deadline = None

    def tick(self, now: float) -> bytes | None:
        """The datagram for the group, if one is due."""
        if self.deadline is None or now < self.deadline:
            return None
        self.deadline = now + self._next_period
        self._next_period = min(2 * self._next_period, self._max_period)
        return self._question

    def received(self, datagram: bytes, now: float) -> list[Found]:
        """The node that this answer tells of; nothing for anything else.

        A HELLO without locators is nothing: nobody knows where to connect to.
        """
        try:
            message = read_scouting(datagram)
        except DecodeError:
            self.undecodable += 1
            return []
        if not isinstance(message, Hello) or message.zid == self.zid or not message.locators:
            return []
        return [Found(message.zid, 1 << message.whatami, message.locators)]


@final
class Answering:
    """Tells those who ask where this node listens.

    Args:
        zid: who answers.
        role: what it is; it answers only those who look for this role.
        locators: gives the places it listens at now.
    """

    __slots__ = ("_locators", "role", "undecodable", "zid")

    def __init__(self, zid: bytes, role: int, locators: Callable[[], list[str]]) -> None:
        self.zid = zid
        self.role = role
        self.undecodable = 0
        """How many datagrams were not scouting messages."""
        self._locators = locators

    def received(self, datagram: bytes, from_here: bool) -> bytes | None:
        """The HELLO that answers this datagram, if it asks for a node like this one.

        Loopback locators are told only to programs of this machine (`from_here`); to others they
        would name the wrong one. The version is not looked at: 1.x answers any.
        """
        try:
            message = read_scouting(datagram)
        except DecodeError:
            self.undecodable += 1
            return None
        if not isinstance(message, Scout) or not message.what & self.role:
            return None
        room = MAX_HELLO_BYTES - 32
        told: list[str] = []
        for locator in self._locators():
            if is_loopback(locator) and not from_here:
                continue
            room -= len(locator.encode()) + 2
            if room < 0:
                break
            told.append(locator)
        if not told:
            return None  # a HELLO that names no place is ignored by those who get it
        code = self.role >> 1
        return write(Hello(version=VERSION, whatami=code, zid=self.zid, locators=tuple(told)))


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
